"""Runs of scripts for ``epprof run``, recorded from their start to their end, or in some steps.

The script runs as it would under ``python``: arguments, ``__main__``, output, exit code and
signals are its own. The profile is saved however the script ends.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epprof_nb import _native, onnxruntime
from epprof_nb.commands.script_ending import Ending, say
from epprof_nb.core.errors import CaptureError
from epprof_nb.profiles import Profile
from epprof_nb.recording.onnxruntime import sessions
from epprof_nb.recording.session import session, steps
from epprof_nb.recording.session.op_log import CELL

if TYPE_CHECKING:
    from pathlib import Path
    from types import FrameType, TracebackType

    from epprof_nb.commands.main_module import MainModule
    from epprof_nb.core.options import Options
    from epprof_nb.recording.session.session import Session


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Parts of a script to record, and files to write.

    Attributes
    ----------
    options
        Options of the session.
    out, html
        Paths of the profile and of the page; None not to write it.
    steps
        First step to record, and the step after the last one; None for the whole script.
    lines
        Whether to record the statements of the script as ops.
    quiet
        Whether to print nothing but errors.
    """

    options: Options
    out: Path | None = None
    html: Path | None = None
    steps: tuple[int, int] | None = None
    lines: bool = True
    quiet: bool = False


class _Recording:
    """The session of a run: the whole script, or from one step to another."""

    def __init__(self, request: RunRequest, main: MainModule) -> None:
        self.profile: Profile | None = None
        self.step = 0
        self.error: BaseException | None = None
        self._process = os.getpid()
        self._request, self._main = request, main
        self._session: Session | None = None
        self._op: int | None = None

    def begin(self) -> None:
        """Start with the script, unless a later step is the first one."""
        steps.on_step(self._on_step)
        if self._request.steps is None:
            self._start()
            self._op = _native.push(_native.intern(self._main.cell.name), CELL)
        elif self._request.steps[0] == 0:
            self._start()

    def end(self) -> None:
        """Stop recording; the profile is kept in `profile`."""
        with suppress(ValueError):
            steps.off_step(self._on_step)
        opened, self._session = self._session, None
        if opened is None:
            return
        name = None if self.error is None else type(self.error).__name__
        try:
            self.profile = Profile.from_data(opened.stop(error=name))
        except BaseException:
            opened.abort()
            raise

    def _start(self) -> None:
        cell = self._main.cell
        self._session = session.start(
            self._request.options,
            cell=cell.name,
            source=cell.source or None,
            script=cell.name,
        )
        self._session.mark_repeat(self.step)

    def close_op(self) -> None:
        """Close the op of the script, and the statement that is still open."""
        op, self._op = self._op, None
        if op is not None:
            _native.pop(op)

    def _on_step(self) -> None:
        if os.getpid() != self._process:
            return  # a child that the script forked
        self.step += 1
        first, end = self._request.steps or (0, sys.maxsize)
        try:
            if self.step == end:
                self.end()
            elif self._session is not None:
                self._session.mark_repeat(self.step)
            elif self.step == first:
                self._start()
        except Exception as error:  # noqa: BLE001 - the script must run in any case
            say(f"step {self.step} could not be recorded ({type(error).__name__}: {error})")


def run(main: MainModule, arguments: list[str], request: RunRequest) -> int:
    """Run a script; its profile is saved when the interpreter ends.

    By then the threads that the script left have ended and its ``atexit`` callbacks have run.

    Returns
    -------
    int
        The exit code of the script. If a signal ended it, the same signal ends this process. If
        the script succeeded and a file could not be written, the process ends with `NOT_WRITTEN`.

    Raises
    ------
    SystemExit
        If the script raised it.
    """
    main.prepare(arguments)
    recording = _Recording(request, main)
    ending = Ending(stop=recording.end, save=lambda: _save(recording, request))
    try:
        code = main.compile(lines=request.lines)
        _observe_onnxruntime()
        ending.install()
        _begin(recording)
        try:
            _raise_recursion_limit()
            main.execute(code)
        finally:
            recording.close_op()
    except SystemExit as raised:
        ending.succeeded = raised.code in (None, 0)
        raise
    except BaseException as raised:  # noqa: BLE001 - reported as Python reports it
        recording.error = raised
        _report(raised)
        if isinstance(raised, KeyboardInterrupt):
            ending.by = signal.SIGINT
        return 1
    ending.succeeded = True
    return 0


def _begin(recording: _Recording) -> None:
    try:
        recording.begin()
    except Exception as error:  # noqa: BLE001 - the script must run in any case
        say(
            f"profiling could not be started ({type(error).__name__}: {error}). The script runs "
            "without it. Run `epprof doctor` to find out what is missing."
        )


def _save(recording: _Recording, request: RunRequest) -> bool:
    """Write the files, print a summary of the recording, and return whether each was written.

    Problems are printed, not raised.
    """
    profile = recording.profile
    if profile is None:
        if request.steps is not None:
            say(
                f"nothing was recorded: the script ended in step {recording.step}, before "
                f"step {request.steps[0]}. epprof_nb.step() begins a step."
            )
        return True
    written = []
    paths = ((request.out, profile.save), (request.html, profile.to_html))
    asked = [(path, write) for path, write in paths if path is not None]
    for path, write in asked:
        try:
            write(path)
            written.append(path)
        except (Exception, KeyboardInterrupt) as problem:  # noqa: BLE001
            say(f"{path} could not be written ({type(problem).__name__}: {problem})")
    if not request.quiet:
        _summarise(profile)
        for path in written:
            say(f"Wrote {path}", prefix="")
    return len(written) == len(asked)


def _summarise(profile: Profile) -> None:
    from epprof_nb.views.renderers.text import as_text
    from epprof_nb.views.view_model import ViewModel

    try:
        text = as_text(ViewModel(profile))
    except (Exception, KeyboardInterrupt) as problem:  # noqa: BLE001
        say(f"the profile could not be summarised ({type(problem).__name__}: {problem})")
    else:
        say(text, prefix="")


def _observe_onnxruntime() -> None:
    try:
        onnxruntime.install()
    except CaptureError as error:
        sessions.disable_with_reason(str(error))  # reported in the profile


def _raise_recursion_limit() -> None:
    """Raise the limit by the frames of the command line, so that the script has all of it."""
    frame: FrameType | None = sys._getframe()  # noqa: SLF001
    depth = 0
    while frame is not None:
        frame, depth = frame.f_back, depth + 1
    sys.setrecursionlimit(sys.getrecursionlimit() + depth)


def _report(error: BaseException) -> None:
    """Print an error as Python does, without the frames of this package."""
    shown = _without_own(error.__traceback__)
    error = error.with_traceback(shown)
    try:
        sys.excepthook(type(error), error, shown)
    except SystemExit:
        raise
    except BaseException as failure:  # noqa: BLE001 - a hook of the script failed
        inner = _without_own(failure.__traceback__)
        failure.__context__ = None
        say("Error in sys.excepthook:", prefix="")
        sys.__excepthook__(type(failure), failure.with_traceback(inner), inner)
        say("\nOriginal exception was:", prefix="")
        sys.__excepthook__(type(error), error, shown)


def _without_own(shown: TracebackType | None) -> TracebackType | None:
    folder = os.path.dirname(__file__)  # noqa: PTH120
    while shown is not None and shown.tb_frame.f_code.co_filename.startswith(folder):
        shown = shown.tb_next
    return shown
