"""Calls of other threads whose work the cell's thread waited for, from all calls of a recording.

At each launch, `native/core/cell_thread_wait.h` has noted whether the cell's thread waited or ran
since the previous one; without callbacks, `cell_thread_without_callbacks` finds the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.recording.session.launch_log import CELL_RAN, CELL_WAITED, NO_OP

if TYPE_CHECKING:
    from epprof_nb.arrays.types import BoolArray
    from epprof_nb.recording.session.launch_log import LaunchLog


def is_awaited_by_cell(launches: LaunchLog) -> BoolArray:
    """Return a mask of the calls on threads without ops whose work the cell's statement waited for.

    For each such call the log says whether the cell's thread used CPU time since the previous call
    of the calling thread, or waited with an unchanged op stack. A thread that made calls only while
    the cell's thread waited works for the waiting statement. A thread that launched while the
    cell's thread was running counts as independent, and its work stays unattributed.
    """
    # The calling thread has no op, but the cell's thread has one.
    candidate: BoolArray = launches.op > NO_OP
    if not candidate.any():
        return candidate
    waited = candidate & ((launches.flags & CELL_WAITED) != 0)
    ran = candidate & ((launches.flags & CELL_RAN) != 0)
    workers = np.setdiff1d(np.unique(launches.thread[waited]), np.unique(launches.thread[ran]))
    awaited: BoolArray = candidate & np.isin(launches.thread, workers)
    return awaited
