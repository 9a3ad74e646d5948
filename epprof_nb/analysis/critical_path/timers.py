"""Idle time of event loops that ends when an op goes on that was suspended, as by a timer.

The op has begun before, so that what else the loop does meanwhile does not delay it: less of that
makes the loop idle for longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.critical_path.interleaved_ops import suspended_ops
from epprof_nb.analysis.critical_path.sampled_joins import WAKE_UP_NS
from epprof_nb.analysis.critical_path.thread_joins import Joins
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.thread_joins import Intervals
    from epprof_nb.analysis.critical_path.threads import Threads


def timer_joins(index: ProfileIndex, threads: Threads, idle: dict[int, Intervals]) -> Joins:
    """Return the idle time before the end of suspended ops; ``other`` is the op.

    Without the time that the work of another thread may have ended.
    """
    suspended = suspended_ops(index) & (threads.of_ops != MISSING)
    ends = np.concatenate([threads.op_end, index.profile.tables["api_calls"]["end_ns"]])
    thread = np.concatenate([threads.of_ops, threads.of_calls])
    start, end, of_thread, op = ([np.empty(0, np.int64)] for _ in range(4))
    for number, (begun, ended) in idle.items():
        rows = np.flatnonzero(suspended & (threads.of_ops == number))
        rows = rows[np.lexsort((-threads.op_start[rows], threads.op_end[rows]))]
        at = np.searchsorted(threads.op_end[rows], ended)
        goes_on = np.append(threads.op_end[rows], MISSING)[at] == ended
        others = np.sort(ends[(thread != number) & (thread != MISSING)])
        last = np.append(others, MISSING)[np.searchsorted(others, ended, side="right") - 1]
        goes_on &= last < np.maximum(begun, ended - WAKE_UP_NS)
        # What was due while the loop did something else goes on just after that.
        goes_on &= ended - begun > WAKE_UP_NS
        start.append(begun[goes_on])
        end.append(ended[goes_on])
        of_thread.append(np.full(np.count_nonzero(goes_on), number))
        op.append(rows[at[goes_on]])
    ops, waiting = (np.concatenate(part).astype(np.int32) for part in (op, of_thread))
    none = np.full(len(ops), MISSING, np.int32)
    return Joins(np.concatenate(start), np.concatenate(end), waiting, none, ops)
