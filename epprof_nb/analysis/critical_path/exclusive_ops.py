"""Ops that threads execute one after the other, as within a lock.

Waits for locks of C code are not recorded. But if executions of an op on several threads never
overlap, and one begins when another one has just ended, its thread may have waited for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.critical_path.thread_joins import Joins
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.threads import Threads

_HANDED_OVER_NS = 500_000
"""Longest time from the end of an op to the begin of the next that counts as handing over: a
waiting thread has to wake up."""
_LEAST = 3
"""Executions that follow those of another thread in this time: fewer may do so by chance."""


def exclusive_joins(index: ProfileIndex, threads: Threads) -> Joins:
    """Return the time before ops as waits for executions of the same name on other threads.

    A wait begins with the last event of its thread: when it came to the lock is not known.
    """
    ops = index.profile.tables["ops"]
    listed = np.flatnonzero(threads.of_ops != MISSING)
    names = ops.names("name").codes[listed]
    rows = listed[np.lexsort((ops["start_ns"][listed], names))]
    name, thread = ops.names("name").codes[rows], threads.of_ops[rows]
    start, end = ops["start_ns"][rows], ops["end_ns"][rows]
    same = name[1:] == name[:-1]
    other = same & (thread[1:] != thread[:-1])
    gap = start[1:] - end[:-1]
    count = int(name.max(initial=MISSING)) + 1
    overlaps = np.bincount(name[1:][same & (gap < 0)], minlength=count) > 0
    handed = other & (gap >= 0) & (gap <= _HANDED_OVER_NS)
    handed &= (~overlaps & (np.bincount(name[1:][handed], minlength=count) >= _LEAST))[name[1:]]
    after = np.flatnonzero(handed) + 1
    until, begun = end[after - 1], np.zeros(len(after), np.int64)
    for number in np.unique(thread[after]).tolist():
        own = threads.of_ops == number
        events = np.sort(np.concatenate([[0], ops["start_ns"][own], ops["end_ns"][own]]))
        of_thread = thread[after] == number
        at = np.searchsorted(events, start[after][of_thread], side="left") - 1
        begun[of_thread] = events[np.maximum(at, 0)]
    waits = begun < until
    after, until, begun = after[waits], until[waits], begun[waits]
    none = np.full(len(after), MISSING, np.int32)
    return Joins(begun, until, thread[after], none, thread[after - 1])
