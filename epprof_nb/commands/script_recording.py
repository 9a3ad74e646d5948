"""The recording of a script: from its start to its end, or in some of its steps."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epprof_nb import _native
from epprof_nb.profiles import Profile
from epprof_nb.recording.delays.guarded_experiment import GuardedExperiment
from epprof_nb.recording.session import marked_steps, session
from epprof_nb.recording.session.ops_table import CELL
from epprof_nb.util.shadowed_modules import own_imports
from epprof_nb.util.stderr import say

if TYPE_CHECKING:
    from pathlib import Path

    from epprof_nb.commands.main_module import MainModule
    from epprof_nb.core.options import Options
    from epprof_nb.jobs.child_session import ChildSession
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


class ScriptRecording:
    """The session of a run: the whole script, or from one step to another."""

    def __init__(self, request: RunRequest, main: MainModule) -> None:
        self.profile: Profile | None = None
        self.step = 0
        self.error: str | None = None
        self._process = os.getpid()
        self._request, self._main = request, main
        self._first, self._end = request.steps or (0, sys.maxsize)  # steps to record
        self._done = 0  # steps of the repeat of the experiment that runs
        self._session: Session | None = None
        self._op: int | None = None
        self._experiment = (
            GuardedExperiment(
                request.experiment, say,
                tell=None if request.quiet else say, has_bar=not request.quiet,
                may_record=True, in_steps=True,
            )
            if request.experiment
            else None
        )  # fmt: skip

    def begin(self) -> None:
        """Start with the script, unless a later step is the first one."""
        marked_steps.on_step(self._on_step)
        if self._request.steps is None:
            self._start()
            self._op = _native.push(_native.intern(self._main.cell.name), CELL)
        elif self._request.steps[0] == 0:
            self._start()

    def end(self) -> None:
        """Stop recording; the profile is kept in `profile`."""
        with suppress(ValueError):
            marked_steps.off_step(self._on_step)
        if self._experiment is not None:
            self._experiment.end(self.error)
        if self.profile is not None:
            self._abort()  # the steps that an experiment wanted are incomplete
        self._end_session()

    def _abort(self) -> None:
        opened, self._session = self._session, None
        if opened is not None:
            opened.abort()

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
            self._next_of_experiment(self._experiment)

    def say_lack_of_experiment(self) -> None:
        """Print that the script ended before an experiment, if one was wanted."""
        if self._experiment is not None and not self._experiment.has_begun:
            say(
                f"no experiment: the script ended in step {self.step}, before it could begin. "
                "epprof_nb.step() begins a step, and --steps A:B names those to record."
            )

    def _next_of_experiment(self, experiment: GuardedExperiment) -> None:
        """End the repeat of an experiment, and begin the next one, or record again."""
        self._done = 0
        if experiment.next():
            return
        if experiment.wants_recording:
            self._first, self._end = self.step, self.step + experiment.steps
            self._start()
            return
        with suppress(ValueError):
            marked_steps.off_step(self._on_step)

    def _start(self) -> None:
        cell = self._main.cell
        named = {"cell": cell.name, "source": cell.source or None, "script": cell.name}
        if self._experiment is not None:
            self._experiment.prepare()
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
        try:
            if self.step == self._end and self._experiment is None:
                self.end()
            elif self.step == self._end:
                self._end_session()
                self._begin_experiment()
            elif self._experiment is not None and self.step > self._end:
                self._done += 1
                if self._done == self._experiment.steps:
                    self._next_of_experiment(self._experiment)
            elif self._session is not None:
                self._session.mark_repeat(self.step)
            elif self.step == self._first:
                with own_imports():
                    self._start()
        except Exception as error:  # noqa: BLE001 - the script must run in any case
            say(f"step {self.step} could not be recorded ({type(error).__name__}: {error})")
