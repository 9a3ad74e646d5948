"""State of torch's memory at its last failed allocation, read while the allocation fails.

torch calls its out-of-memory observers before it raises the error, also for errors that code
catches. An observer can never be removed, and attaching one starts CUDA, which would break
processes that fork later. So there is one per process, attached when torch itself starts CUDA, and
it calls the function that is set here.
"""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from epprof_nb import _native
from epprof_nb.recording.memory.history_calls import HISTORY_CALLS
from epprof_nb.util.after_import import after_import, cancel
from epprof_nb.util.format import format_error

if TYPE_CHECKING:
    from epprof_nb.recording.out_of_memory.torch_pool import TorchPool

_INTERVAL_S = 1.0
"""Shortest time between two readings: a program may catch thousands of errors."""


class FailedAllocation(NamedTuple):
    """An allocation that failed. All sizes are in bytes.

    Attributes
    ----------
    number
        Number of the failure in this process, from 1.
    device
        Number of the CUDA device.
    requested
        Size that torch asked the driver for.
    limit
        Size of the device, or what ``set_per_process_memory_fraction`` allows.
    device_free
        Free bytes of the device.
    pool
        torch's memory at that time; None if it was not read.
    reason
        Why it was not read; "" if it was.
    """

    number: int
    device: int
    requested: int
    limit: int
    device_free: int
    pool: TorchPool | None
    reason: str


class _Observer:
    """The observer of this process, and the failure that it saw last."""

    def __init__(self) -> None:
        self.users = 0
        self.is_attached = False
        self.failures = 0
        self.last: FailedAllocation | None = None
        self._read_s = -_INTERVAL_S

    def attach(self) -> None:
        """Attach to torch, which has started CUDA or is about to finish that."""
        if not self.users or self.is_attached:
            return
        self.is_attached = True
        with suppress(Exception):  # an allocator or release without observers
            sys.modules["torch"]._C._cuda_attach_out_of_memory_observer(self)  # noqa: SLF001

    def __call__(self, device: int, requested: int, limit: int, device_free: int) -> None:
        """Keep the numbers of a failure; never raises, so that the error is torch's own."""
        if self.users:
            _native.uninterrupted(self._keep, device, requested, limit, device_free)

    def _keep(self, device: int, requested: int, limit: int, device_free: int) -> None:
        self.failures += 1
        pool, reason = None, "other allocations failed less than a second before"
        if time.monotonic() - self._read_s >= _INTERVAL_S:
            try:
                from epprof_nb.recording.out_of_memory.torch_pool import read_pool

                pool, reason = read_pool(device), ""
            except Exception as error:  # noqa: BLE001 - the error is torch's, the numbers are extra
                why = format_error(error)
                reason = f"torch could not report it when the allocation failed ({why})"
            self._read_s = time.monotonic()
        self.last = FailedAllocation(
            self.failures, device, requested, limit, device_free, pool, reason
        )


_OBSERVER = _Observer()


def install() -> None:
    """Observe failed allocations of torch from now on; `uninstall` ends this."""
    _OBSERVER.users += 1
    if _OBSERVER.users == 1:
        HISTORY_CALLS.follow()  # they decide what can be read
        after_import("torch.cuda", _attach_when_started)


def uninstall() -> None:
    """Undo one `install`."""
    _OBSERVER.users -= 1
    if not _OBSERVER.users:
        HISTORY_CALLS.leave()
        cancel("torch.cuda", _attach_when_started)
        _OBSERVER.last = None


def failures() -> int:
    """Return the number of failed allocations that were seen in this process."""
    return _OBSERVER.failures


def last_failure() -> FailedAllocation | None:
    """Return the allocation that failed last; None without one."""
    return _OBSERVER.last


class Watch:
    """Observation of failures while code runs, unless other code observes and explains them.

    Attributes
    ----------
    is_open
        Whether this is what observes, from `begin` to `end`.
    before
        Number of failures before `begin`.
    """

    def __init__(self) -> None:
        self.is_open = False
        self.before = 0

    def begin(self) -> None:
        """Observe failures, unless other code does."""
        self.before = failures()
        if not _OBSERVER.users:
            self.is_open = True
            install()

    def end(self) -> None:
        """Undo `begin`; does nothing if that is done."""
        if self.is_open:
            self.is_open = False
            uninstall()


def _attach_when_started() -> None:
    cuda = sys.modules["torch.cuda"]
    with suppress(AttributeError):  # a stand-in for torch
        if cuda.is_initialized():
            _OBSERVER.attach()
        else:
            # Calls that torch makes at the end of its start of CUDA, in the process that starts it.
            cuda._queued_calls.append((_started, ["epprof_nb\n"]))  # noqa: SLF001


def _started() -> None:
    if _OBSERVER.users:
        _OBSERVER.attach()
