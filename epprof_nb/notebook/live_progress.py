"""``--live``: a thread that shows the progress of a recording while the cell runs.

It flushes the recording every half second without waiting for the device, which only splits the
recording into more batches. The progress is shown in a transient display, which is cleared at the
end so that it is not saved with the notebook.
"""

from __future__ import annotations

import contextvars
import shutil
import sys
import threading
import time
import weakref
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from epprof_nb import _native
from epprof_nb.notebook.progress_display import as_html, as_line
from epprof_nb.recording.session.running_totals import RunningTotals
from epprof_nb.util.transient_display import TransientDisplay

if TYPE_CHECKING:
    from epprof_nb.recording.session.running_totals import Progress
    from epprof_nb.recording.session.session import Session

_INTERVAL_S = 0.5
_MAX_CPU_SHARE = 0.01
"""Maximum share of CPU time for this thread. After an expensive update only the clock advances."""


class Screen(Protocol):
    """A place to show progress."""

    def show(self, progress: Progress) -> None:
        """Show `progress`, replacing the previous one."""

    def clear(self) -> None:
        """Clear the screen."""


class NotebookScreen:
    """A notebook display that is updated in place.

    Parameters
    ----------
    publisher
        The shell's ``display_pub``.
    """

    def __init__(self, publisher: Any) -> None:  # noqa: ANN401 - publishers have no base class
        self._display = TransientDisplay(publisher)

    def show(self, progress: Progress) -> None:
        """Show or update the display."""
        self._display.show({"text/html": as_html(progress), "text/plain": as_line(progress, 200)})

    def clear(self) -> None:
        """Clear the display."""
        self._display.clear()


class TerminalScreen:
    """The last line of a terminal, which is overwritten."""

    def show(self, progress: Progress) -> None:
        """Overwrite the line."""
        width = shutil.get_terminal_size().columns - 1
        self._write(f"\r\x1b[2K{as_line(progress, width)}")

    def clear(self) -> None:
        """Clear the line."""
        self._write("\r\x1b[2K")

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def screen_of(shell: Any) -> Screen | None:  # noqa: ANN401
    """Return the screen of a shell; None if it has no terminal and progress would fill a log."""
    if getattr(shell, "kernel", None) is not None:
        return NotebookScreen(shell.display_pub)
    return TerminalScreen() if sys.stderr.isatty() else None


class LiveProgress:
    """Shows a session's progress until `stop`.

    Parameters
    ----------
    session
        The session; it must be stopped after this object.
    screen
        The screen to show it on.
    """

    def __init__(self, session: Session, screen: Screen) -> None:
        self._session = weakref.ref(session)  # this thread must not keep the session alive
        self._screen = screen
        self._opened_ns = _native.now_ns()
        self._totals = RunningTotals(self._opened_ns)
        self.failure: Exception | None = None
        self._ended = threading.Event()
        # A kernel uses the context to find the cell that the output belongs to.
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._run,), name="epprof live progress", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and clear the screen."""
        _native.uninterrupted(self._ended.set)  # Ctrl-C could leave its lock locked
        try:
            self._thread.join()
        finally:
            self._screen.clear()

    def _run(self) -> None:
        try:
            self._update_until_stopped()
        except Exception as error:  # noqa: BLE001 - reported when the cell ends
            self.failure = error

    def _update_until_stopped(self) -> None:
        batch_count = 0
        progress = self._totals.progress(self._opened_ns)
        next_update = 0.0
        while not self._ended.wait(_INTERVAL_S):
            begin = time.thread_time()
            if time.monotonic() >= next_update:
                session = self._session()
                batches = None if session is None else session.batches_since(batch_count)
                del session
                if batches is None:
                    return  # recording has stopped while the code continues
                batch_count += len(batches)
                for batch in batches:
                    self._totals.add(batch)
                progress = self._totals.progress(_native.now_ns())
                cpu_time = time.thread_time() - begin
                next_update = time.monotonic() + cpu_time / _MAX_CPU_SHARE - _INTERVAL_S
            if not self._ended.is_set():
                elapsed = _native.now_ns() - self._opened_ns
                self._screen.show(replace(progress, elapsed_ns=elapsed))
