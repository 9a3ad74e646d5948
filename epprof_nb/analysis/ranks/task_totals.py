"""Tasks of one process by their name: device work, host time and idle time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.analysis.base.op_totals import totals
from epprof_nb.analysis.base.result_table import ResultTable, categorical
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table

NO_TASK = "(no task)"
COLUMNS = (
    "op_id", "parent_op_id", "name", "op_type", "start_ns", "end_ns", "duration_ns", "count",
    "status", "thread_id",
)  # fmt: skip
"""Columns of the ops that `task_table` needs."""
SUMS = ("count", "device_ns", "kernels", "memcpys", "memsets", "bytes", "host_ns", "idle_ns")


def task_table(index: ProfileIndex) -> ResultTable:
    """Return the tasks of a process by name.

    Parameters
    ----------
    index
        Index of the profile. Of the ops, `COLUMNS` are needed. An index in pieces needs
        `task_times`.

    Returns
    -------
    table
        ``task`` and `SUMS`. ``idle_ns`` is the time of tasks in which no device of the process
        worked, for coroutines that waited the least that it can be; tasks that run at the same
        time count each. A row `NO_TASK` has the device work outside of tasks, if there is any.
    """
    ops = index.profile.tables["ops"]
    is_task = ops.names("op_type").equals("task")
    names = ops.names("name")
    rows = np.flatnonzero(is_task)
    groups = np.full(len(ops), MISSING, np.int64)
    groups[rows], first = group_codes(names.codes[rows])
    owner = index.tree.nearest_ancestor(is_task)
    sums = totals(index, groups, owner, attribution="launch")
    count = len(first)
    idle = sum_by_group(groups, _idle(index, is_task), count)[:-1]
    rest = {name: sums.unattributed.get(name, 0) for name in SUMS}
    values = {**sums.measures, "count": sums.count, "host_ns": sums.host_ns, "idle_ns": idle}
    columns = {name: np.append(values[name], rest[name]) for name in SUMS}
    shown = np.append(sums.shown, sums.has_unattributed)
    task = categorical([*names.take(rows[first]).to_list(), NO_TASK])
    table = ResultTable({"task": task, **columns})
    return table.take(shown)


def task_times(ops: Table) -> IntArray:
    """Return the begins and ends of the tasks, for which `task_table` asks when devices worked."""
    is_task = ops.names("op_type").equals("task")
    return np.concatenate([ops[name][is_task] for name in ("start_ns", "end_ns")])


def _idle(index: ProfileIndex, is_task: BoolArray) -> IntArray:
    """Return, for each task, the time that it ran while no device worked; 0 for other ops.

    An op has how long its coroutine was suspended, but not when. All device work between its start
    and its end counts as work while it ran, so its idle time is the least that it can be.
    """
    ops = index.profile.tables["ops"]
    is_timed = is_task & has_host_time(ops)
    start, end = ops["start_ns"][is_timed], ops["end_ns"][is_timed]
    busy = index.busy_until(end) - index.busy_until(start)
    idle = np.zeros(len(ops), np.int64)
    idle[is_timed] = np.maximum(ops["duration_ns"][is_timed] - busy, 0)
    return idle
