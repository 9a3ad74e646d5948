"""Idle time of event loops that ends when an op goes on that was suspended, as by a timer.

The op has begun before, so that what else the loop does meanwhile does not delay it: less of that
makes the loop idle for longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.critical_path.between_same_events import pieces_of
from epprof_nb.analysis.critical_path.interleaved_ops import interleaved_ops, suspended_ops
from epprof_nb.analysis.critical_path.sampled_joins import WAKE_UP_NS
from epprof_nb.analysis.critical_path.thread_joins import Joins
from epprof_nb.arrays.intervals import LATEST, covered_between, union
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.thread_joins import Intervals
    from epprof_nb.analysis.critical_path.threads import Threads
    from epprof_nb.arrays.types import IntArray


def timer_joins(index: ProfileIndex, threads: Threads) -> Joins:
    """Return the idle time before the end of suspended ops; ``other`` is the op.

    It is time without events. Without the time that the work of another thread may have ended, and
    time in which the thread used a core. Ops of the same names that were due while the loop did
    something else have an entry without length.
    """
    suspended = suspended_ops(index) & (threads.of_ops != MISSING)
    ends = np.concatenate([threads.op_end, index.profile.tables["api_calls"]["end_ns"]])
    thread = np.concatenate([threads.of_ops, threads.of_calls])
    start, end, of_thread, op = ([np.empty(0, np.int64)] for _ in range(4))
    for number in np.unique(threads.of_ops[suspended & interleaved_ops(index)]).tolist():
        rows = np.flatnonzero(suspended & (threads.of_ops == number))
        rows = rows[np.lexsort((-threads.op_start[rows], threads.op_end[rows]))]
        begun, ended, _ = pieces_of(index, threads.of_ops == number)
        at = np.searchsorted(threads.op_end[rows], ended)
        goes_on = np.append(threads.op_end[rows], MISSING)[at] == ended
        # What was due while the loop did something else goes on just after that.
        goes_on &= ended - begun > WAKE_UP_NS
        others = np.sort(ends[(thread != number) & (thread != MISSING)])
        last = np.append(others, MISSING)[np.searchsorted(others, ended, side="right") - 1]
        goes_on &= last < np.maximum(begun, ended - WAKE_UP_NS)
        goes_on &= 2 * covered_between(*_used(index, threads, number), begun, ended) < ended - begun
        ended_by = rows[at[goes_on]]
        late, due = _late(index, threads, rows, ended_by)
        start += [begun[goes_on], due]
        end += [ended[goes_on], due]
        op += [ended_by, late]
        of_thread.append(np.full(len(ended_by) + len(late), number))
    ops, waiting = (np.concatenate(part).astype(np.int32) for part in (op, of_thread))
    none = np.full(len(ops), MISSING, np.int32)
    return Joins(np.concatenate(start), np.concatenate(end), waiting, none, ops)


def _late(
    index: ProfileIndex, threads: Threads, rows: IntArray, ended_by: IntArray
) -> tuple[IntArray, IntArray]:
    """Return suspended ops that were due while the loop did something else, and since when.

    An op is suspended for at least the shortest time after which an idle loop went on with one of
    its name.
    """
    names = index.profile.tables["ops"].names("name").codes
    lasted = threads.op_end - threads.op_start
    shortest = np.full(int(names.max(initial=0)) + 1, LATEST)
    np.minimum.at(shortest, names[ended_by], lasted[ended_by])
    others = np.setdiff1d(rows, ended_by)
    late = others[lasted[others] > shortest[names[others]]]
    return late, threads.op_start[late] + shortest[names[late]]


def _used(index: ProfileIndex, threads: Threads, number: int) -> Intervals:
    """Return when a thread did something: API calls, and code without an op, by samples."""
    samples, calls = (index.profile.tables[name] for name in ("host_samples", "api_calls"))
    thread_id = threads.ids[threads.numbers == number]
    rows = np.flatnonzero(samples["thread_id"] == thread_id)
    time, processor = samples["start_ns"][rows], samples["processor_ns"][rows]
    is_parent = np.zeros(len(index.tree) + 1, np.bool_)
    is_parent[index.tree.parent] = True
    leaves = (threads.of_ops == number) & ~suspended_ops(index) & ~is_parent[:-1]
    in_ops = covered_between(
        *union(threads.op_start[leaves], threads.op_end[leaves]), time[:-1], time[1:]
    )
    is_busy = 2 * (np.diff(processor) - in_ops) > np.diff(time) - in_ops
    of_calls = threads.of_calls == number
    return union(
        np.append(time[:-1][is_busy], calls["start_ns"][of_calls]),
        np.append(time[1:][is_busy], calls["end_ns"][of_calls]),
    )
