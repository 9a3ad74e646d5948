"""State of CUDA in this process: whether it has been started, and where."""

from __future__ import annotations

import ctypes
import os

DRIVER = "libcuda.so.1"
"""File name of NVIDIA's driver."""
FORKED_AFTER_CUDA = (
    "it was forked after its parent had started CUDA, which does not work in forked children; "
    "start it with the method 'spawn'"
)
"""Reason why a process for which `broken_by_fork` is true has no recording."""
_RTLD_NOLOAD = 4
_started_at_fork: list[bool] = []
"""Not empty once this process, or one that it was forked from, forked with CUDA started."""
_process = [os.getpid()]


def cuda_started() -> bool:
    """Whether CUDA has been started in this process. Does not start it, or load the driver."""
    try:
        driver = ctypes.CDLL(DRIVER, mode=_RTLD_NOLOAD)
        return bool(driver.cuDeviceGetCount(ctypes.byref(ctypes.c_int())) == 0)
    except (AttributeError, OSError):
        return False  # the driver is not loaded


def broken_by_fork() -> bool:
    """Whether CUDA cannot work here: this process was forked when CUDA had been started."""
    return bool(_started_at_fork) and os.getpid() != _process[0]


def _before_fork() -> None:
    # A forked child reports that CUDA is not started, so its children rely on what it inherited.
    if not _started_at_fork and cuda_started():
        _started_at_fork.append(True)


os.register_at_fork(before=_before_fork)
