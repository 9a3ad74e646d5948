"""Kernels of the host device and code of the cell's thread, which may both need the GIL.

Such kernels are Python functions. Where they ran while the cell's thread worked, each may have
waited for the other one. Kernels for which this thread no longer waits may then run beside its
code, or take turns with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.device_work import KERNEL
from epprof_nb.analysis.base.devices import host_ids
from epprof_nb.analysis.critical_path.changed_durations import NO_TIME, HostTime
from epprof_nb.analysis.critical_path.shared_gil_and_cores import has_gil, innermost_ops
from epprof_nb.arrays.intervals import (
    EARLIEST,
    LATEST,
    complement,
    covered_between,
    intersection,
    length,
    union,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.threads import Threads
    from epprof_nb.arrays.types import BoolArray

    Floats = npt.NDArray[np.float64]


class PythonKernels:
    """Kernels of Python, and the code of the cell's thread.

    `waiting_calls` are the API calls that wait for a device.
    """

    def __init__(self, index: ProfileIndex, threads: Threads, waiting_calls: BoolArray) -> None:
        activities, calls, waits = (
            index.profile.tables[name] for name in ("activities", "api_calls", "thread_waits")
        )
        devices = host_ids(index.profile.info) if has_gil(index) else set[int]()
        is_kernel = (index.kinds == KERNEL) & np.isin(activities["device_id"], [*devices])
        self.rows = np.flatnonzero(is_kernel)
        self._home = threads.home
        if not len(self.rows):
            return
        self._start, self._end = (activities[name][self.rows] for name in ("start_ns", "end_ns"))
        waiting = waiting_calls & (threads.of_calls == threads.home)
        of_thread = threads.numbers_of(waits["thread_id"]) == threads.home
        idle = union(*(
            np.append(calls[name][waiting], waits[name][of_thread])
            for name in ("start_ns", "end_ns")
        ))  # fmt: skip
        profile = np.array([0]), np.array([index.profile.wall_ns])
        self._busy = intersection(profile, complement(*idle, EARLIEST, LATEST))
        begin, self._op = innermost_ops(index, threads, threads.home)
        self._own_ns = covered_between(*self._busy, begin, np.append(begin[1:], LATEST))
        kernels = union(self._start, self._end)
        self._together = length(*intersection(self._busy, kernels)) - length(*kernels)
        self._together += int(np.maximum(self._end - self._start, 0).sum())

    def in_turns_ns(self, host: Floats, of_activity: Floats) -> int:
        """Return how long kernels and the thread take, at once only as long as they were.

        `host` are the factors of the ops, and of no op, and `of_activity` those of activities.
        """
        if not len(self.rows):
            return 0
        kernels = (np.maximum(self._end - self._start, 0) * of_activity[self.rows]).sum()
        return int((self._own_ns * host[self._op]).sum() + kernels) - self._together

    def freed(self, of_activity: Floats) -> HostTime:
        """Return when the thread would no longer wait for kernels, for half of the time of each."""
        if not len(self.rows):
            return NO_TIME
        removed = np.maximum(1 - of_activity[self.rows], 0)
        shared = covered_between(*self._busy, self._start, self._end) * removed / 2
        rows = np.flatnonzero(shared >= 1)
        start = self._start[rows]
        thread = np.full(len(rows), self._home)
        return HostTime(thread, start, start + shared[rows].astype(np.int64))
