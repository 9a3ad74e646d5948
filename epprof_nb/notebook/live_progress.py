"""``--live``: a thread that shows the progress of a recording while the cell runs.

The progress is shown every half second in a transient display, which is cleared at the end so that
it is not saved with the notebook. Child processes that are recorded, too, have a line each.
"""

from __future__ import annotations

import contextvars
import shutil
import sys
import threading
from typing import TYPE_CHECKING, Any, Protocol

from epprof_nb import _native
from epprof_nb.core.own_thread import ListedThread
from epprof_nb.notebook.progress_display import as_html, as_lines
from epprof_nb.recording.session.session_progress import SessionProgress
from epprof_nb.util.transient_display import TransientDisplay

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from epprof_nb.notebook.progress_display import Child
    from epprof_nb.recording.session.running_totals import Progress
    from epprof_nb.recording.session.session import Session

_INTERVAL_S = 0.5


class Screen(Protocol):
    """A place to show progress."""

    def show(self, progress: Progress, children: Sequence[Child] = ()) -> None:
        """Show `progress` and the progress of child processes, replacing the previous lines."""

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

    def show(self, progress: Progress, children: Sequence[Child] = ()) -> None:
        """Show or update the display."""
        text = "\n".join(as_lines(progress, 200, children))
        self._display.show({"text/html": as_html(progress, children), "text/plain": text})

    def clear(self) -> None:
        """Clear the display."""
        self._display.clear()


class TerminalScreen:
    """The last lines of a terminal, which are overwritten: one per process."""

    def __init__(self) -> None:
        self._shown = 1

    def show(self, progress: Progress, children: Sequence[Child] = ()) -> None:
        """Overwrite the lines."""
        width = shutil.get_terminal_size().columns - 1
        lines = as_lines(progress, width, children)
        self._write(self._cleared() + "\n".join(lines))
        self._shown = len(lines)

    def clear(self) -> None:
        """Clear the lines."""
        self._write(self._cleared())
        self._shown = 1

    def _cleared(self) -> str:
        return "\r\x1b[2K" + "\x1b[1A\x1b[2K" * (self._shown - 1)

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
    children
        Function that returns the progress of the child processes, without waiting for them.
    """

    def __init__(
        self,
        session: Session,
        screen: Screen,
        children: Callable[[], Sequence[Child]] | None = None,
    ) -> None:
        self._progress = SessionProgress(session)
        self._screen, self._children = screen, children
        self.failure: Exception | None = None
        self._ended = threading.Event()
        # A kernel uses the context to find the cell that the output belongs to.
        context = contextvars.copy_context()
        self._thread = ListedThread(
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
        while not self._ended.wait(_INTERVAL_S):
            progress = self._progress.latest()
            if progress is None:
                return  # recording has stopped while the code continues
            children = () if self._children is None else self._children()
            if not self._ended.is_set():
                self._screen.show(progress, children)
