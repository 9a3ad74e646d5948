"""Waits of threads for locks, `queue.SimpleQueue` and the clock, which the native core records."""

from __future__ import annotations

import _queue
import _thread
import time

import numpy as np

from epprof_nb import _native
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MISSING, SLEEP, THREAD_WAITS
from epprof_nb.data.table import Table
from epprof_nb.recording.native_columns import ids, numbers

_FUNCTIONS = ("Lock.acquire", "RLock.acquire", "SimpleQueue.get", SLEEP)
"""Functions by number, as in `native/core/api.h`."""


def start() -> None:
    """Record the waits from now on, unless other code has put types of its own in place.

    The locks of gevent switch to other code on the same stack, where the core keeps its waits.
    """
    types = _thread.LockType, _thread.RLock, _queue.SimpleQueue
    if all(getattr(kind, "__module__", "") in ("_thread", "_queue") for kind in types):
        _native.start_lock_waits(*types, time.sleep)


def drain() -> Table:
    """Return the waits that have ended since the last call, as rows of ``thread_waits``."""
    raw = _native.drain_lock_waits()
    start, end, thread, other = (
        ids(raw, name, dtype)
        for name, dtype in (
            ("start_ns", np.int64), ("end_ns", np.int64), ("thread_id", np.uint64),
            ("other_thread_id", np.uint64),
        )
    )  # fmt: skip
    return Table(
        THREAD_WAITS,
        {
            "start_ns": start,
            "end_ns": end,
            "duration_ns": end - start,
            "thread_id": thread,
            "other_thread_id": np.where(other == 0, MISSING, other),
            "function": CategoryColumn(numbers(raw, "kind", np.uint8).astype(np.int32), _FUNCTIONS),
        },
    )
