"""The end of a recorded process: its profile is saved, and its signal is kept."""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401 - cannot be imported at exit
import ctypes
import functools
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from epprof_nb import _native
from epprof_nb.core.own_thread import OwnThread
from epprof_nb.recording.process_end.hidden_handlers import end_by, hidden_handlers
from epprof_nb.util.original_builtins import OriginalBuiltins
from epprof_nb.util.shadowed_modules import own_imports
from epprof_nb.util.stderr import say

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGHUP)
_STOP_WAIT_S = 1.0
_HANDLER_WAIT_S = 0.2
"""Time after which Python's handler is not waited for."""
_SAVE_WAIT_S = 30.0
_LAST_FINALIZER = -1000
"""Priority below the priorities of `multiprocessing` itself."""

_EXIT_WAIT_S = 60.0
_exit = os._exit
_EXECUTE: tuple[Callable[..., NoReturn], ...] = (os.execv, os.execve)

NOT_WRITTEN = os.EX_CANTCREAT
"""Exit code if the script succeeded and a file of its profile could not be written: 73."""


class SaveAtEnd:
    """Saves the profile once: when the interpreter ends, or at a signal that would end it.

    An ``atexit`` callback saves it. It is the first one registered, so it is called last, when the
    interpreter has waited for the threads that the script left.

    A handler of SIGTERM and SIGHUP saves it, too, and ends the process by the same signal. It
    raises no exception, so the script's ``except`` and ``finally`` blocks do not run. A handler
    that the script sets replaces it; the script finds the default action in its place. Forked
    children have the default action.

    Python calls a handler in the main thread only. If that thread begins to wait for a lock just
    after the signal has arrived, as workers of a pool do, it is never called. On request another
    thread gets the signal at once, and takes its place. If none can run Python code, because a call
    holds the GIL, the signal ends the process after two seconds. Its journal remains.

    Forked children of `multiprocessing` end without ``atexit``. There a finalizer saves it.
    `os._exit`, and the functions that execute another program in this process, are replaced by
    functions that save it first.

    Parameters
    ----------
    stop
        Ends recording. It takes locks of the profiler.
    save
        Saves the recording; returns whether it wrote each file.
    discard
        Discards the recording instead, before another program is executed; returns whether it did.

    Attributes
    ----------
    by
        The signal that ends the process after the profile is saved; None for none.
    succeeded
        Whether the script's exit code is 0. If a file is missing, it becomes `NOT_WRITTEN`.
    """

    def __init__(
        self,
        *,
        stop: Callable[[], None],
        save: Callable[[], bool],
        discard: Callable[[], bool] = lambda: False,
    ) -> None:
        self.by: int | None = None
        self.succeeded = False
        self._stop, self._save, self._discard = stop, save, discard
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._saved = self._lacks_file = False
        self._saver: threading.Thread | None = None
        self._saving_thread: int | None = None
        self._arrived: int | None = None
        self._saver_lock = threading.RLock()
        self._signals: list[int] = []
        self._mask: set[int] = set()

    def install(self, *, signals: bool = True, watch: bool = False) -> None:
        """Save the profile from now on, however the script ends.

        Parameters
        ----------
        signals
            Handle signals. Without handlers, they end it as usual, and the profile is lost.
        watch
            Handle them on another thread if the main thread cannot.
        """
        os._exit = self._exit_function()
        os.execv, os.execve = map(self._saving_before, _EXECUTE)
        atexit.register(self._at_exit)
        # Python forgets a signal that reaches a child before its handler is replaced.
        os.register_at_fork(
            before=self._hold_signals,
            after_in_parent=self._release_signals,
            after_in_child=self._restore_in_child,
        )
        # Python refuses handlers in other threads.
        if signals and threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                hidden_handlers.add(number, self._on_signal, watch=watch)
            self._signals = [*_SIGNALS]
            if watch:
                OwnThread(target=self._take_signals, daemon=True).start()
        if (util := sys.modules.get("multiprocessing.util")) is not None:
            # A child forgets finalizers before it calls this.
            util.register_after_fork(self, SaveAtEnd._finalize)

    def _take_signals(self) -> None:
        with suppress(OSError):  # no other thread can be started
            while True:
                number = _native.next_signal()
                time.sleep(_HANDLER_WAIT_S)
                if hidden_handlers.is_set(number):
                    self._start_saver(number)

    def _exit_function(self) -> Any:  # noqa: ANN401 - mypy recognises `os._exit` by its parameter
        def _exit(status: int) -> NoReturn:
            self._save_and_exit(status)

        # Programs pickle os._exit, to end workers of a pool. It is pickled by these names.
        _exit.__module__, _exit.__qualname__ = os.__name__, _exit.__name__
        return _exit

    def _save_and_exit(self, status: int) -> NoReturn:
        self._first(self._save_once)
        _exit(status)

    def _saving_before(self, execute: Callable[..., NoReturn]) -> Callable[..., NoReturn]:
        @functools.wraps(execute)
        def save_and_execute(path: Any, *args: Any, **named: Any) -> NoReturn:  # noqa: ANN401
            # os.execvp tries each folder of PATH.
            if _is_program(path):
                self._first(self._discard_or_save)
            execute(path, *args, **named)

        save_and_execute.__module__ = os.__name__  # by which it is pickled
        return save_and_execute

    def _first(self, save: Callable[[], None]) -> None:
        if os.getpid() == self._process and not self._saved:
            # The caller may hold a lock of the profiler.
            saver = OwnThread(target=save, daemon=True)
            with suppress(RuntimeError):  # the interpreter ends
                saver.start()
                saver.join(_EXIT_WAIT_S)

    def _finalize(self) -> None:
        if os.getpid() == self._process:
            sys.modules["multiprocessing.util"].Finalize(
                None, self._save_once, exitpriority=_LAST_FINALIZER
            )

    def _hold_signals(self) -> None:
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)

    def _release_signals(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def _restore_in_child(self) -> None:
        hidden_handlers.remove(self._on_signal)
        self._release_signals()

    def _at_exit(self) -> None:
        if os.getpid() != self._process:
            return  # a child that the script forked
        with OriginalBuiltins():
            self._end_at_exit()

    def _end_at_exit(self) -> None:
        self._save_once()
        if self.by is not None:
            _flush()
            end_by(self.by)
        if self.succeeded and self._lacks_file:
            # Nothing else changes the exit code now: the callbacks of the script have run.
            _flush()
            ctypes.CDLL(None).fflush(None)
            _exit(NOT_WRITTEN)
        hidden_handlers.remove(self._on_signal)
        if _is_interrupted():
            # Code that the modules imported above compile has cleared what Python notes about it.
            with suppress(KeyboardInterrupt):
                exec("raise KeyboardInterrupt")  # noqa: S102

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._process or self._saved:
            end_by(number)
            return
        self.by = number
        if self._saving_thread == threading.get_ident():
            self._arrived = number
            return  # the interrupted code saves the profile, and ends the process then
        # This may have interrupted the main thread while it held a lock of the profiler. Another
        # thread therefore saves, and ends the process. The script continues until that thread can
        # stop the recording, and while it may need a lock that the main thread holds.
        if not self._start_saver(number):
            return
        saver = self._saver
        if saver is None or _imports(frame) or not self._stopped.wait(_STOP_WAIT_S):
            return
        saver.join(_SAVE_WAIT_S)
        if not saver.is_alive():
            end_by(number)

    def _start_saver(self, number: int) -> bool:
        """Save on another thread; False if one does, as timeout(1) sends a second signal."""
        with self._saver_lock:
            if self._saver is not None:
                return False
            self._saver = OwnThread(target=self._save_and_end, args=(number,), daemon=True)
        try:
            self._saver.start()
        except RuntimeError:  # the interpreter ends
            end_now(number)
        return True

    def _save_and_end(self, number: int) -> None:
        try:
            self._save_once()
        finally:  # whatever fails, the sender of the signal waits for the end
            end_now(number)

    def _discard_or_save(self) -> None:
        with self._lock:
            self._saved = self._saved or self._discard()
        self._save_once()

    def _save_once(self) -> None:
        with self._lock:
            if self._saved:
                return
            self._saving_thread = threading.get_ident()
            try:
                with OriginalBuiltins(), own_imports():
                    self._stop_and_save()
            finally:
                self._saved = True
                self._saving_thread = None
        if self._arrived is not None:
            end_now(self._arrived)

    def _stop_and_save(self) -> None:
        try:
            self._stop()
        except (Exception, KeyboardInterrupt) as problem:  # noqa: BLE001
            say(f"the profile could not be completed ({type(problem).__name__}: {problem})")
        self._stopped.set()
        self._lacks_file = not self._save()


def _is_interrupted() -> bool:
    """Whether Ctrl-C ended the main module, so that Python ends by SIGINT."""
    traceback = getattr(sys, "last_traceback", None)
    if getattr(sys, "last_type", None) is not KeyboardInterrupt or traceback is None:
        return False
    if sys.flags.inspect or traceback.tb_frame.f_back is not None:
        return False
    frame, main = traceback.tb_frame, sys.modules.get("__main__")
    # With -m, runpy runs the module.
    return (
        frame.f_globals is getattr(main, "__dict__", None)
        or frame.f_code.co_name == "_run_module_as_main"
    )


def _is_program(path: Any) -> bool:  # noqa: ANN401
    try:
        return isinstance(path, int) or (os.path.isfile(path) and os.access(path, os.X_OK))  # noqa: PTH113
    except (TypeError, ValueError):  # the call raises them
        return False


def _imports(frame: FrameType | None) -> bool:
    """Whether a frame, or one of its callers, holds the lock of a module that it imports."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()


def end_now(number: int) -> None:
    """End this process by the default action of a signal, from any thread."""
    ctypes.CDLL(None).signal(number, ctypes.c_void_p(None))
    os.kill(os.getpid(), number)
