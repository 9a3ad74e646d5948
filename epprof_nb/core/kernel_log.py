"""Log of the kernels in Python and copies of ONNX Runtime sessions on the host device.

The recorder of the host device collects it.
"""

from __future__ import annotations

import os
import threading
from typing import NamedTuple

from epprof_nb import _native

_COMPUTE = _native.intern("hostLaunchKernel")
_COPY = _native.intern("hostMemcpyAsync")


class KernelRun(NamedTuple):
    """One execution of a kernel, or a copy; times are CLOCK_MONOTONIC nanoseconds."""

    name: str
    stream_id: int
    correlation_id: int
    start_ns: int
    end_ns: int
    copy_kind: str | None = None
    """``HtoD`` or ``DtoH`` for a copy."""
    bytes: int = 0


class KernelLog:
    """Bounded log, written by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: list[KernelRun] = []
        self._limit = 0
        self._streams: dict[int, int] = {}
        self.dropped = 0

    def start(self, limit: int) -> None:
        """Start recording at most `limit` runs; 0 stops it."""
        with self._lock:
            self._runs = []
            self._limit = limit
            self._streams = {}
            self.dropped = 0

    def add(
        self,
        name: str,
        start_ns: int,
        end_ns: int,
        *,
        copy_kind: str | None = None,
        nbytes: int = 0,
    ) -> None:
        """Record a kernel or copy that ran on the calling thread, and its launch."""
        if not self._limit:
            return
        correlation = _native.next_correlation()
        _native.launch(_COPY if copy_kind else _COMPUTE, start_ns, end_ns, correlation)
        with self._lock:
            if len(self._runs) >= self._limit:
                self.dropped += 1
                return
            # Kernels run on the thread of their session's run: each thread is a stream.
            stream = self._streams.setdefault(threading.get_ident(), len(self._streams))
            self._runs.append(
                KernelRun(name, stream, correlation, start_ns, end_ns, copy_kind, nbytes)
            )

    def take(self) -> tuple[list[KernelRun], int]:
        """Take the runs recorded since the last call, and the number of dropped ones."""
        with self._lock:
            taken, self._runs = self._runs, []
            dropped, self.dropped = self.dropped, 0
            return taken, dropped


KERNELS = KernelLog()
os.register_at_fork(after_in_child=KERNELS.__init__)  # type: ignore[misc]
