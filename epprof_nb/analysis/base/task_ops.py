"""Tasks of Dask that ops belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

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
