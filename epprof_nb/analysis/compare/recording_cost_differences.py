"""Differences in recording overhead on the host, which could look like a change of the code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.analysis.added_time.added_time import added_time
from epprof_nb.analysis.base.devices import used_gpu
from epprof_nb.analysis.base.op_status import ran
from epprof_nb.analysis.compare.node_recording import different_modes
from epprof_nb.analysis.compare.reasons_not_to_compare import Refusal
from epprof_nb.analysis.compare.times_per_repeat import repeats_of
from epprof_nb.analysis.frameworks.operator_links import is_operator
from epprof_nb.util.format import percent, without_backticks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from epprof_nb.analysis.base.index import ProfileIndex

_FRAMEWORK_SOURCES = {"torch": ("torch",), "jax": ("jax", "xla"), "nvtx": ("nvtx",)}
"""Framework to the sources of its ops; recording the other frameworks costs no time per call."""
_GPU_DETAILS = ("api", "memory", "overhead")
_OPERATOR_DETAILS = ("operators", "shapes")
_STATEMENT_NS = 200
"""Time to record a statement, rounded up."""
_NOTABLE_SHARE = 0.01
"""Minimum notable share of a repeat for recording its statements."""


def recording_refusals(
    old: Sequence[ProfileIndex], new: Sequence[ProfileIndex]
) -> Iterator[Refusal]:
    """Yield a refusal of the kind ``options`` if recording slowed the sides differently.

    GPU times are not affected.
    """
    different = [
        *_of_tools(old, new),
        *_of_details(old, new),
        *_of_frameworks(old, new),
        *_of_statements(old, new),
        *_of_waits(old, new),
        *different_modes(old, new),
    ]
    if different:
        added = _added(old, new)
        yield Refusal(
            "options",
            f"The sides were not recorded alike: {'; '.join(different)}. Recording takes time on "
            f"the host{added}, so host times cannot be compared. Record both with the same "
            "options.",
            f"The sides were not recorded alike: {'; '.join(different)}. Recording takes time on "
            f"the host{added}, which is part of the change of host times and may be all of it.",
        )


def _added(old: Sequence[ProfileIndex], new: Sequence[ProfileIndex]) -> str:
    """Return how much profiling added to each side; empty if it is unknown."""
    sides = [[index.cached(added_time) for index in side] for side in (old, new)]
    shares = [[None if added is None else added.share() for added in side] for side in sides]
    known = [[share for share in side if share is not None] for side in shares]
    if not all(known):
        return ""
    means = [percent(sum(side) / len(side)) for side in known]
    return f" (about {means[0]} of the old one, {means[1]} of the new)"


def _of_tools(old: Sequence[ProfileIndex], new: Sequence[ProfileIndex]) -> Iterator[str]:
    tools = [
        sorted({str(index.profile.info.get("trace_format") or "epprof_nb") for index in side})
        for side in (old, new)
    ]
    if tools[0] != tools[1]:
        texts = [without_backticks(", ".join(side), 60) for side in tools]
        yield f"the old one by {texts[0]}, the new one by {texts[1]}"


def _of_details(old: Sequence[ProfileIndex], new: Sequence[ProfileIndex]) -> Iterator[str]:
    both = (*old, *new)
    counted = {
        *(_GPU_DETAILS if any(map(used_gpu, both)) else ()),
        *(_OPERATOR_DETAILS if any(is_operator(index).any() for index in both) else ()),
    }
    texts = []
    for side in (old, new):
        found = sorted({",".join(sorted(_details(index) & counted)) or "default" for index in side})
        texts.append(" and ".join(f"`--detail {detail}`" for detail in found))
    if texts[0] != texts[1]:
        yield f"{texts[0]} in the old one, {texts[1]} in the new"


def _details(index: ProfileIndex) -> set[str]:
    info = index.profile.info
    recorded = info.get("recording") or {}
    details = {
        part.strip() for part in str(recorded.get("detail") or info.get("detail")).split(",")
    }
    if "all" in details:
        details |= set(_GPU_DETAILS)
    return details | {"operators"} if "shapes" in details else details


def _of_frameworks(old: Sequence[ProfileIndex], new: Sequence[ProfileIndex]) -> Iterator[str]:
    for framework, sources in _FRAMEWORK_SOURCES.items():
        states = []
        for side in (old, new):
            recorded = [framework in _frameworks(index) for index in side]
            used = any(_has_source(index, sources) for index in side)
            states.append((all(recorded), used))
        (old_on, old_used), (new_on, new_used) = states
        if old_on != new_on and (old_used or new_used):
            which = "old" if old_on else "new"
            yield f"the framework {framework} was recorded only in the {which} one"


def _frameworks(index: ProfileIndex) -> set[str]:
    recorded = index.profile.info.get("recording") or {}
    # Files of older versions lack this value; all frameworks are recorded by default.
    return set(recorded.get("frameworks", _FRAMEWORK_SOURCES))


def _has_source(index: ProfileIndex, sources: Sequence[str]) -> bool:
    source = index.profile.tables["ops"].names("source")
    return any(bool(source.equals(name).any()) for name in sources)


def _of_statements(old: Sequence[ProfileIndex], new: Sequence[ProfileIndex]) -> Iterator[str]:
    shares = [max(map(_statement_share, side)) for side in (old, new)]
    if min(shares) == 0 and max(shares) > _NOTABLE_SHARE:
        which = "old" if shares[0] else "new"
        yield f"statements were recorded only in the {which} one (`--no-lines` leaves them out)"


def _statement_share(index: ProfileIndex) -> float:
    """Estimate the share of the time that recording statements took."""
    profile = index.profile
    ops = profile.tables["ops"]
    executions = int(ops["count"].sum(where=ops.names("op_type").equals("line") & ran(ops)))
    return executions * _STATEMENT_NS / max(profile.wall_ns, 1)


def _of_waits(old: Sequence[ProfileIndex], new: Sequence[ProfileIndex]) -> Iterator[str]:
    waits = [any(map(_waits, side)) for side in (old, new)]
    has_work = any(index.is_device_work.any() for index in (*old, *new))
    if has_work and waits[0] != waits[1]:
        which = "old" if waits[0] else "new"
        yield (
            f"repeats waited for their device work only in the {which} one (`--interleave`, "
            f"whose `{which}.baseline` has the other version recorded alike)"
        )


def _waits(index: ProfileIndex) -> bool:
    info = index.profile.info
    recorded = (info.get("recording") or {}).get("waits")
    # Runs of scripts alternate without repeats in them.
    is_alternated = bool(info.get("alternated")) and repeats_of(index) > 1
    return is_alternated if recorded is None else bool(recorded)
