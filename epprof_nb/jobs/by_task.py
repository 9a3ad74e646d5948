"""Tasks of a job over all processes, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.result_table import ResultTable, categorical
from epprof_nb.analysis.ranks.task_totals import COLUMNS, NO_TASK, SUMS, task_table, task_times
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.jobs.by_op import index_in_pieces_of, rank_of_greatest

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.jobs.job_data import JobData

_SPREAD = ("device_ns", "host_ns")


def by_task_table(job: JobData) -> ResultTable:
    """Return the columns of `Job.by_task`; one process after the other is read."""
    names: dict[str, int] = {}
    groups: list[int] = []
    ranks: list[int] = []
    rows: list[tuple[int, ...]] = []
    for number in job:
        try:
            table = task_table(index_in_pieces_of(job, number, COLUMNS, task_times))
        except ProfileFileError as error:
            job.damage[number] = str(error)
            continue
        of_process = zip(*(table.values(name) for name in ("task", *SUMS)), strict=True)
        for task, *row in of_process:
            groups.append(names.setdefault(task, len(names)))
            ranks.append(number)
            rows.append(tuple(row))
    count = len(names)
    group, rank = np.array(groups, np.int64), np.array(ranks, np.int64)
    values = np.array(rows, np.int64).reshape(-1, len(SUMS))
    sums = {
        name: np.bincount(group, minlength=count)
        if name == "ranks"
        else sum_by_group(group, values[:, SUMS.index(name)], count)[:-1]
        for name in ("ranks", *SUMS)
    }
    ranks_of_greatest: dict[str, IntArray] = {}
    for name in _SPREAD:
        of_row = values[:, SUMS.index(name)]
        order = np.lexsort((of_row, group))
        first = np.searchsorted(group[order], np.arange(count))
        last = np.searchsorted(group[order], np.arange(count), side="right") - 1
        sums[f"min_{name}"] = of_row[order][first]
        sums[f"max_{name}"] = of_row[order][last]
        ranks_of_greatest[name] = rank[order][last]
    is_rest = np.array([name == NO_TASK for name in names], np.bool_)
    order = np.lexsort((-sums["host_ns"], -sums["device_ns"], is_rest))
    task = [[*names][i] for i in order]
    columns: dict[str, Any] = {"task": categorical(task)}
    for name, column in sums.items():
        columns[name] = column[order]
        of = name.removeprefix("max_")
        if of in ranks_of_greatest and of != name:
            columns[f"{name[:-3]}_rank"] = rank_of_greatest(
                column[order], ranks_of_greatest[of][order]
            )
    return ResultTable(columns)
