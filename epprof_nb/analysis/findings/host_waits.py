"""Waits of the host for something other than a device: a process, a lock, a disk, the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.processor_use import asleep_ns
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.utilisation.awaited_processes import awaited_processes_ns
from epprof_nb.analysis.utilisation.sampled_host import main_threads
from epprof_nb.arrays.intervals import covered_between, union
from epprof_nb.data.profiles_without_gpu import is_cell_of_job
from epprof_nb.data.schema import SLEEP

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

WAITS = ", and for most of that no thread of this process ran"
"""Continuation of the sentence on code that mostly waited."""
_WAIT_REMEDY = (
    "This code waits: for another process, a lock, a disk, the network or a timer. Shorten what it "
    "waits for, or do other work meanwhile. "
)
_ALONE = "`--children` records child processes, and `--cluster` records the workers of Dask."
_OF_JOB = "The other processes of the job have findings of their own."
CALL_REMEDY = (
    "This code waits for a thread or another process. Submit this work earlier, so that it is done "
    "when its result is needed, or make it faster. Threads of this process share the GIL, so "
    "Python code runs in parallel only in other processes."
)
"""Remedy of code that waits in a known call."""


def wait_remedy(index: ProfileIndex) -> str:
    """Return the remedy of code that mostly waited."""
    return _WAIT_REMEDY + (_OF_JOB if is_cell_of_job(index.profile.info) else _ALONE)


def mostly_waited(index: ProfileIndex, total_ns: int) -> bool:
    """Return whether code that took `total_ns` certainly waited for at least half of it.

    The process may have slept during other code: that time is not counted.
    """
    wall_ns = wall_of(index.profile)
    elsewhere = max(wall_ns - total_ns, 0)
    return 2 * (asleep_ns(index.profile.info, wall_ns) - elsewhere) >= total_ns > 0


def is_wait_for_thread(
    index: ProfileIndex, start_ns: IntArray, end_ns: IntArray, excess_ns: int
) -> bool:
    """Return whether the excess of some iterations on the host is a wait for other threads."""
    if index.is_device_work.any():
        return False
    waits = index.profile.tables["thread_waits"]
    is_main = np.isin(waits["thread_id"], index.cached(main_threads))
    rows = np.flatnonzero(is_main & ~waits.names("function").equals(SLEEP))
    waited = union(waits["start_ns"][rows], waits["end_ns"][rows])
    return 2 * int(covered_between(*waited, start_ns, end_ns).sum()) >= excess_ns > 0


def is_wait_for_earlier_process(
    index: ProfileIndex, start_ns: IntArray, end_ns: IntArray, excess_ns: int
) -> bool:
    """Return whether the excess of some iterations is a wait for a process from before them.

    Of what an iteration itself starts, such as a compiler, the wait is a part of its work.
    """
    waited = awaited_processes_ns(index, start_ns, end_ns)
    return 2 * waited >= excess_ns and mostly_waited(index, excess_ns)


def waits_for_others(
    index: ProfileIndex, start_ns: IntArray, end_ns: IntArray, excess_ns: int
) -> bool:
    """Return whether the excess of some iterations is a wait for threads or earlier processes."""
    return any(
        waits(index, start_ns, end_ns, excess_ns)
        for waits in (is_wait_for_thread, is_wait_for_earlier_process)
    )
