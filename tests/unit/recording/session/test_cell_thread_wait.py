"""Calls of other threads that the cell's thread waited for."""

import numpy as np

from epprof_nb.data.names import CategoryColumn
from epprof_nb.recording.session.cell_thread_wait import is_awaited_by_cell
from epprof_nb.recording.session.launch_log import CELL_RAN, CELL_WAITED, NO_OP, LaunchLog


def test_a_thread_that_launched_while_the_cell_ran_is_not_awaited_by_it():
    numbers, names = np.arange(3), CategoryColumn(np.zeros(3, np.int32), ("cuLaunchKernel",))
    log = LaunchLog(
        correlation=numbers,
        op=np.full(3, NO_OP | np.uint64(7)),
        start=numbers,
        end=numbers,
        thread=np.array([10, 10, 11]),
        result=np.zeros(3, np.int64),
        flags=np.array([CELL_WAITED, CELL_RAN, CELL_WAITED], np.uint16),
        names=names,
        domains=names,
        stack=np.full(3, -1, np.int32),
    )
    assert is_awaited_by_cell(log).tolist() == [False, False, True]
