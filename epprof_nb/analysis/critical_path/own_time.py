"""Threads whose time between their ops is known: they wait for other threads, or work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.critical_path.columns import MAX_NS, spans
from epprof_nb.analysis.critical_path.thread_joins import open_times
from epprof_nb.arrays.intervals import covered_between, union

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.threads import Threads
    from epprof_nb.arrays.types import IntArray

NO_OWN_TIME = -MAX_NS
_UNKNOWN = 0.1
"""Largest part of a thread's time that nothing explains and that is taken for its own code."""


def own_time_until(index: ProfileIndex, threads: Threads) -> IntArray:
    """Return until when each thread takes the time between its ops, by number.

    A thread of which nothing is known between its ops may wait for anything. But one with recorded
    waits, and hardly any other time, runs a few lines of code there, such as those of a pool that
    take the next task. The others have `NO_OWN_TIME`.
    """
    waits = index.profile.tables["thread_waits"]
    start, end = spans(waits)
    until = np.full(threads.count, NO_OWN_TIME)
    waiting = threads.numbers_of(waits["thread_id"])
    for number in np.unique(waiting).tolist():
        own, of_thread = threads.of_ops == number, waiting == number
        if not own.any():
            continue
        work = open_times(index, own, threads.of_calls == number)
        known = union(np.append(work[0], start[of_thread]), np.append(work[1], end[of_thread]))
        first, last = threads.op_start[own].min(), threads.op_end[own].max()
        covered = covered_between(*known, np.array([first]), np.array([last]))[0]
        if last - first - covered <= _UNKNOWN * (last - first):
            until[number] = known[1][-1]
    return until
