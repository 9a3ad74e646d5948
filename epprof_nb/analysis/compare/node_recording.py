"""Number and cost of the ONNX Runtime runs of each side that were recorded node by node.

By default, the recorded runs depend on earlier runs of the session, so two sides with the same
option may differ in their number. They can still be compared: like the load of the machine, the
cost of recording bounds how much longer a side took.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.compare.elapsed_parts import elapsed
from epprof_nb.analysis.compare.times_per_repeat import repeat_numbers, repeats_of
from epprof_nb.analysis.onnx.profiler_slowdown import call_durations
from epprof_nb.analysis.onnx.recorded_runs import RECORDED, node_events, run_rows
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import plural, three_digits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

_NOTABLE_SLOWDOWN = 1.02
"""Minimum notable ratio of slowdowns by recording."""
_NOTABLE_RUNS = 0.1
"""Minimum notable difference in the share of runs recorded node by node."""
_UNKNOWN = math.log(10)
"""Logarithm of the slowdown if no run was timed without recording. Runs with many small nodes take
up to ten times as long."""
_MOST = 0.99
"""Maximum share of a repeat that counts as the cost of recording."""


class Cost(NamedTuple):
    """Logarithms of the slowdown of the median repeat, and of the runs in it."""

    total: float = 0.0
    host: float = 0.0


class NodeRecording(NamedTuple):
    """Costs of recording nodes on the old and the new side, with texts; empty for none."""

    costs: tuple[Cost, Cost] = (Cost(), Cost())
    texts: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class _Runs:
    """How the runs of ONNX Runtime sessions of one side were recorded.

    Attributes
    ----------
    recorded, total
        Number of runs that were recorded node by node, and of all.
    share
        Share of recorded runs in the median repeat.
    slowdown
        Time of the runs of the median repeat relative to unprofiled ones; None if unknown.
    cost
        Cost of recording nodes.
    modes
        The known modes of recording nodes.
    """

    recorded: int
    total: int
    share: float
    slowdown: float | None
    cost: Cost
    modes: frozenset[str]

    @property
    def text(self) -> str:
        """Number of runs that were recorded node by node, as text."""
        return f"{self.recorded:,} of {plural(self.total, 'run')}"


def node_recording(old: Sequence[ProfileIndex], new: Sequence[ProfileIndex]) -> NodeRecording:
    """Return the cost of recording nodes for two sides with the same option."""
    sides = _runs(old), _runs(new)
    if not _have_one_mode(*sides) or abs(sides[0].share - sides[1].share) < _NOTABLE_RUNS:
        return NodeRecording()
    # What both sides have in common does not change their ratio.
    costs = _beyond(sides[0].cost, sides[1].cost), _beyond(sides[1].cost, sides[0].cost)
    if max(map(max, costs)) < math.log(_NOTABLE_SLOWDOWN):
        return NodeRecording()
    texts = [
        f"ONNX Runtime's nodes were recorded in {side.text} (`--ort-nodes off` records none)"
        for side in sides
    ]
    return NodeRecording(costs, (texts[0], texts[1]))


def different_modes(old: Sequence[ProfileIndex], new: Sequence[ProfileIndex]) -> Iterator[str]:
    """Yield a text if recording nodes cost the sides different times due to their options."""
    sides = _runs(old), _runs(new)
    if not all(side.total for side in sides) or _have_one_mode(*sides):
        return  # runs on one side only are a change of the code
    differ = bool(sides[0].modes and sides[1].modes)
    difference = abs(sides[0].share - sides[1].share)
    if difference < _NOTABLE_RUNS and not (differ and difference):
        return
    slowdowns = [side.slowdown for side in sides if side.slowdown is not None]
    cost = ""
    if len(slowdowns) == len(sides):
        if max(slowdowns) < _NOTABLE_SLOWDOWN * min(slowdowns):
            return
        cost = (
            f" (the runs of a repeat took {three_digits(slowdowns[0])} and "
            f"{three_digits(slowdowns[1])} times as long as without the profiler)"
        )
    yield (
        f"ONNX Runtime's nodes were recorded in {sides[0].text} of the old one and in "
        f"{sides[1].text} of the new{cost}; `--ort-nodes every` records all"
    )


def _have_one_mode(old: _Runs, new: _Runs) -> bool:
    return bool(old.modes) and old.modes == new.modes


def _beyond(one: Cost, other: Cost) -> Cost:
    return Cost(max(one.total - other.total, 0.0), max(one.host - other.host, 0.0))


def _runs(side: Sequence[ProfileIndex]) -> _Runs:
    shares, slowdowns, costs, recorded, total = [], [], [], 0, 0
    modes = set()
    for index in side:
        ops = index.profile.tables["ops"]
        rows = run_rows(ops)
        repeat, repeats = repeat_numbers(index, ops["repeat"])[rows], repeats_of(index)
        rows, repeat = rows[repeat >= 0], repeat[repeat >= 0]
        is_recorded = np.array(node_events(ops, rows), object) == RECORDED
        call, unprofiled = call_durations(ops, rows)
        known = (call != MISSING) & (unprofiled != MISSING)
        recorded, total = recorded + int(is_recorded.sum()), total + len(rows)
        share = _median_ratio(repeat, repeats, is_recorded, np.ones(len(rows), np.int64))
        shares.append(share)
        if known.all():
            slowdowns.append(_median_ratio(repeat, repeats, call, unprofiled))
        if known[is_recorded].all():
            added = np.where(is_recorded, np.maximum(call - unprofiled, 0), 0)
            costs.append(_cost(index, repeat, added, call))
        else:
            costs.append(Cost(_UNKNOWN, _UNKNOWN) if share else Cost())
        mode = (index.profile.info.get("recording") or {}).get("ort_nodes")
        if mode and len(rows):
            modes.add(str(mode))
    is_known = bool(total) and len(slowdowns) == len(side)
    return _Runs(
        recorded,
        total,
        float(np.mean(shares)),
        float(np.mean(slowdowns)) if is_known else None,
        Cost(*np.mean(costs, axis=0).tolist()),
        frozenset(modes),
    )


def _cost(index: ProfileIndex, repeat: IntArray, added: IntArray, call: IntArray) -> Cost:
    """Return the cost of recording nodes, which took `added` ns of each run."""
    whole = elapsed(index)
    of_runs, adds = (
        np.bincount(repeat, weights=values, minlength=len(whole))
        for values in (np.maximum(call, added), added)
    )
    logs = []
    for times in (whole, of_runs):
        share = np.divide(adds, times, out=np.zeros(len(times)), where=times > 0)
        logs.append(float(np.median(-np.log1p(-np.minimum(share, _MOST)))))
    return Cost(*logs)


def _median_ratio(
    repeat: IntArray, repeats: int, above: IntArray | BoolArray, below: IntArray
) -> float:
    """Return the median over the repeats of the ratio of two sums; 0 without any run."""
    sums = [np.bincount(repeat, weights=values, minlength=repeats) for values in (above, below)]
    is_known = sums[1] > 0
    return float(np.median(sums[0][is_known] / sums[1][is_known])) if is_known.any() else 0.0
