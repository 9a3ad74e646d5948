"""One use of the magic: its session from start to what is shown under the cell.

A failure of the profiler never becomes the user's: it is said in a line on stderr, and the code
runs as it would without the magic.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from IPython.display import display

from epprof_nb import _native

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.capture.session import Session
    from epprof_nb.instrument.statements import Cell
    from epprof_nb.notebook.arguments import Request
    from epprof_nb.notebook.live_progress import LiveProgress
    from epprof_nb.profiles import Profile


def note(text: str) -> None:
    """Tell the user something about the profiler, apart from the output of the code."""
    print(f"epprof_nb: {text}", file=sys.stderr)


def why(error: BaseException) -> str:
    """Name an error and give its message."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class MagicRun:
    """The warm-ups, the session, the repeats and the result of one use of the magic.

    Parameters
    ----------
    request
        What the options ask for.
    cell
        The code; its name is set when it starts.
    assign
        Called with a name and the profile to make the variable.
    info
        IPython's ``ExecutionInfo`` of the cell, to know its end from that of a cell run inside
        it; None where IPython gave none.
    direct
        Whether the magic runs the code itself instead of IPython.
    """

    def __init__(
        self,
        request: Request,
        cell: Cell,
        assign: Callable[[str, Profile], None],
        *,
        info: object | None = None,
        direct: bool = False,
    ) -> None:
        self.request = request
        self.cell = cell
        self.info = info
        self.direct = direct
        self.profile: Profile | None = None
        self._assign = assign
        self._session: Session | None = None
        self._live: LiveProgress | None = None
        self._op = 0
        self._warmed = 0
        self._repeats = 0

    def warm_up(self) -> bool:
        """Whether to run the code once more before the session."""
        self._warmed += 1
        return self._warmed <= self.request.warmup

    def start(self) -> None:
        """Begin the session."""
        try:
            from epprof_nb.capture import session
            from epprof_nb.capture.op_log import CELL

            self._session = session.start(
                self.request.options, cell=self.cell.name, source=self.cell.source
            )
            self._op = _native.push(_native.intern(self.cell.name), CELL)
            if self.request.live:
                self._show_progress(self._session)
        except Exception as error:  # noqa: BLE001 - the code must run whatever happens here
            note(
                f"the profile could not be started ({why(error)}). The code runs without it; "
                "`epprof doctor` in a terminal checks what is missing."
            )

    def _show_progress(self, session: Session) -> None:
        from IPython.core.interactiveshell import InteractiveShell

        from epprof_nb.notebook.live_progress import LiveProgress, screen_of

        try:
            screen = screen_of(InteractiveShell.instance())
            if screen is not None:
                self._live = LiveProgress(session, screen)
        except Exception as error:  # noqa: BLE001
            note(f"no progress is shown ({why(error)}); the profile is taken all the same.")

    def repeat(self) -> bool:
        """Mark that the next repeat begins; False if it is the last one, which runs alone."""
        if self._session is not None:
            try:
                self._session.mark_run(self._repeats)
            except Exception as error:  # noqa: BLE001
                note(f"the runs of this profile cannot be told apart ({why(error)}).")
        self._repeats += 1
        return self._repeats < self.request.repeat

    def stop(self, error: BaseException | None = None) -> None:
        """End the session, if it is still on, and take its profile."""
        session, self._session = self._session, None
        if session is None:
            return
        _native.pop(self._op)  # and with it the statement that was still open
        self._end_progress()
        try:
            from epprof_nb.profiles import Profile

            name = None if error is None else type(error).__name__
            self.profile = Profile.from_data(session.stop(error=name))
        except (Exception, KeyboardInterrupt) as failure:  # noqa: BLE001
            session.abort()
            note(
                f"the profile could not be finished ({why(failure)}) and is lost; the results of "
                "the code are not. `epprof doctor` in a terminal checks the profiler."
            )

    def _end_progress(self) -> None:
        live, self._live = self._live, None
        if live is None:
            return
        try:
            live.stop()
        except (Exception, KeyboardInterrupt) as failure:  # noqa: BLE001
            note(f"the progress display could not be cleared ({why(failure)}).")
        if live.failure is not None:
            note(f"the progress display ended early ({why(live.failure)}); the profile is whole.")

    def finish(self, error: BaseException | None = None) -> None:
        """End the session, assign the variable, save the file and show the profile."""
        self.stop(error)
        if self.profile is None:
            return
        if self.request.name is not None:
            self._assign(self.request.name, self.profile)
        if self.request.save is not None:
            try:
                self.profile.save(self.request.save)
            except Exception as failure:  # noqa: BLE001
                note(
                    f"the profile could not be written to {self.request.save} ({why(failure)}). "
                    "It is not lost if the magic was given a name: name.save(path) tries again."
                )
        if not self.request.quiet:
            try:
                display(self.profile)
            except Exception as failure:  # noqa: BLE001
                note(f"the profile could not be shown ({why(failure)}).")
