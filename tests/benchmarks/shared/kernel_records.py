"""CUPTI's kernel records alone: the minimum cost of recording a GPU's kernels."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb import _native
from epprof_nb.recording.cupti import loading
from epprof_nb.recording.cupti.buffer_limits import BUFFER_BYTES, BUFFERS
from epprof_nb.recording.cupti.enabled_kinds import kind_number

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def kernel_records(*others: str, memset: bool = False) -> Iterator[None]:
    """Record kernels, without callbacks and without ops, and drop the records afterwards.

    `others` are further kinds of CUPTI's activities. With `memset`, a memset takes over what CUPTI
    does at the first launch.
    """
    loading.load()
    _native.cupti_configure(buffer_bytes=BUFFER_BYTES, buffers=BUFFERS, max_records=5_000_000)
    names = ("CONCURRENT_KERNEL", *others, *(("MEMSET",) if memset else ()))
    kinds = np.array([kind_number(name) for name in names], np.uint32).tobytes()
    _native.cupti_start(kinds=kinds, callbacks=False, all_calls=False, external=False, part=0)
    if memset and not _native.cupti_first_launch():
        raise SystemExit("The memset before the work was not launched.")
    try:
        yield
    finally:
        _native.cupti_flush(forced=False)
        _native.cupti_drain()
        _native.cupti_stop()


@contextmanager
def kernel_records_and_callbacks() -> Iterator[None]:
    """Record kernels, and have CUPTI call an empty C function at the begin and end of launches.

    It is the minimum cost of knowing who launched a kernel.
    """
    library = ctypes.CDLL(loading.load()[0].path)
    subscriber, driver_calls, number_of_calls = ctypes.c_void_p(), 1, 1024
    nothing = ctypes.cast(ctypes.CDLL(None).labs, ctypes.c_void_p)  # reads no memory
    with kernel_records(memset=True):
        if library.cuptiSubscribe(ctypes.byref(subscriber), nothing, None):
            raise SystemExit("CUPTI's callbacks are in use.")
        for call in range(1, number_of_calls):
            if (_native.cupti_callback_name(driver_calls, call) or "").startswith("cuLaunch"):
                library.cuptiEnableCallback(1, subscriber, driver_calls, call)
        try:
            yield
        finally:
            library.cuptiUnsubscribe(subscriber)
