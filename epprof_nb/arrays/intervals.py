"""Sets of time intervals, as sorted arrays of starts and ends in nanoseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from epprof_nb import _native
from epprof_nb.arrays.positions import positions

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from epprof_nb.arrays.types import BoolArray, IntArray

EARLIEST, LATEST = -(2**61), 2**61
"""Bounds of times: 73 years around the start, so that int64 holds all differences."""

Intervals: TypeAlias = tuple["IntArray", "IntArray"]


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
    columns = [np.ascontiguousarray(column, np.int64) for column in (starts, ends)]
    merged = np.empty((2, len(starts)), np.int64)
    count = _native.merge_intervals(*merged, *columns)
    if count >= 0:
        return merged[0, :count].copy(), merged[1, :count].copy()
    real = ends > starts
    starts, ends = starts[real], ends[real]
    # No interval is open when as many have ended as have started, so starts and ends can be sorted
    # independently.
    starts, ends = _ascending(starts), _ascending(ends)
    opens = np.flatnonzero(starts[1:] > ends[:-1]) + 1
    return starts[np.append(0, opens)], ends[np.append(opens, len(ends)) - 1]


def contain(starts: IntArray, ends: IntArray, times: IntArray) -> BoolArray:
    """Return which of `times` are in an interval, which includes its start but not its end.

    Examples
    --------
    >>> contain(np.array([0, 2, 20]), np.array([10, 4, 30]), np.array([4, 10, 20])).tolist()
    [True, False, True]
    """
    # As many intervals have ended as have started when none is open, as in `union`.
    started, ended = (
        np.searchsorted(_ascending(bounds), times, side="right") for bounds in (starts, ends)
    )
    return started > ended


def union_of(intervals: Sequence[Intervals]) -> Intervals:
    """Return the union of several sets of intervals."""
    return union(*(np.concatenate(times) for times in zip(*intervals, strict=True)))


def length(starts: IntArray, ends: IntArray) -> int:
    """Return the total length of disjoint intervals, ns."""
    return int((ends - starts).sum())


def covered_until(begins: IntArray, ends: IntArray, times: IntArray) -> IntArray:
    """Return how much intervals cover before each time.

    Parameters
    ----------
    begins, ends
        int64 arrays: disjoint intervals in ascending order, nanoseconds.
    times
        int64 array: times, nanoseconds, in any order.

    Returns
    -------
    covered
        int64 array: for each time, the sum of the intervals up to it.

    Examples
    --------
    >>> covered_until(np.array([0, 20]), np.array([10, 30]), np.array([5, 15, 25])).tolist()
    [5, 10, 15]
    """
    lengths = np.append(0, np.cumsum(ends - begins))
    at = positions(begins, times, "right")
    beyond = np.append(0, ends)[at] - times
    covered: IntArray = lengths[at] - np.where(at > 0, np.maximum(beyond, 0), 0)
    return covered


class CoveredUntil:
    """Time that intervals cover before some times, if the intervals come piece by piece.

    Parameters
    ----------
    times
        int64 array: the times, nanoseconds, in any order.

    Examples
    --------
    >>> covered = CoveredUntil(np.array([5, 25]))
    >>> covered.add(np.array([0, 8]), np.array([10, 22]))
    >>> covered.add(np.array([20]), np.array([30]))
    >>> covered.until(np.array([25, 5])).tolist()
    [25, 5]
    """

    def __init__(self, times: IntArray) -> None:
        self._times: IntArray = np.unique(times)
        self._covered = np.zeros(len(self._times), np.int64)
        self._known = 0  # number of times whose result is final
        self._before = 0  # covered time before the last interval
        self._last = np.empty(0, np.int64), np.empty(0, np.int64)
        self._latest = EARLIEST

    def add(self, starts: IntArray, ends: IntArray) -> None:
        """Add the next intervals.

        Raises
        ------
        ValueError
            If they are not in the order of their starts.
        """
        if not len(starts):
            return
        if starts[0] < self._latest or (starts[1:] < starts[:-1]).any():
            raise ValueError("the intervals are not in the order of their starts")
        self._latest = int(starts[-1])
        last_start, last_end = self._last
        starts, ends = union(np.append(last_start, starts), np.append(last_end, ends))
        # Later intervals cover nothing before their start.
        self._resolve(int(np.searchsorted(self._times, self._latest, side="right")), starts, ends)
        self._before += int((ends[:-1] - starts[:-1]).sum())
        self._last = starts[-1:], ends[-1:]

    def _resolve(self, upto: int, begins: IntArray, ends: IntArray) -> None:
        now = slice(self._known, max(upto, self._known))
        self._covered[now] = self._before + covered_until(begins, ends, self._times[now])
        self._known = now.stop

    def until(self, times: IntArray) -> IntArray:
        """Return the covered time before each of some of the times, once all has been added."""
        self._resolve(len(self._times), *self._last)
        found: IntArray = self._covered[np.searchsorted(self._times, times)]
        return found


def _ascending(times: IntArray) -> IntArray:
    """Return the times in ascending order; usually they already are.

    Times of several streams or tables are a few ascending runs, which a stable sort merges.
    """
    return np.sort(times, kind="stable") if (times[1:] < times[:-1]).any() else times


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


def intersection(
    one: tuple[IntArray, IntArray], other: tuple[IntArray, IntArray]
) -> tuple[IntArray, IntArray]:
    """Return the common time of two sets of disjoint, ascending intervals.

    Parameters
    ----------
    one, other
        Starts and ends as `union` returns them, nanoseconds.

    Returns
    -------
    starts, ends
        int64 arrays: disjoint intervals in ascending order.

    Examples
    --------
    >>> one = union(np.array([0, 20]), np.array([10, 30]))
    >>> starts, ends = intersection(one, union(np.array([5]), np.array([25])))
    >>> starts.tolist(), ends.tolist()
    ([5, 20], [10, 25])
    """
    # The complement of the union of both complements.
    outside = [complement(*intervals, EARLIEST, LATEST) for intervals in (one, other)]
    return complement(*union(*map(np.concatenate, zip(*outside, strict=True))), EARLIEST, LATEST)


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
    flat = np.ravel(times)
    if flat.dtype == np.int64:
        found = np.zeros(len(flat), np.int64)
        _add_covered_before(found, (starts, ends, total), flat, 1)
        return found.reshape(times.shape)
    at = np.maximum(np.searchsorted(starts, flat, "right") - 1, 0)
    covered: npt.NDArray[Any] = total[at] + np.clip(flat, starts[at], ends[at]) - starts[at]
    return covered.reshape(times.shape)


def _add_covered_before(
    covered: IntArray, intervals: tuple[IntArray, IntArray, IntArray], times: IntArray, sign: int
) -> None:
    """Add `sign` times the time that intervals cover before each of `times`.

    `intervals` are the starts, ends and running sum of `covered_before`.
    """
    starts, ends, total, times = (
        np.ascontiguousarray(column, np.int64) for column in (*intervals, times)
    )
    _native.add_covered_before(covered, starts, ends, total, times, sign)


def covered_between(starts: IntArray, ends: IntArray, begin: IntArray, until: IntArray) -> IntArray:
    """Return the time that disjoint, ascending intervals cover from each begin to its end.

    Parameters
    ----------
    starts, ends
        int64 arrays as `union` returns them, nanoseconds.
    begin, until
        int64 arrays of one length, nanoseconds.

    Examples
    --------
    >>> starts, ends = np.array([0, 20]), np.array([10, 30])
    >>> covered_between(starts, ends, np.array([5, 12]), np.array([25, 15])).tolist()
    [10, 0]
    """
    total = np.concatenate(([0], np.cumsum(ends - starts)))
    covered = np.zeros(len(until), np.int64)
    _add_covered_before(covered, (starts, ends, total), until, 1)
    _add_covered_before(covered, (starts, ends, total), begin, -1)
    return covered
