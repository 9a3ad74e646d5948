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
from pathlib import Path
from typing import TYPE_CHECKING

from epprof_nb import _native, onnxruntime
from epprof_nb.core.errors import CaptureError, EpprofError
from epprof_nb.jobs import ranks
from epprof_nb.jobs.child import follow_in_fork, list_unrecorded, stop_waiting
from epprof_nb.profiles import Profile
from epprof_nb.recording.children.ending import Ending, say
from epprof_nb.recording.children.giving_orders import give_order
from epprof_nb.recording.delays.guarded import GuardedExperiment
from epprof_nb.recording.memory.torch_failures import Watch
from epprof_nb.recording.onnxruntime import sessions
from epprof_nb.recording.out_of_memory.errors import allocation_error, class_name
from epprof_nb.recording.session import session, steps
from epprof_nb.recording.session.op_log import CELL
from epprof_nb.util.format import printable
from epprof_nb.util.own_modules import own_imports

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType

    from epprof_nb.commands.main_module import MainModule
    from epprof_nb.core.options import Options
    from epprof_nb.jobs.child import ChildSession
    from epprof_nb.jobs.job import Job
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
    member
        This process as a member of a job, in whose folder it writes its part instead of a profile.
    children
        Whether child processes write their parts there, too.
    experiment
        Maximum number of steps with delays, after the recorded ones; 0 for none.
    """

    options: Options
    out: Path | None = None
    html: Path | None = None
    steps: tuple[int, int] | None = None
    lines: bool = True
    quiet: bool = False
    member: ChildSession | None = None
    children: bool = False
    experiment: int = 0


class _Recording:
    """The session of a run: the whole script, or from one step to another."""

    def __init__(self, request: RunRequest, main: MainModule) -> None:
        self.profile: Profile | None = None
        self.step = 0
        self.error: str | None = None
        self._process = os.getpid()
        self._request, self._main = request, main
        self._session: Session | None = None
        self._op: int | None = None
        self._experiment = (
            GuardedExperiment(
                request.experiment, say,
                tell=None if request.quiet else say, has_bar=not request.quiet,
            )
            if request.experiment
            else None
        )  # fmt: skip

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
        if self._experiment is not None:
            self._experiment.end(self.error)
        self._end_session()

    def _end_session(self) -> None:
        opened, self._session = self._session, None
        if opened is None:
            return
        try:
            member = self._request.member
            stop = opened.stop if member is None else member.stop
            data = stop(error=self.error)
            self.profile = None if data is None else Profile.from_data(data)
        except BaseException:
            opened.abort()
            raise

    def _begin_experiment(self) -> None:
        if self._experiment is not None and self.profile is not None:
            self._experiment.begin(self.profile)
            self._next_of_experiment()

    def say_lack_of_experiment(self) -> None:
        """Print that the script ended before an experiment, if one was wanted."""
        if self._experiment is not None and not self._experiment.has_begun:
            say(
                f"no experiment: the script ended in step {self.step}, before it could begin. "
                "epprof_nb.step() begins a step."
            )

    def _next_of_experiment(self) -> None:
        if self._experiment is not None and not self._experiment.next():
            with suppress(ValueError):
                steps.off_step(self._on_step)

    def _start(self) -> None:
        cell = self._main.cell
        named = {"cell": cell.name, "source": cell.source or None, "script": cell.name}
        member = self._request.member
        if member is None:
            self._session = session.start(self._request.options, **named)
        else:
            self._session = member.begin(**named)
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
            if self.step == end and self._experiment is None:
                self.end()
            elif self.step == end:
                self._end_session()
                self._begin_experiment()
            elif self.step > end:
                self._next_of_experiment()
            elif self._session is not None:
                self._session.mark_repeat(self.step)
            elif self.step == first:
                with own_imports():
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
    stop_waiting()
    recording, watch = _Recording(request, main), Watch()
    ending = Ending(stop=recording.end, save=lambda: _save(recording, request))
    try:
        code = main.compile(lines=request.lines)
        _observe_onnxruntime()
        watch.begin()
        ending.install(watch=request.member is not None)
        _begin(recording)
        if request.member is not None and request.children:
            give_order(request.member.order.path, in_fork=follow_in_fork)
        try:
            _raise_recursion_limit()
            main.execute(code)
        finally:
            recording.close_op()
    except SystemExit as raised:
        ending.succeeded = raised.code in (None, 0)
        raise
    except BaseException as raised:  # noqa: BLE001 - reported as Python reports it
        # The error itself would keep the frames of the script alive.
        recording.error = class_name(type(raised))
        _keep_as_last(raised)
        _report(raised)
        if allocation_error(raised) is not None:
            _explain(raised, watch.before)
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
    member = request.member
    if profile is None and request.steps is not None:
        say(
            f"nothing was recorded: the script ended in step {recording.step}, before "
            f"step {request.steps[0]}. epprof_nb.step() begins a step."
        )
    recording.say_lack_of_experiment()
    asked: list[tuple[Path, Callable[[Path], object]]] = []
    if member is not None:
        asked.append((Path(member.order.folder), lambda _: member.write_part("it did not begin")))
        if request.children:
            asked.append((Path(member.order.folder), lambda _: list_unrecorded(member.order)))
    if profile is not None and request.out is not None:
        asked.append((request.out, profile.save))
    if profile is not None and request.html is not None:
        asked.append((request.html, profile.to_html))
    lacking = set()
    for path, write in asked:
        try:
            write(path)
        except (Exception, KeyboardInterrupt) as problem:  # noqa: BLE001
            lacking.add(path)
            say(f"{path} could not be written ({type(problem).__name__}: {problem})")
    if not request.quiet and profile is not None and member is not None:
        _say_straggler(Path(member.order.folder))
    # One rank speaks for all.
    if not request.quiet and profile is not None and not ranks.rank():
        _summarise(profile, _job_of_children(request))
        for path in dict.fromkeys(path for path, _ in asked):
            if path not in lacking:
                say(f"Wrote {path}", prefix="")
    return not lacking


def _say_straggler(folder: Path) -> None:
    """Print the rank that the others waited for, if this process is the last of them to end."""
    if not ranks.is_one_of_several():
        return
    from epprof_nb.jobs.last_rank import sentence_of_last_rank

    try:
        sentence = sentence_of_last_rank(folder)
    except (Exception, KeyboardInterrupt) as problem:  # noqa: BLE001
        say(f"the ranks could not be compared ({type(problem).__name__}: {problem})")
        return
    if sentence is not None:
        say(f"{printable(sentence)} `epprof summary {folder}` has more.", prefix="")


def _job_of_children(request: RunRequest) -> Job | None:
    """Return the job of the script and its children, if it has other processes.

    A rank of a launcher has none: the other ranks may be running still.
    """
    if request.member is None or not request.children or ranks.is_one_of_several():
        return None
    from epprof_nb.jobs.loading import load_job

    try:
        job = load_job(Path(request.member.order.folder))
    except (EpprofError, OSError):
        return None  # the part could not be written, which has been said
    return job if len(job.processes) > 1 else None


def _summarise(profile: Profile, job: Job | None) -> None:
    from epprof_nb.views.renderers.text import as_text
    from epprof_nb.views.view_model import ViewModel

    try:
        text = as_text(ViewModel(profile)) if job is None else job.summary()
        if "experiment" in profile.info:
            from epprof_nb.views.sensitivity import SensitivityView

            text += f"\n{SensitivityView(profile).as_text()}"
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


def _keep_as_last(error: BaseException) -> None:
    """Keep the error where Python does before it reports one; it clears these when it ends."""
    error = error.with_traceback(_without_own(error.__traceback__))
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error


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


def _explain(error: BaseException, failures_before: int) -> None:
    """Print the explanation of an out-of-memory error."""
    from epprof_nb.profiles.out_of_memory import explained

    text = explained(error, failures_before)
    if text is not None:
        say(f"\n{text}", prefix="")


def _without_own(shown: TracebackType | None) -> TracebackType | None:
    folder = os.path.dirname(__file__)  # noqa: PTH120
    while shown is not None and shown.tb_frame.f_code.co_filename.startswith(folder):
        shown = shown.tb_next
    return shown
