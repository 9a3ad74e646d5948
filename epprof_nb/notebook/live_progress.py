"""``--live``: a thread that shows how a recording goes on while the cell runs.

It has the capture service cut what is recorded, which loses nothing and waits for nothing: the
profile's slice is simply made of more batches. It shows in a display of its own that is emptied
at the end, so that nothing of it is saved with the notebook.
"""

from __future__ import annotations

import contextvars
import shutil
import sys
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from epprof_nb import _native
from epprof_nb.capture.running_totals import RunningTotals
from epprof_nb.notebook.progress_display import as_html, as_line
from epprof_nb.util.transient_display import TransientDisplay

if TYPE_CHECKING:
    from epprof_nb.capture.running_totals import Progress
    from epprof_nb.capture.session import Session

_INTERVAL_S = 0.5
_LARGEST_SHARE = 0.01
"""CPU time of this thread as a share of the run's: after a costly look only the clock goes on."""


class Screen(Protocol):
    """Where progress is shown."""

    def show(self, progress: Progress) -> None:
        """Show it in the place of what was shown before."""

    def clear(self) -> None:
        """Leave nothing on the screen."""


class NotebookScreen:
    """A display of a kernel that is updated in its place.

    Parameters
    ----------
    publisher
        The shell's ``display_pub``.
    """

    def __init__(self, publisher: Any) -> None:  # noqa: ANN401 - IPython's publishers have no base
        self._display = TransientDisplay(publisher)

    def show(self, progress: Progress) -> None:
        """Show or update the display."""
        self._display.show({"text/html": as_html(progress), "text/plain": as_line(progress, 200)})

    def clear(self) -> None:
        """Empty the display."""
        self._display.clear()


class TerminalScreen:
    """The last line of a terminal, written over and over."""

    def show(self, progress: Progress) -> None:
        """Write the line in the place of the one before."""
        width = shutil.get_terminal_size().columns - 1
        self._write(f"\r\x1b[2K{as_line(progress, width)}")

    def clear(self) -> None:
        """Empty the line."""
        self._write("\r\x1b[2K")

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def screen_of(shell: Any) -> Screen | None:  # noqa: ANN401
    """Return where a shell shows progress; None where it would fill a log instead."""
    if getattr(shell, "kernel", None) is not None:
        return NotebookScreen(shell.display_pub)
    return TerminalScreen() if sys.stderr.isatty() else None


class LiveProgress:
    """Shows a session's progress until `stop`.

    Parameters
    ----------
    session
        The session; it must be stopped after this.
    screen
        Where to show it.
    """

    def __init__(self, session: Session, screen: Screen) -> None:
        self._session = session
        self._screen = screen
        self._opened_ns = _native.now_ns()
        self._totals = RunningTotals(self._opened_ns)
        self.failure: Exception | None = None
        self._ended = threading.Event()
        # The copied context tells a kernel which cell the output belongs to.
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._run,), name="epprof live progress", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread and leave nothing on the screen."""
        self._ended.set()
        try:
            self._thread.join()
        finally:
            self._screen.clear()

    def _run(self) -> None:
        try:
            self._look_until_the_end()
        except Exception as error:  # noqa: BLE001 - told at the end, in one line
            self.failure = error

    def _look_until_the_end(self) -> None:
        seen = 0
        progress = self._totals.progress(self._opened_ns)
        rested_until = 0.0
        while not self._ended.wait(_INTERVAL_S):
            begun = time.thread_time()
            if time.monotonic() >= rested_until:
                batches = self._session.batches_since(seen)
                if batches is None:
                    return  # recording has stopped; the code goes on
                seen += len(batches)
                for batch in batches:
                    self._totals.add(batch)
                progress = self._totals.progress(_native.now_ns())
                cost = time.thread_time() - begun
                rested_until = time.monotonic() + cost / _LARGEST_SHARE - _INTERVAL_S
            if not self._ended.is_set():
                elapsed = _native.now_ns() - self._opened_ns
                self._screen.show(replace(progress, elapsed_ns=elapsed))
