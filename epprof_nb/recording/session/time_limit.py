"""A time limit: calls a function on its own thread unless it is cancelled before."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from epprof_nb.core.own_thread import OwnThread

if TYPE_CHECKING:
    from collections.abc import Callable


class TimeLimit:
    """A time limit.

    Unlike `threading.Timer`, it can be cancelled in finalizers, and while Ctrl-C is pressed:
    `cancel` is a single step that never waits.

    Parameters
    ----------
    seconds
        Time from `start` until the call.
    function, args
        The function and its arguments, which the limit keeps alive until it ends.
    """

    def __init__(self, seconds: float, function: Callable[..., object], *args: object) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self._thread = OwnThread(
            target=_run,
            args=(self._lock, seconds, function, args),
            name="epprof time limit",
            daemon=True,
        )

    def start(self) -> None:
        """Begin to count, unless it has been cancelled."""
        self._thread.start()

    def cancel(self) -> None:
        """Prevent the call, unless it has begun."""
        with suppress(RuntimeError):  # it has been cancelled
            self._lock.release()

    def join(self) -> None:
        """Wait for the end of a call that has begun; call `cancel` first."""
        self._thread.join()


def _run(
    lock: threading.Lock, seconds: float, function: Callable[..., object], args: tuple[object, ...]
) -> None:
    if not lock.acquire(timeout=min(seconds, threading.TIMEOUT_MAX)):
        function(*args)
