"""Sets of time intervals, as sorted arrays of starts and ends in nanoseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.arrays.types import IntArray

EARLIEST, LATEST = -(2**61), 2**61
"""Bounds of times: 73 years around the start, so that int64 holds all differences."""


def clip_times(start_ns: IntArray, end_ns: IntArray) -> tuple[IntArray, IntArray]:
    """Clip times to `EARLIEST` and `LATEST`, so that int64 holds their differences.

    Times of an overflown clock can be off by centuries. Without such times, the arrays are returned
    unchanged.
    """
    if len(start_ns) and (
        min(start_ns.min(), end_ns.min()) < EARLIEST or max(start_ns.max(), end_ns.max()) > LATEST
    ):
        return np.clip(start_ns, EARLIEST, LATEST), np.clip(end_ns, EARLIEST, LATEST)
    return start_ns, end_ns


def union(starts: IntArray, ends: IntArray) -> tuple[IntArray, IntArray]:
    """Merge intervals that overlap or touch.

    Parameters
    ----------
    starts, ends
        int64 arrays of one length, nanoseconds, in any order. Intervals that do not end after
        their start are left out.

    Returns
    -------
    starts, ends
        int64 arrays: disjoint intervals in ascending order.

    Examples
    --------
    >>> starts, ends = union(np.array([0, 5, 20]), np.array([6, 10, 30]))
    >>> starts.tolist(), ends.tolist()
    ([0, 20], [10, 30])
    """
    real = ends > starts
    if not real.all():
        starts, ends = starts[real], ends[real]
    if not len(starts):
        return starts, ends
    # No interval is open when as many have ended as have started, so starts and ends can be sorted
    # independently.
    starts, ends = _ascending(starts), _ascending(ends)
    opens = np.flatnonzero(starts[1:] > ends[:-1]) + 1
    return starts[np.append(0, opens)], ends[np.append(opens, len(ends)) - 1]


def _ascending(times: IntArray) -> IntArray:
    """Return the times in ascending order; usually they already are."""
    return np.sort(times) if (times[1:] < times[:-1]).any() else times


def covered_by_group(groups: IntArray, starts: IntArray, ends: IntArray, n: int) -> IntArray:
    """Return the length of the union of each group's intervals.

    Parameters
    ----------
    groups
        int64 array: the group of each interval, below `n`.
    starts, ends
        int64 arrays of the same length, nanoseconds, in any order.
    n
        Number of groups.

    Returns
    -------
    covered
        int64 array of shape ``(n,)``, nanoseconds.

    Examples
    --------
    >>> groups, starts, ends = np.array([1, 0, 1]), np.array([4, 0, 0]), np.array([9, 7, 5])
    >>> covered_by_group(groups, starts, ends, 3).tolist()
    [7, 9, 0]
    """
    real = ends > starts
    groups, starts, ends = groups[real], starts[real], ends[real]
    covered = np.zeros(n, np.int64)
    if len(groups):
        # As in `union`, within each group.
        by_start = np.lexsort((starts, groups))
        starts, ends = starts[by_start], ends[np.lexsort((ends, groups))]
        groups = groups[by_start]
        begins = (groups[1:] != groups[:-1]) | (starts[1:] > ends[:-1])
        first = np.append(0, np.flatnonzero(begins) + 1)
        last = np.append(first[1:], len(groups)) - 1
        np.add.at(covered, groups[first], ends[last] - starts[first])
    return covered


def complement(starts: IntArray, ends: IntArray, begin: int, end: int) -> tuple[IntArray, IntArray]:
    """Return the gaps of disjoint, ascending intervals between `begin` and `end`.

    Parameters
    ----------
    starts, ends
        int64 arrays as `union` returns them, nanoseconds.
    begin, end
        The time range, nanoseconds.

    Returns
    -------
    starts, ends
        int64 arrays: the free intervals in ascending order, none of them empty.
    """
    free_from = np.maximum(np.concatenate(([begin], ends)), begin)
    free_until = np.minimum(np.concatenate((starts, [end])), end)
    free = free_until > free_from
    return free_from[free], free_until[free]


def covered_before(
    starts: IntArray, ends: IntArray, times: npt.NDArray[Any], total: IntArray | None = None
) -> npt.NDArray[Any]:
    """Return the time that disjoint, ascending intervals cover before each of `times`.

    Parameters
    ----------
    starts, ends
        int64 arrays as `union` returns them, nanoseconds.
    times
        Array of any shape, nanoseconds.
    total
        Running sum of the intervals' lengths, shape ``(intervals + 1,)``; computed if None.

    Returns
    -------
    covered
        Array of the shape of `times`, nanoseconds; exact for integer times.

    Examples
    --------
    >>> covered_before(np.array([0, 20]), np.array([10, 30]), np.array([5, 15, 25])).tolist()
    [5, 10, 15]
    """
    if not len(starts):
        return np.zeros_like(times)
    if total is None:
        total = np.concatenate(([0], np.cumsum(ends - starts)))
    at = np.maximum(np.searchsorted(starts, times, "right") - 1, 0)
    covered: npt.NDArray[Any] = total[at] + np.clip(times, starts[at], ends[at]) - starts[at]
    return covered
