"""CUPTI's kernel records alone: the minimum cost of recording a GPU's kernels."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb import _native
from epprof_nb.recording.cupti import loading, recorder
from epprof_nb.recording.cupti.buffer_limits import BUFFER_BYTES, BUFFERS

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
    kinds = np.array([recorder._kind(name) for name in names], np.uint32).tobytes()
    _native.cupti_start(kinds=kinds, callbacks=False, all_calls=False, external=False, part=0)
    if memset and not _native.cupti_first_launch():
        raise SystemExit("The memset before the work was not launched.")
    try:
        yield
    finally:
        _native.cupti_flush(forced=False)
        _native.cupti_drain()
        _native.cupti_stop()
