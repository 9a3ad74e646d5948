"""Nesting of ops on the op stack of their thread, from their times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray

_MICROSECOND = 1_000
_SLACK = 2
"""Units by which the rounding of a start and a duration can move an end."""


class OpStacks:
    """Stacks of ops by thread: each op is below the innermost open op that contains it.

    If a later op begins in an op and ends after it, the op does not contain the later one and
    leaves the stack where that begins.

    Parameters
    ----------
    thread, start, end
        int64 arrays, one value per op.

    Attributes
    ----------
    parent
        int64 array: row of the innermost op that was open at the start and contains the op;
        `MISSING` for none.
    left
        int64 array: time at which each op leaves the stack, at its end or before.

    Examples
    --------
    >>> stacks = OpStacks(np.array([1, 1, 2]), np.array([0, 2, 3]), np.array([9, 5, 4]))
    >>> stacks.parent.tolist(), stacks.open_at(np.array([1, 1]), np.array([4, 7])).tolist()
    ([-1, 0, -1], [1, 0])
    """

    def __init__(self, thread: IntArray, start: IntArray, end: IntArray) -> None:
        # Among ops that start together, the longest is the outermost.
        self._order = np.lexsort((np.arange(len(thread)), -end, start, thread))
        self._thread, self._start = thread, start
        columns = (column[self._order].tolist() for column in (thread, start, end))
        parents, left = _nested(list(zip(*columns, strict=True)), rounding(start, end))
        self.parent, self.left = np.empty_like(self._order), np.empty_like(self._order)
        self.parent[self._order] = np.append(self._order, MISSING)[parents]
        self.left[self._order] = left

    def open_at(self, thread: IntArray, time: IntArray) -> IntArray:
        """Return the row of the innermost op open on each thread at each time, or `MISSING`."""
        # The innermost op changes where one begins or leaves the stack. An op that begins and
        # leaves at one time is never open.
        shown = self._order[self.left[self._order] > self._start[self._order]]
        count = len(shown)
        threads = np.concatenate([self._thread[shown[::-1]], self._thread[shown], thread])
        times = np.concatenate([self.left[shown[::-1]], self._start[shown], time])
        innermost = np.concatenate([self.parent[shown[::-1]], shown])
        # At one time the inner ops leave before the outer ones, then others begin.
        order = np.lexsort((np.arange(len(times)), times, threads))
        is_change = order < 2 * count
        last = np.maximum.accumulate(np.where(is_change, np.arange(len(order)), MISSING))
        change = np.append(order, MISSING)[last]
        same = (last != MISSING) & (np.append(threads, MISSING)[change] == threads[order])
        found = np.full(len(order), MISSING, np.int64)
        found[order[same]] = innermost[change[same]]
        return found[2 * count :]


def rounding(start: IntArray, end: IntArray) -> int:
    """Return how late (ns) a nested op may end, because starts and durations are rounded."""
    is_whole = not (start % _MICROSECOND).any() and not (end % _MICROSECOND).any()
    return _SLACK * (_MICROSECOND if is_whole else 1)


def _nested(ops: list[tuple[int, int, int]], slack: int) -> tuple[list[int], list[int]]:
    """Return the position of the parent of each op, and when it leaves the stack.

    Parameters
    ----------
    ops
        Thread, start and end of each op, sorted by thread and start; among ops that start together,
        the longest comes first.
    slack
        Time by which a child may end after its parent, because times are rounded.
    """
    parents, left = [MISSING] * len(ops), [0] * len(ops)
    stack: list[int] = []
    current = None
    for at, (thread, begin, end) in enumerate(ops):
        left[at] = end
        if thread != current:
            stack.clear()
            current = thread
        while stack:
            above = stack[-1]
            until = left[above]
            if begin < until:
                if end <= until:
                    break
                if end - until <= slack and end - begin <= until - ops[above][1]:
                    left[at] = until
                    break
                left[above] = begin
            stack.pop()
        if stack:
            parents[at] = stack[-1]
        stack.append(at)
    return parents, left
