"""Nesting of ops on the op stack of their thread, from their times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray


class OpStacks:
    """Stacks of ops by thread: each op is below the innermost op that was open at its start.

    Parameters
    ----------
    thread, start, end
        int64 arrays, one value per op.

    Attributes
    ----------
    parent
        int64 array: row of the op on top of the stack at the start; `MISSING` for none.

    Examples
    --------
    >>> stacks = OpStacks(np.array([1, 1, 2]), np.array([0, 2, 3]), np.array([9, 5, 4]))
    >>> stacks.parent.tolist(), stacks.open_at(np.array([1, 1]), np.array([4, 7])).tolist()
    ([-1, 0, -1], [1, 0])
    """

    def __init__(self, thread: IntArray, start: IntArray, end: IntArray) -> None:
        # Of ops that start together, the longest is the outermost.
        self._order = np.lexsort((np.arange(len(thread)), -end, start, thread))
        self._thread, self._start, self._end = thread, start, end
        self.parent = np.full(len(thread), MISSING, np.int64)
        rows = self._order.tolist()
        parents = [MISSING] * len(rows)
        stack: list[tuple[int, int]] = []
        current = None
        columns = (column[self._order].tolist() for column in (thread, start, end))
        for i, (of_thread, begin, until) in enumerate(zip(*columns, strict=True)):
            if of_thread != current:
                stack.clear()
                current = of_thread
            while stack and stack[-1][1] <= begin:
                stack.pop()
            if stack:
                parents[i] = stack[-1][0]
            stack.append((rows[i], until))
        self.parent[self._order] = parents

    def open_at(self, thread: IntArray, time: IntArray) -> IntArray:
        """Return the row of the innermost op open on each thread at each time, or `MISSING`."""
        found = np.full(len(thread), MISSING, np.int64)
        threads = self._thread[self._order]
        for of_thread in np.unique(thread).tolist():
            low, high = np.searchsorted(threads, (of_thread, of_thread + 1))
            rows = self._order[low:high]
            queries = np.flatnonzero(thread == of_thread)
            last = np.searchsorted(self._start[rows], time[queries], "right") - 1
            found[queries] = np.append(rows, MISSING)[last]
        ends, parents = np.append(self._end, 0), np.append(self.parent, MISSING)
        while (ended := (found != MISSING) & (ends[found] <= time)).any():
            found[ended] = parents[found[ended]]
        return found
