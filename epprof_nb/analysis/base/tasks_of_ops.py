"""Tasks of Dask that ops belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.intervals import covered_between, union
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray


def task_rows(index: ProfileIndex) -> IntArray:
    """Return the row of the task that is or contains each op; `MISSING` for none, and at the end.

    A statement of a profiled cell that runs in a task is the place of its ops, not the task.
    """
    is_task = index.profile.tables["ops"].names("op_type").equals("task")
    if not is_task.any():
        return np.full(len(is_task) + 1, MISSING, np.int64)
    task = np.append(index.tree.nearest_ancestor(is_task), MISSING)
    statement = np.append(index.statement, MISSING)
    found: IntArray = np.where(statement == statement[task], task, MISSING)
    return found


def threads_in_tasks(index: ProfileIndex) -> dict[int, tuple[IntArray, IntArray]]:
    """Return when each thread ran tasks: disjoint, ascending starts and ends, ns.

    Threads without tasks are left out.
    """
    ops = index.profile.tables["ops"]
    tasks = np.flatnonzero(ops.names("op_type").equals("task"))
    threads = ops["thread_id"][tasks]
    of_threads = {thread: tasks[threads == thread] for thread in np.unique(threads).tolist()}
    return {
        thread: union(ops["start_ns"][rows], ops["end_ns"][rows])
        for thread, rows in of_threads.items()
    }


def time_in_tasks(
    index: ProfileIndex, thread: IntArray, start: IntArray, end: IntArray
) -> IntArray:
    """Return for how long each thread ran tasks between each start and end, ns.

    Between its tasks, a thread of a Dask worker has nothing to do. For threads without tasks, it is
    the whole time.
    """
    time = end - start
    for number, (starts, ends) in index.cached(threads_in_tasks).items():
        rows = np.flatnonzero(thread == number)
        time[rows] = covered_between(starts, ends, start[rows], end[rows])
    return time


def tasks_begun(index: ProfileIndex, thread: IntArray, times: IntArray) -> IntArray:
    """Return how many tasks each thread had begun at each time."""
    begun = np.zeros(len(times), np.int64)
    for number, (starts, _) in index.cached(threads_in_tasks).items():
        rows = np.flatnonzero(thread == number)
        begun[rows] = np.searchsorted(starts, times[rows], "right")
    return begun
