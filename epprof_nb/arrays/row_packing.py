"""Interval packing: rows for events that overlap, in as few rows as needed."""

from __future__ import annotations

from bisect import bisect_left
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from epprof_nb.arrays.types import BoolArray, IntArray

_FEW = 64
"""Up to this many clusters are scanned one by one; an array operation costs as much."""
_MANY_ROWS = 64
"""Number of rows to fill one at a time. The remaining events are packed one by one."""


def pack_rows(
    start: IntArray, end: IntArray, first_row: IntArray | None = None, rows: int | None = None
) -> IntArray:
    """Assign each event the first row in which it does not overlap an earlier event.

    Parameters
    ----------
    start, end
        int64 ns; no event ends before it starts.
    first_row
        The lowest row that each event may take; 0 if None.
    rows
        Number of rows; events that fit nowhere share the last row. As many as needed if None.

    Returns
    -------
    numbers
        int64, from 0. Events of one row do not overlap, except in the last of `rows`.

    Examples
    --------
    >>> pack_rows(np.array([0, 2, 4]), np.array([3, 5, 6])).tolist()
    [0, 1, 0]
    """
    numbers = np.full(len(start), 0 if rows is None else rows - 1, np.int64)
    left = np.lexsort((-end, start))
    # Without a limit every event is placed: the last row needs no special case.
    for row in range(_MANY_ROWS if rows is None else rows - 1):
        if not len(left):
            return numbers
        able = np.ones(len(left), np.bool_) if first_row is None else first_row[left] <= row
        candidates = left[able]
        taken = greedy_non_overlapping(start[candidates], end[candidates])
        numbers[candidates[taken]] = row
        keep = np.ones(len(left), np.bool_)
        keep[np.flatnonzero(able)[taken]] = False
        left = left[keep]
    if rows is None:
        numbers[left] = _MANY_ROWS + _one_by_one(start[left].tolist(), end[left].tolist())
    return numbers


def greedy_non_overlapping(start: IntArray, end: IntArray) -> BoolArray:
    """Return a mask of events in which each one starts after the previous one ended.

    Parameters
    ----------
    start, end
        int64, ascending by start.
    """
    taken = np.zeros(len(start), np.bool_)
    if not len(start):
        return taken
    latest_end = np.maximum.accumulate(end)
    # An event that overlaps none before it is always taken, and opens a cluster.
    opens = np.flatnonzero(np.concatenate(([True], start[1:] >= latest_end[:-1])))
    close = np.append(opens[1:], len(start))
    taken[opens] = True
    at, until = opens[close - opens > 1], close[close - opens > 1]
    while len(at) > _FEW:
        at = np.maximum(np.searchsorted(start, end[at]), at + 1)
        at, until = at[at < until], until[at < until]
        taken[at] = True
    for first, stop in zip(at.tolist(), until.tolist(), strict=True):
        _take_cluster(start[first:stop], end[first:stop], taken[first:stop])
    return taken


def _take_cluster(start: IntArray, end: IntArray, taken: BoolArray) -> None:
    starts, ends = start.tolist(), end.tolist()
    at = 0
    while at < len(starts):
        taken[at] = True
        at = max(bisect_left(starts, ends[at], at), at + 1)


def _one_by_one(starts: list[int], ends: list[int]) -> IntArray:
    """Pack events, ascending by start, into rows with a heap, which is fast even with many rows."""
    rows: list[int] = []
    open_until: list[tuple[int, int]] = []
    for start, end in zip(starts, ends, strict=True):
        is_free = open_until and open_until[0][0] <= start
        row = heappop(open_until)[1] if is_free else len(open_until)
        heappush(open_until, (end, row))
        rows.append(row)
    return np.array(rows, np.int64)
