"""The end of a script under ``epprof run``: its profile is saved, and its signal is kept."""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - cannot be imported at exit
import ctypes
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_STOP_WAIT_S = 1.0

NOT_WRITTEN = os.EX_CANTCREAT
"""Exit code if the script succeeded and a file of its profile could not be written: 73."""


class Ending:
    """Saves the profile once: when the interpreter ends, or at a signal that would end it.

    An ``atexit`` callback saves it. It is the first one registered, so it is called last, when the
    interpreter has waited for the threads that the script left.

    A handler of SIGTERM and SIGHUP saves it, too, and ends the process by the same signal. It
    raises no exception, so the script's ``except`` and ``finally`` blocks do not run. A handler
    that the script installs replaces it. Forked children have the default action.

    Parameters
    ----------
    stop
        Ends recording. It takes locks of the profiler.
    save
        Saves the recording; returns whether it wrote each file.

    Attributes
    ----------
    by
        The signal that ends the process after the profile is saved; None for none.
    succeeded
        Whether the script's exit code is 0. If a file is missing, it becomes `NOT_WRITTEN`.
    """

    def __init__(self, *, stop: Callable[[], None], save: Callable[[], bool]) -> None:
        self.by: int | None = None
        self.succeeded = False
        self._stop, self._save = stop, save
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._saved = self._lacks_file = False
        self._saver: threading.Thread | None = None
        self._signals: list[int] = []
        self._mask: set[int] = set()

    def install(self) -> None:
        """Save the profile from now on, however the script ends."""
        atexit.register(self._at_exit)
        # Python forgets a signal that reaches a child before its handler is replaced.
        os.register_at_fork(
            before=self._hold_signals,
            after_in_parent=self._release_signals,
            after_in_child=self._restore_in_child,
        )
        self._signals = [n for n in _SIGNALS if signal.getsignal(n) == signal.SIG_DFL]
        for number in self._signals:
            signal.signal(number, self._on_signal)

    def _hold_signals(self) -> None:
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)

    def _release_signals(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def _restore_in_child(self) -> None:
        self._restore_signals()
        self._release_signals()

    def _restore_signals(self) -> None:
        for number in self._signals:
            if signal.getsignal(number) == self._on_signal:
                signal.signal(number, signal.SIG_DFL)

    def _at_exit(self) -> None:
        if os.getpid() != self._process:
            return  # a child that the script forked
        self._save_once()
        if self.by is not None:
            _flush()
            end_by(self.by)
        if self.succeeded and self._lacks_file:
            # Nothing else changes the exit code now: the callbacks of the script have run.
            _flush()
            ctypes.CDLL(None).fflush(None)
            os._exit(NOT_WRITTEN)
        self._restore_signals()

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if os.getpid() != self._process or self._saved:
            end_by(number)
            return
        if self._saver is not None:
            return  # a second signal, as timeout(1) sends it
        self.by = number
        # This may have interrupted the main thread while it held a lock of the profiler. Another
        # thread therefore saves. The script continues until that thread can stop the recording.
        self._saver = threading.Thread(target=self._save_and_end, args=(number,), daemon=True)
        try:
            self._saver.start()
        except RuntimeError:  # the interpreter ends
            end_by(number)
            return
        if self._stopped.wait(_STOP_WAIT_S):
            self._saver.join()
            end_by(number)

    def _save_and_end(self, number: int) -> None:
        self._save_once()
        os.kill(self._process, number)

    def _save_once(self) -> None:
        with self._lock:
            if self._saved:
                return
            try:
                self._stop()
            except (Exception, KeyboardInterrupt) as problem:  # noqa: BLE001
                say(f"the profile could not be completed ({type(problem).__name__}: {problem})")
            self._stopped.set()
            try:
                self._lacks_file = not self._save()
            finally:
                self._saved = True


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def end_by(number: int) -> None:
    """End this process by the default action of a signal."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def say(text: str, *, prefix: str = "epprof: ") -> None:
    """Print a message to stderr, if it can be written to.

    The message bypasses the buffer. If it remained there, the interpreter would fail to flush it
    at exit and change the exit code of the script.
    """
    stream = sys.stderr
    with suppress(Exception):
        try:
            number = stream.fileno()
        except (AttributeError, OSError, ValueError):  # replaced by the script, closed or None
            stream.write(f"{prefix}{text}\n")
            return
        stream.flush()
        data = f"{prefix}{text}\n".encode(stream.encoding or "utf-8", "backslashreplace")
        while data:
            data = data[os.write(number, data) :]
