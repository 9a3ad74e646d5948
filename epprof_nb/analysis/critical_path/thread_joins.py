"""Waits of a thread for another one that works for its op, as in PyTorch's backward pass.

No API call marks them. A thread waits while it has an op open for which another thread works, and
executes nothing of its own within this op.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.arrays.intervals import (
    EARLIEST,
    LATEST,
    complement,
    covered_between,
    intersection,
    union,
)
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.threads import Threads
    from epprof_nb.arrays.types import BoolArray, IntArray

    Rows = npt.NDArray[np.int32]
    Intervals = tuple[IntArray, IntArray]


class Joins(NamedTuple):
    """Waits for threads, as columns of one length.

    Attributes
    ----------
    start, end
        int64 arrays, ns.
    thread, op, other
        int32 arrays: the waiting thread, its op (`MISSING`: the innermost open one), and the thread
        that it waits for.
    """

    start: IntArray
    end: IntArray
    thread: Rows
    op: Rows
    other: Rows

    def take(self, rows: IntArray) -> Joins:
        """Return some of these waits."""
        return Joins(
            self.start[rows], self.end[rows], self.thread[rows], self.op[rows], self.other[rows]
        )

    def with_more(self, more: Joins) -> Joins:
        """Return these waits and others."""
        return Joins(
            np.append(self.start, more.start), np.append(self.end, more.end),
            np.append(self.thread, more.thread), np.append(self.op, more.op),
            np.append(self.other, more.other),
        )  # fmt: skip


def thread_joins(index: ProfileIndex, threads: Threads) -> Joins:
    """Return the waits of threads for others."""
    op_thread = threads.of_ops
    parent, call_op = index.tree.parent, index.call_op
    listed = op_thread != MISSING
    callers = np.append(parent[listed], call_op)
    workers = np.append(op_thread[listed], threads.of_calls)
    waiting = np.append(op_thread, MISSING)[callers]
    across = (waiting != MISSING) & (waiting != workers)
    pairs = np.unique(np.stack([waiting[across], workers[across]], axis=1), axis=0)
    found = []
    for pair in pairs.tolist():
        of_pair = across & (waiting == pair[0]) & (workers == pair[1])
        found.append(_waits(index, np.unique(callers[of_pair]), pair, threads))
    sizes = [len(start) for start, _ in found]
    start, end = np.concatenate([np.empty((2, 0), np.int64), *map(np.stack, found)], axis=1)
    thread, other = np.repeat(pairs, sizes, axis=0).T.astype(np.int32)
    return Joins(start, end, thread, np.full(len(start), MISSING, np.int32), other)


def open_times(
    index: ProfileIndex, of_ops: BoolArray, of_calls: BoolArray
) -> tuple[IntArray, IntArray]:
    """Return when some ops or API calls were open, as disjoint intervals."""
    ops, calls = (index.profile.tables[name] for name in ("ops", "api_calls"))
    start, end = (
        np.append(ops[name][of_ops], calls[name][of_calls]) for name in ("start_ns", "end_ns")
    )
    return union(start, end)


def _waits(
    index: ProfileIndex, callers: IntArray, pair: list[int], threads: Threads
) -> tuple[IntArray, IntArray]:
    """Return when one thread has one of the ops `callers` open and only another works for them.

    Without the time between its events of which a recorded wait says what it waited for.
    """
    thread, other = pair
    op_thread, call_thread = threads.of_ops, threads.of_calls
    ops = index.profile.tables["ops"]
    is_caller = np.zeros(len(ops) + 1, np.bool_)
    is_caller[callers] = True
    own_calls = (call_thread == thread) & is_caller[index.call_op]
    own = open_times(index, (op_thread == thread) & is_caller[index.tree.parent], own_calls)
    work = open_times(index, op_thread == other, call_thread == other)
    inside = union(ops["start_ns"][callers], ops["end_ns"][callers])
    start, end = intersection(inside, complement(*own, EARLIEST, LATEST))
    waits = index.profile.tables["thread_waits"]
    recorded = waits["other_thread_id"] != MISSING
    recorded &= threads.numbers_of(waits["thread_id"]) == thread
    known = union(waits["start_ns"][recorded], waits["end_ns"][recorded])
    unknown = 2 * covered_between(*known, start, end) < end - start
    return intersection((start[unknown], end[unknown]), work)
