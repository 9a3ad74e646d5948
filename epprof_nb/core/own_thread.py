"""Threads that the package starts: a recording leaves them out."""

from __future__ import annotations

import _thread
import os
import threading
from contextlib import suppress

from epprof_nb import _native


class ListedThread(threading.Thread):
    """A thread of the profiler, without samples and pauses of the garbage collector.

    It has the parameters of `threading.Thread`. Programs see it in `threading.enumerate`, so it
    is for threads that ask for `threading.current_thread`, or that Python waits for when it ends.

    Examples
    --------
    >>> thread = ListedThread(target=print, args=("on its own thread",))
    >>> thread.start()
    on its own thread
    >>> thread.join()
    """

    def run(self) -> None:
        """Leave the thread out of recordings, and call its function."""
        _native.leave_out_thread()
        super().run()


class OwnThread(ListedThread):
    """A daemon thread that programs do not see, as if it were one of the interpreter.

    A program may wait for all threads of `threading.enumerate`, or until
    `threading.active_count` is 1. Hooks of `threading.settrace` and `threading.setprofile` are not
    called in it. Its function should not ask for `threading.current_thread`, which lists it until
    it ends.

    Examples
    --------
    >>> may_end = threading.Event()
    >>> thread = OwnThread(target=may_end.wait, daemon=True)
    >>> thread.start()
    >>> thread.is_alive(), thread in threading.enumerate()
    (True, False)
    >>> may_end.set()
    >>> thread.join()
    """

    _running_ident: int | None = None
    _process = -1

    def start(self) -> None:
        """Start the thread; RuntimeError if it has been started or cannot be."""
        if self._running_ident is not None:
            raise RuntimeError("threads can only be started once")
        self._ended = _thread.allocate_lock()
        self._ended.acquire()
        self._has_ended = False
        self._process = os.getpid()
        self._running_ident = _thread.start_new_thread(self._run_unlisted, ())

    def _run_unlisted(self) -> None:
        try:
            self.run()
        finally:
            # Python 3.11 lists a thread that asked for `current_thread` for ever.
            getattr(threading, "_active", {}).pop(threading.get_ident(), None)
            self._has_ended = True
            self._ended.release()

    @property
    def ident(self) -> int | None:
        """Identifier of the thread; None if it has not been started."""
        return self._running_ident

    def is_alive(self) -> bool:
        """Whether the thread runs; False in a forked child of its process."""
        return (
            self._running_ident is not None and not self._has_ended and self._process == os.getpid()
        )

    def join(self, timeout: float | None = None) -> None:
        """Wait until the thread has ended, for at most `timeout` seconds."""
        if self._running_ident is None:
            raise RuntimeError("cannot join thread before it is started")
        if self._running_ident == threading.get_ident():
            raise RuntimeError("cannot join current thread")
        if self.is_alive() and self._ended.acquire(timeout=-1 if timeout is None else timeout):
            with suppress(RuntimeError):
                self._ended.release()
