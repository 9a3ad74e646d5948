"""Comparison of the memory that two sides hold: bytes at the peak and at the end, by op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.op_tree import NO_OP
from epprof_nb.analysis.base.result_table import ResultTable, categorical
from epprof_nb.analysis.memory.memory_peak import ALWAYS_BEFORE, InUse, moment
from epprof_nb.analysis.memory.memory_without_blocks import without_timeline
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.util.format import signed_percent, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.compare.match_ops import Pair
    from epprof_nb.analysis.compare.recordings import Recordings
    from epprof_nb.arrays.types import IntArray


@dataclass(frozen=True, slots=True)
class MemoryComparison:
    """Bytes in use on both sides: the median over the recordings of each; nothing if unknown.

    Memory from before a recording does not count.

    Attributes
    ----------
    peak, steady
        Bytes of the old and of the new side, at the peak and at the end of the recording.
    ops
        The table ``compare_memory`` of `epprof_nb.data.result_columns.TABLES`.
    is_known
        Whether all recordings have blocks of memory.
    """

    peak: tuple[int, int]
    steady: tuple[int, int]
    ops: ResultTable
    is_known: bool = True

    @property
    def change(self) -> float | None:
        """Relative change of the peak; infinite if nothing was in use before, None if unknown."""
        if not self.is_known:
            return None
        before, after = self.peak
        if not before:
            return float("inf") if after else 0.0
        return after / before - 1

    @property
    def sentences(self) -> list[str]:
        """The peak and the end of both sides, and where to find them by op; empty if unknown."""
        if self.change is None:
            return []
        before, after = self.peak
        change = "new" if self.change == float("inf") else signed_percent(self.change)
        text = (
            f"Memory in use at the peak: {size(before)} before, {size(after)} after ({change}); at "
            f"the end {size(self.steady[0])} before, {size(self.steady[1])} after. "
            "`.memory` has it by op."
        )
        return [text]


def has_memory(index: ProfileIndex) -> bool:
    """Return whether the blocks of memory of a recording are known."""
    recorded = index.profile.info.get("recording") or {}
    details = {part.strip() for part in str(recorded.get("detail", "")).split(",")}
    return bool({"memory", "all"} & details) or len(index.profile.tables["memory_blocks"]) > 0


def compare_memory(
    pairs: Sequence[Pair], texts: Sequence[str], before: Recordings, after: Recordings
) -> MemoryComparison:
    """Return the comparison.

    Parameters
    ----------
    pairs, texts
        The matched paths of ops, and the text of each.
    before, after
        The recordings of both sides.
    """
    is_known = all(has_memory(index) for side in (before, after) for index in side.indexes)
    (old, old_totals), (new, new_totals) = _bytes(before), _bytes(after)
    values = np.concatenate(
        [_taken(old, [pair.old for pair in pairs]), _taken(new, [pair.new for pair in pairs])]
    )
    delta = values[2] - values[0]
    rows = np.flatnonzero(values.any(axis=0) & is_known)
    rows = rows[np.lexsort((-values[2][rows], -abs(delta[rows])))]
    names = ("peak_before_bytes", "steady_before_bytes", "peak_after_bytes", "steady_after_bytes")
    columns = dict(zip(names, values[:, rows], strict=True))
    order = ("peak_before_bytes", "peak_after_bytes", "steady_before_bytes", "steady_after_bytes")
    table = ResultTable(
        {
            "path": categorical([texts[row] or NO_OP for row in rows.tolist()]),
            "status": categorical([_status(pairs[row]) for row in rows.tolist()]),
            "delta_bytes": delta[rows],
            **{name: columns[name] for name in order},
        }
    )
    peak, steady = zip(old_totals, new_totals, strict=True)
    return MemoryComparison(peak, steady, table, is_known)


def _taken(of_paths: IntArray, paths: Sequence[int | None]) -> IntArray:
    """Return the values of some paths; 0 for those that the side lacks."""
    known = np.append(of_paths, np.zeros((2, 1), np.int64), axis=1)
    return known[:, [-1 if path is None else path for path in paths]]


def _status(pair: Pair) -> str:
    if pair.old is None or pair.new is None:
        return "added" if pair.old is None else "removed"
    return "renamed" if pair.is_renamed else "matched"


def _bytes(side: Recordings) -> tuple[IntArray, tuple[int, int]]:
    """Return bytes by path at the peak and at the end, of shape (2, paths), and their totals."""
    paths, totals = [], []
    for index, path in zip(side.indexes, side.paths, strict=True):
        blocks, in_use = index.profile.tables["memory_blocks"], index.cached(InUse)
        owner = path[index.tree.rows(blocks["op_id"])]
        # What was there before is not of the code that is compared.
        is_own = (in_use.begin != ALWAYS_BEFORE) | without_timeline(index)
        times = (in_use.peak_of(is_own)[0], moment(index, "end"))
        held = [in_use.at(time) & is_own for time in times]
        count = len(side.side.children)
        paths.append(
            [sum_by_group(owner[rows], blocks["bytes"][rows], count)[:count] for rows in held]
        )
        totals.append([int(blocks["bytes"][rows].sum()) for rows in held])
    peak, steady = np.median(totals, axis=0).astype(np.int64).tolist()
    return np.median(paths, axis=0).astype(np.int64), (peak, steady)
