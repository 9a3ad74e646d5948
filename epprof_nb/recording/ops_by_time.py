"""The op that was running at some time, if the ops leave no doubt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.arrays.ancestors import nearest_ancestor
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table


UNMARKED, UNKNOWN_THREAD = -1, -2
"""Threads of events on another thread than the marked one, and of events that may be on any."""
_WAITING = "autograd"
"""Type of the op in which a thread waits for autograd's threads."""

_MOST_CHANGES = 8
"""Changes of the innermost op during one event; after more of them its op is unknown."""


class OpsByTime:
    """The ops of a recording, for events of which only the time is known.

    An event belongs to the innermost op that was open on its thread. If its thread is unknown and
    several had ops open, it belongs to the op that is inside of all the others, as autograd's ops
    are inside of the backward pass that the cell's thread waits for. If none is, the op is unknown.

    If a thread is marked, an event without a mark belongs to an op of another thread. If the marked
    thread waits in a backward pass, the event belongs to that pass, unless threads outside of
    the pass are known to allocate.

    Rows of several executions (`count`) and of suspended ops do not say when they were open. Events
    within such an op belong to the op around it.

    Parameters
    ----------
    ops
        A table of schema `epprof_nb.data.schema.OPS`.
    marked
        The marked thread; None without one.
    """

    def __init__(self, ops: Table, marked: int | None = None) -> None:
        self._id = ops["op_id"]
        parent = IdIndex(self._id).rows(ops["parent_op_id"])
        # A parent comes first; anything else is a damaged recording.
        self._parent = np.where(parent < np.arange(len(parent)), parent, MISSING)
        self._depth = _depths(self._parent)
        is_sure = (ops["count"] == 1) & (ops["suspended_ns"] <= 0)
        is_sure &= has_host_time(ops)
        is_sure &= ops["end_ns"] > ops["start_ns"]
        self._is_waiting = np.append(ops.names("op_type").equals(_WAITING), False)
        self._threads = {
            thread: _Thread(rows, ops, self._parent, self._depth)
            for thread in np.unique(ops["thread_id"][is_sure]).tolist()
            for rows in [np.flatnonzero(is_sure & (ops["thread_id"] == thread))]
        }
        self._marked = marked
        self._others = [thread for thread in self._threads if thread != marked]

    def ids(
        self,
        begin_ns: IntArray,
        end_ns: IntArray,
        thread: IntArray | None = None,
        *,
        others_allocate: bool = False,
    ) -> IntArray:
        """Return the op of each event.

        Parameters
        ----------
        begin_ns, end_ns
            int64 arrays: the times between which each event was.
        thread
            int64 array: the thread of each, as of `thread_marks`; None if all are unknown.
        others_allocate
            As `others_allocate` says of the allocations.

        Returns
        -------
        op_id
            int64 array; `MISSING` if no op was open, or if it is not certain which one.
        """
        found = np.full(len(begin_ns), MISSING, np.int64)
        if self._marked is None or thread is None:
            thread = np.full(len(begin_ns), UNKNOWN_THREAD)
        for number in np.unique(thread).tolist():
            rows = np.flatnonzero(thread == number)
            times = begin_ns[rows], end_ns[rows]
            if number == UNKNOWN_THREAD:
                found[rows] = self._rows(*times, self._threads)
            elif number != UNMARKED:
                found[rows] = self._rows(*times, [number])
            else:
                found[rows] = self._rows(*times, self._others)
                if not others_allocate:
                    within = self._rows(*times, self._threads)
                    found[rows] = np.where(self._waits(*times), within, found[rows])
        return np.append(self._id, MISSING)[found]

    def others_allocate(self, begin_ns: IntArray, end_ns: IntArray, thread: IntArray) -> bool:
        """Return whether a thread without ops allocates while no backward pass runs."""
        rows = np.flatnonzero(thread == UNMARKED)
        times = begin_ns[rows], end_ns[rows]
        has_op = self._rows(*times, self._others) != MISSING
        return self._marked is not None and bool((~self._waits(*times) & ~has_op).any())

    def _waits(self, begin_ns: IntArray, end_ns: IntArray) -> BoolArray:
        """Return at which times the marked thread waits for a backward pass."""
        marked = [] if self._marked is None else [self._marked]
        waits: BoolArray = self._is_waiting[self._rows(begin_ns, end_ns, marked)]
        return waits

    def _rows(self, begin_ns: IntArray, end_ns: IntArray, threads: Iterable[int]) -> IntArray:
        """Return the row of the op of each event, which was on one of some threads."""
        found = np.full(len(begin_ns), MISSING, np.int64)
        is_known = np.ones(len(begin_ns), np.bool_)
        for thread in (self._threads[number] for number in threads if number in self._threads):
            first, last = thread.changes(begin_ns, end_ns)
            op = thread.top[first]
            for change in range(1, 1 + int((last - first).clip(max=_MOST_CHANGES).max(initial=0))):
                rows = np.flatnonzero(first + change <= last)
                op[rows] = self._common(op[rows], thread.top[first[rows] + change])
            op[last - first > _MOST_CHANGES] = MISSING
            self._choose(found, is_known, op)
        found[~is_known] = MISSING
        return found

    def _choose(self, found: IntArray, is_known: BoolArray, op: IntArray) -> None:
        """Merge the op of another thread: keep the inner one."""
        both = np.flatnonzero((found != MISSING) & (op != MISSING))
        found[:] = np.where(found == MISSING, op, found)
        if not len(both):
            return
        one, other = found[both], op[both]
        shared = self._common(one, other)
        is_outer, is_inner = shared == one, shared == other
        found[both] = np.where(is_outer, other, one)
        is_known[both] &= is_outer | is_inner

    def _common(self, one: IntArray, other: IntArray) -> IntArray:
        """Return the innermost op that is or contains both."""
        one, other = one.copy(), other.copy()
        depth = np.append(self._depth, -1)
        parent = np.append(self._parent, MISSING)
        while True:
            todo = np.flatnonzero(one != other)
            if not len(todo):
                return one
            deeper = depth[one[todo]] >= depth[other[todo]]
            equal = depth[one[todo]] == depth[other[todo]]
            ups, others = todo[deeper], todo[~deeper | equal]
            one[ups] = parent[one[ups]]
            other[others] = parent[other[others]]


class _Thread:
    """The innermost open op of a thread over time."""

    def __init__(self, rows: IntArray, ops: Table, parent: IntArray, depth: IntArray) -> None:
        is_own = np.zeros(len(parent), np.bool_)
        is_own[rows] = True
        around = np.append(nearest_ancestor(parent, is_own), MISSING)[np.append(parent, MISSING)]
        start, end = ops["start_ns"][rows], ops["end_ns"][rows]
        # An op of another thread that contains this one may end first.
        outer = around[rows]
        outlives = np.append(ops["end_ns"], np.iinfo(np.int64).min)[outer] >= end
        time = np.concatenate([start, end])
        top = np.concatenate([rows, np.where(outlives, outer, MISSING)])
        # At the same time, inner ops end first, then outer ones begin.
        level = np.concatenate([depth[rows], -depth[rows]])
        is_start = np.repeat([1, 0], len(rows))
        order = np.lexsort((level, is_start, time))
        self._time = time[order]
        self.top: IntArray = np.concatenate([[MISSING], top[order]])
        """Row of the innermost op before the first change, and after each; `MISSING` for none."""

    def changes(self, begin: IntArray, end: IntArray) -> tuple[IntArray, IntArray]:
        """Return the elements of `top` at the begin and at the end of each interval."""
        first = np.searchsorted(self._time, begin, side="right")
        last = first.copy()
        changed = np.flatnonzero(np.append(self._time, np.iinfo(np.int64).max)[first] <= end)
        last[changed] = np.searchsorted(self._time, end[changed], side="right")
        return first, last


def _depths(parent: IntArray) -> IntArray:
    depth = np.zeros(len(parent), np.int64)
    level = parent.copy()
    while (level != MISSING).any():
        depth += level != MISSING
        level = np.append(parent, MISSING)[level]
    return depth
