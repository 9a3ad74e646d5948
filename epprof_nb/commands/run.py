"""``epprof run``: profile a script from its start to its end, or some of its steps.

The script runs as it would under ``python``: arguments, ``__main__``, output, exit code and
signals are its own. The profile is saved however the script ends.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import traceback
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epprof_nb import _native, onnxruntime
from epprof_nb.capture import session, steps
from epprof_nb.capture.op_log import CELL
from epprof_nb.core.errors import CaptureError
from epprof_nb.profiles import Profile
from epprof_nb.recorders.onnxruntime import sessions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType, TracebackType

    from epprof_nb.capture.session import Session
    from epprof_nb.commands.main_module import MainModule
    from epprof_nb.core.options import Options

_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Parts of a script to record, and files to write.

    Attributes
    ----------
    options
        Options of the session.
    out, html
        Paths of the profile and of the page; None for none.
    steps
        First step and last + 1 to record; None for the whole script.
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


class _Terminated(BaseException):
    """Raised in the script by a signal that would end the process without saving."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Recording:
    """The session of a run: the whole script, or from one step to another."""

    def __init__(self, request: RunRequest, main: MainModule) -> None:
        self.profile: Profile | None = None
        self.step = 0
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

    def end(self, error: BaseException | None = None) -> None:
        """Stop recording; the profile is kept in `profile`."""
        with suppress(ValueError):
            steps.off_step(self._on_step)
        opened, self._session = self._session, None
        if opened is None:
            return
        if self._op is not None:
            _native.pop(self._op)  # also closes the statement that is still open
        name = None if error is None else type(error).__name__
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

    def _on_step(self) -> None:
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
            _say(f"step {self.step} could not be recorded ({type(error).__name__}: {error})")


def run(main: MainModule, arguments: list[str], request: RunRequest) -> int:
    """Run a script and save its profile.

    Returns
    -------
    int
        The exit code of the script. If a signal ended it, the same signal ends this process.
    """
    process = os.getpid()
    main.prepare(arguments)
    recording = _Recording(request, main)
    error: BaseException | None = None
    try:
        code = main.compile(lines=request.lines)
        _observe_onnxruntime()
        with _ending_signals_raise():
            try:
                _begin(recording)
                main.execute(code)
            finally:
                error = sys.exception()
                if os.getpid() == process:  # not in a child that the script forked
                    _finish(recording, request, error)
    except SystemExit as left:
        return _exit_code(left)
    except _Terminated as ended:
        _end_by(ended.number)
    except BaseException as raised:  # noqa: BLE001 - reported as Python reports it
        _report(raised)
        if isinstance(raised, KeyboardInterrupt):
            _end_by(signal.SIGINT)
        return 1
    return 0


def _begin(recording: _Recording) -> None:
    try:
        recording.begin()
    except Exception as error:  # noqa: BLE001 - the script must run in any case
        _say(
            f"profiling could not be started ({type(error).__name__}: {error}). The script runs "
            "without it. Run `epprof doctor` to find out what is missing."
        )


def _finish(recording: _Recording, request: RunRequest, error: BaseException | None) -> None:
    """Save and summarise what was recorded; problems are printed, never raised."""
    failed = not isinstance(error, SystemExit)
    try:
        recording.end(error if failed else None)
        profile = recording.profile
        if profile is None:
            if request.steps is not None:
                _say(
                    f"nothing was recorded: the script ended in step {recording.step}, before "
                    f"step {request.steps[0]}. epprof_nb.step() begins a step."
                )
            return
        if not request.quiet:
            _summarise(profile)
        for path, write in ((request.out, profile.save), (request.html, profile.to_html)):
            if path is not None:
                write(path)
                if not request.quiet:
                    print(f"Wrote {path}", file=sys.stderr)
    except (Exception, KeyboardInterrupt, _Terminated) as problem:  # noqa: BLE001
        _say(f"the profile could not be saved ({type(problem).__name__}: {problem})")


def _summarise(profile: Profile) -> None:
    from epprof_nb.views.renderers.text import as_text
    from epprof_nb.views.view_model import ViewModel

    print(as_text(ViewModel(profile)), file=sys.stderr)


def _observe_onnxruntime() -> None:
    try:
        onnxruntime.install()
    except CaptureError as error:
        sessions.disable_with_reason(str(error))  # reported in the profile


@contextmanager
def _ending_signals_raise() -> Iterator[None]:
    """Turn signals that end the process at once into an exception, so that the profile is saved.

    A handler that the script installs replaces this one.
    """

    def end(number: int, _: FrameType | None) -> None:
        raise _Terminated(number)

    changed = [number for number in _ENDING_SIGNALS if signal.getsignal(number) == signal.SIG_DFL]
    for number in changed:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in changed:
            if signal.getsignal(number) is end:
                signal.signal(number, signal.SIG_DFL)


def _exit_code(left: SystemExit) -> int:
    if left.code is None:
        return 0
    if isinstance(left.code, int):
        return left.code
    print(left.code, file=sys.stderr)
    return 1


def _report(error: BaseException) -> None:
    """Print an error as Python does, without the frames of this package."""
    shown = error.__traceback__
    while shown is not None and _is_own(shown):
        shown = shown.tb_next
    try:
        sys.excepthook(type(error), error.with_traceback(shown), shown)
    except Exception:  # noqa: BLE001 - a hook of the script failed
        traceback.print_exception(error)


def _is_own(shown: TracebackType) -> bool:
    folder = os.path.dirname(__file__)  # noqa: PTH120
    return shown.tb_frame.f_code.co_filename.startswith(folder)


def _end_by(number: int) -> None:
    """End this process by a signal, after what Python does at its end."""
    atexit._run_exitfuncs()  # noqa: SLF001 - as the interpreter would before it ends
    sys.stdout.flush()
    sys.stderr.flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _say(text: str) -> None:
    print(f"epprof: {text}", file=sys.stderr)
