"""Comparison of two sides, each one or more recordings: the verdict and the tables behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from epprof_nb.analysis.base.devices import gpu_ids
from epprof_nb.analysis.compare import significance
from epprof_nb.analysis.compare.aligned_repeats import AlignedTimelines, align
from epprof_nb.analysis.compare.by_line import compare_lines, largest_line_changes
from epprof_nb.analysis.compare.causes_of_changes import (
    largest_contributions,
    largest_device_changes,
)
from epprof_nb.analysis.compare.comparison_table import Test
from epprof_nb.analysis.compare.contributions import median_change
from epprof_nb.analysis.compare.elapsed_parts import waited
from epprof_nb.analysis.compare.match_ops import match, path_names
from epprof_nb.analysis.compare.memory import MemoryComparison, compare_memory
from epprof_nb.analysis.compare.node_recording import node_recording
from epprof_nb.analysis.compare.op_and_kernel_tables import kernel_table, notes_of_nodes, op_table
from epprof_nb.analysis.compare.reasons_not_to_compare import (
    Refusal,
    refusals,
    refusals_of_ops,
    remedy,
)
from epprof_nb.analysis.compare.recording_conditions import (
    Conditions,
    conditions,
    with_node_recording,
)
from epprof_nb.analysis.compare.recording_conditions_text import (
    in_turn,
    on_load,
    on_waits,
    why_unclear,
)
from epprof_nb.analysis.compare.recording_cost_differences import recording_refusals
from epprof_nb.analysis.compare.recordings import Recordings, have_common_recording
from epprof_nb.analysis.compare.significance import is_too_wide, ratios, verdict_on
from epprof_nb.analysis.compare.spread_between_recordings import (
    ASSUMED,
    ASSUMED_ALTERNATED,
    place_of,
)
from epprof_nb.analysis.compare.spread_between_recordings_text import on_spread, on_width, steadier
from epprof_nb.analysis.compare.variance_of_medians import tells_spread
from epprof_nb.core.least_repeats import MIN_COMPARED
from epprof_nb.util.format import duration, percent, signed_percent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.analysis.compare.significance import FloatArray, Ratios
    from epprof_nb.analysis.compare.spread_between_recordings import Spread
    from epprof_nb.data.profile_data import ProfileData

Verdict: TypeAlias = significance.Verdict | Literal["cannot be compared"]

SINGLE_RUN_SPREAD = 0.15
"""Difference between single runs of the same code that occurs on an undisturbed machine."""


@dataclass(frozen=True, slots=True)
class Total:
    """Elapsed time per repeat of both sides, and the interval of the ratio; None if not tested.

    If `is_paired`, the ratio is the median of the ratios of pairs of repeats, which may differ from
    the ratio of the medians. `waited_ns` has the waits for a core of both sides: the times of ops
    include them.
    """

    before_ns: float
    after_ns: float
    ratios: Ratios | None = None
    is_paired: bool = False
    waited_ns: tuple[float, float] = (0.0, 0.0)

    @property
    def change(self) -> float:
        """The relative change, such as 0.05 for 5 % slower."""
        if self.ratios is not None:
            return float(self.ratios.ratio[0]) - 1
        return self.after_ns / self.before_ns - 1


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """Result of `compare`.

    Attributes
    ----------
    verdict, reason
        The verdict on the elapsed time, and the sentences that explain it.
    total
        The elapsed time per repeat.
    ops, kernels, lines, nodes
        Tables of the same names in `epprof_nb.data.result_columns.TABLES`, with the prefix
        ``compare_``.
    memory
        The bytes in use.
    notes
        Further sentences: differences that were allowed, and repeats without nodes.
    repeats
        Repeats of each recording of the old and of the new side.
    timelines
        A typical repeat of each side.
    paths
        Path of each pair of ops, by its number.
    assumes_spread
        Whether the verdict assumes the spread of recordings on a host where it can be measured.
    """

    verdict: Verdict
    reason: str
    total: Total
    ops: ResultTable
    kernels: ResultTable
    lines: ResultTable
    nodes: ResultTable
    memory: MemoryComparison
    notes: tuple[str, ...]
    repeats: tuple[tuple[int, ...], tuple[int, ...]]
    timelines: AlignedTimelines
    paths: tuple[str, ...]
    assumes_spread: bool


def compare(
    old: Sequence[ProfileData],
    new: Sequence[ProfileData],
    *,
    allow: Collection[str] = (),
    names: tuple[str, str] = ("old", "new"),
    spreads: Callable[[str, str], Spread | None] = lambda *_: None,
) -> ComparisonResult:
    """Compare two sides.

    Parameters
    ----------
    old, new
        The recordings of each side, at least one.
    allow
        Differences that do not prevent the comparison; see
        `epprof_nb.analysis.compare.reasons_not_to_compare.ALLOWED`.
    names
        Names of the sides for the commands that the reason suggests.
    spreads
        Function that returns the spread measured on a machine and its devices, or None.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> profile = synthetic_profile(activities=100)
    >>> compare([profile], [profile]).verdict  # was not repeated
    'cannot be compared'
    """
    alternated = _alternated(old, new)
    if alternated:
        old, new = (sorted(side, key=_recording_id) for side in (old, new))
    before, after = (Recordings(side) for side in (old, new))
    pairs = match(before.side, after.side)
    texts = path_names(pairs, before.side, after.side)
    found = [
        *refusals(before.indexes, after.indexes),
        *recording_refusals(before.indexes, after.indexes),
        *refusals_of_ops(
            pairs,
            texts,
            before.side.types,
            (before.ops, after.ops),
            (before.shapes(), after.shapes()),
        ),
    ]
    refused = [refusal for refusal in found if refusal.kind not in allow]
    single = all(count == 1 for side in (before, after) for count in side.repeats)
    pooled = single and min(len(old), len(new)) >= MIN_COMPARED
    indexes = *before.indexes, *after.indexes
    spread = _spread(indexes, spreads, alternated=alternated)
    # The recording overhead does not change the times of a GPU.
    is_possible = not refused or (
        all(refusal.kind == "options" for refusal in refused) and _has_only_gpus(indexes)
    )
    is_possible &= pooled or not single
    tell_spread = pooled or tells_spread((old, new))
    under = (
        Conditions()
        if alternated
        else conditions(before.indexes, after.indexes, tell_spread=tell_spread)
    )
    under = with_node_recording(under, node_recording(before.indexes, after.indexes))
    test = Test(
        is_possible,
        not refused,
        alternated,
        pooled,
        spread,
        under,
        is_uneven=not (alternated or tell_spread or _used_gpu(indexes)),
    )
    ops = op_table(pairs, texts, before, after, test)
    kernels = kernel_table(pairs, texts, before, after, test)
    lines = compare_lines(before.indexes, after.indexes, test)
    kept = _typical_waits(before, after, is_paired=alternated)
    total = Total(_overall(before.elapsed), _overall(after.elapsed), waited_ns=kept)
    if test.includes("total"):
        tested = ratios(
            test.pooled(before.elapsed),
            test.pooled(after.elapsed),
            np.array([spread.total]),
            freedom=spread.freedom,
            paired=alternated,
            slowdowns=under.bounds(["total"]),
        )
        total = Total(float(tested.before[0]), float(tested.after[0]), tested, alternated, kept)
    verdict, reason = _verdict(total, (ops, lines), refused, names, test)
    if have_common_recording(before.indexes, after.indexes):
        reason = f"A recording is compared with itself: both sides have the same one. {reason}"
    memory = compare_memory(pairs, texts, before, after)
    is_node = np.array([kind == "node" for kind in ops.values("category")], np.bool_)
    return ComparisonResult(
        verdict=verdict,
        reason=reason,
        total=total,
        ops=ops,
        kernels=kernels,
        lines=lines,
        nodes=ops.take(is_node),
        memory=memory,
        notes=(
            *(refusal.note for refusal in found if refusal.kind in allow),
            *on_waits(indexes),
            *notes_of_nodes(before.ops, after.ops),
            *memory.sentences,
        ),
        repeats=(before.repeats, after.repeats),
        timelines=align(pairs, before, after),
        paths=tuple(texts),
        assumes_spread=spread is ASSUMED["host"]
        and not tell_spread
        and total.ratios is not None
        and place_of(indexes) is not None,
    )


def _alternated(old: Sequence[ProfileData], new: Sequence[ProfileData]) -> bool:
    """Return whether each recording alternated with one of the other side."""
    sides = [[profile.info.get("alternated") for profile in side] for side in (old, new)]
    if not all(entry for side in sides for entry in side):
        return False
    ids, places = (
        [{entry.get(key) for entry in side if entry} for side in sides]
        for key in ("recording", "side")
    )
    return ids[0] == ids[1] and len(ids[0]) == len(old) == len(new) and places[0] != places[1]


def _recording_id(profile: ProfileData) -> str:
    return str(profile.info["alternated"].get("recording"))


def _spread(
    indexes: Sequence[ProfileIndex],
    spreads: Callable[[str, str], Spread | None],
    *,
    alternated: bool,
) -> Spread:
    """Return the spread measured on the machine of the recordings, or the assumed one."""
    kind = "gpu" if _used_gpu(indexes) else "host"
    if alternated:
        return ASSUMED_ALTERNATED[kind]
    place = place_of(indexes)
    measured = None if place is None else spreads(*place)
    return measured or ASSUMED[kind]


def _used_gpu(indexes: Sequence[ProfileIndex]) -> bool:
    """Return whether there was device work, all of GPUs."""
    return any(index.is_device_work.any() for index in indexes) and _has_only_gpus(indexes)


def _has_only_gpus(indexes: Sequence[ProfileIndex]) -> bool:
    """Return whether only GPUs did device work."""
    return all(
        {device for device in index.device_ids if device >= 0} <= gpu_ids(index.profile.info)
        for index in indexes
    )


def _overall(recordings: Sequence[FloatArray]) -> float:
    return float(np.exp(np.mean([np.log(np.median(values)) for values in recordings])))


def _typical_waits(
    before: Recordings, after: Recordings, *, is_paired: bool
) -> tuple[float, float]:
    """Return how long a repeat of each side waited for a core; see `median_change`."""
    old, new = ([waited(index)[None, :] for index in side.indexes] for side in (before, after))
    typical = float(np.median([np.median(values) for values in old]))
    return typical, typical + float(median_change(old, new, is_paired=is_paired)[0])


def _verdict(
    total: Total,
    tables: tuple[ResultTable, ResultTable],
    refused: Sequence[Refusal],
    names: tuple[str, str],
    test: Test,
) -> tuple[Verdict, str]:
    """Return the verdict on the elapsed time, and the sentences that explain it.

    The tables have a row per op, and a row per line.
    """
    (ops, lines), (old, new) = tables, names
    settle = (
        f"Record both with repeats: `%%gpuprofile {old} --repeat 20`, then "
        f"`%%gpuprofile {new} --repeat 20 --baseline {old}`. In a script or a `with` block, call "
        "`epprof_nb.step()` at the start of each of 20 repetitions."
    )
    times = f"{duration(total.before_ns)} before, {duration(total.after_ns)} after"
    if refused:
        reasons = " ".join(dict.fromkeys(refusal.text for refusal in refused)) + remedy(refused)
        if any(refusal.kind == "repeats" for refusal in refused):
            reasons += f" {settle}"
        changes = largest_device_changes(ops, total.before_ns, total.after_ns)
        changes += largest_line_changes(lines, ops, total.before_ns, total.after_ns)
        if changes:
            reasons += f" Device times are compared anyway. {changes.rstrip()}"
        return "cannot be compared", reasons
    found = total.ratios
    if found is None:
        text = (
            f"One run each ({times}, {signed_percent(total.change)}). Single runs give no verdict, "
            "however large the difference: on an undisturbed machine, runs of the same code "
            f"differ by up to {percent(SINGLE_RUN_SPREAD)}, and on a busy one by more. {settle}"
        )
        return "cannot be compared", text
    verdict = verdict_on(found)
    change = f"{times} per repeat: {signed_percent(total.change)}"
    of_pairs = "median of the pairs" if total.is_paired else ""
    changes = largest_contributions(ops, total.before_ns, total.after_ns)
    changes += largest_line_changes(lines, ops, total.before_ns, total.after_ns)
    if verdict == "cannot tell" and test.conditions.is_notable:
        why = why_unclear(test.conditions, is_explained=bool(found.is_explained[0]))
        turn = "" if test.is_paired else f" {in_turn(names)}"
        return verdict, f"{change}. {changes}{why}{turn}"
    if _is_too_wide(found):
        of_pairs = f" ({of_pairs})" if of_pairs else ""
        text = f"{change}{of_pairs}. {changes}{on_width(found, test)} {steadier(test)}"
        return verdict, text
    interval = f"{signed_percent(found.low[0] - 1)} to {signed_percent(found.high[0] - 1)}"
    interval = f"{of_pairs}; {interval}" if of_pairs else interval
    text = f"{change} ({interval}). {changes}{on_spread(found, test)}"
    if test.conditions.is_notable:
        text += f" {on_load(test.conditions)}"
    if found.differs[0] and test.conditions.is_notable:
        return verdict, text  # the test finds one direction earlier than the other
    text += f" A change of {found.detectable[0] * 100:.1f} % or more would be found."
    if test.conditions.is_notable and not test.is_paired:
        text += f" {in_turn(names)}"
    return verdict, text


def _is_too_wide(found: Ratios) -> bool:
    return is_too_wide(float(found.low[0]) - 1, float(found.high[0]) - 1)
