"""One use of the magic: the session from its start to the output under the cell.

Errors of the profiler never reach the user's code. They are reported in a line on stderr, and the
code runs as it would without the magic.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from epprof_nb import _native
from epprof_nb.notebook import cell_added_time, cell_output
from epprof_nb.notebook.messages import warn
from epprof_nb.notebook.muted_output import MutedOutput
from epprof_nb.util.format import format_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.jobs.job import Job
    from epprof_nb.notebook.arguments import Request
    from epprof_nb.notebook.baseline import Baseline
    from epprof_nb.notebook.cell_job import CellJob
    from epprof_nb.notebook.interleave import CellCode, Interleaving
    from epprof_nb.notebook.live_progress import LiveProgress
    from epprof_nb.profiles import Profile
    from epprof_nb.recording.delays.guarded_experiment import GuardedExperiment
    from epprof_nb.recording.session.session import Session
    from epprof_nb.recording.statements.statement_registry import Cell


OLD, NEW = 0, 1
"""The sides of a comparison whose repeats alternate."""


class OnError:
    """Context manager that calls a function with the exception that leaves its block."""

    def __init__(self, call: Callable[[BaseException], None]) -> None:
        self._call = call

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            self._call(error)


class CellRun:
    """Warm-ups, session, repeats and result of one use of the magic.

    Parameters
    ----------
    request
        The parsed options.
    cell
        The code; its name is set when it starts.
    assign
        Called with a name and the profile, or the job, to assign the variable.
    code
        The code as parsed, to run it again; None if it cannot be copied.
    baseline
        Profiles to compare with, if there are any.
    interleaving
        The baseline's code to run between the repeats, if any.
    job
        The recording of other processes, if it is wanted.
    info
        IPython's ``ExecutionInfo`` of the cell, to recognise its end among nested cells; None
        if IPython provided none.
    runs_code_itself
        Whether the magic runs the code itself instead of IPython.
    """

    def __init__(
        self,
        request: Request,
        cell: Cell,
        assign: Callable[[str, object], None],
        *,
        code: CellCode | None = None,
        baseline: Baseline | None = None,
        interleaving: Interleaving | None = None,
        job: CellJob | None = None,
        info: object | None = None,
        runs_code_itself: bool = False,
    ) -> None:
        self.request = request
        self.cell = cell
        self.info = info
        self.runs_code_itself = runs_code_itself
        self.profile: Profile | None = None
        self.code = code
        self.notes: list[str] = []  # added to the profile's notes
        self._assign = assign
        self._baseline = baseline
        self._interleaving = interleaving
        self._job = job
        self._experiment = self._new_experiment() if request.experiment else None
        self._muted = MutedOutput()
        self._session: Session | None = None
        self._live: LiveProgress | None = None
        self._op = 0
        self._times = (0, 0)  # begin and end of the profile
        self._warmed = 0
        self._warmup_times, self._repeat_times = (
            cell_added_time.RunTimes(),
            cell_added_time.RunTimes(),
        )
        self._repeats = 0
        self._runs = 0  # executions of the code that have begun

    def _new_experiment(self) -> GuardedExperiment:
        from epprof_nb.recording.delays.guarded_experiment import GuardedExperiment

        return GuardedExperiment(
            self.request.experiment,
            self._say_if_quiet,
            has_bar=not self.request.quiet,
            may_record=True,
        )

    def warm_up(self) -> bool:
        """Whether to run the code again before the session."""
        __tracebackhide__ = True
        self._warmed += 1
        self._warmup_times.mark()
        if self._session is not None:
            _native.uninterrupted(self._end_session)
        if self._warmed > self.request.warmup:
            return False
        self._runs += 1
        if self._experiment is not None and self._warmed == 1:
            self._record()  # for its profile, in case that this run fails
        self._mute()
        if self._interleaving is not None:
            self._run_baseline(self._interleaving, marked=False)
        return True

    def start(self) -> bool:
        """Start the session, and those of the child processes; False if nothing is to record."""
        __tracebackhide__ = True
        self._muted.end()
        if self._experiment is not None and self._repeats:
            if not self._experiment.wants_recording:
                self._runs += 1  # the last one, which gives the results
                return False
            self._repeats = 0
        self._repeat_times = cell_added_time.RunTimes()
        self._record(is_warmup=False)
        self._mute()
        return True

    def _record(self, *, is_warmup: bool = True) -> None:
        """Start the session; in a warm-up, without a progress bar."""
        try:
            _native.uninterrupted(self._start_session)
            if self._job is not None and self._session is not None:
                self._job.begin()
            if self.request.live and self._session is not None and not is_warmup:
                self._show_progress(self._session)
            if self._session is not None:
                self._begin_code(self._session)
        except Exception as error:  # noqa: BLE001 - the code must run in any case
            warn(
                f"profiling could not be started ({format_error(error)}). The code runs without "
                "it. Run `epprof doctor` in a terminal to find out what is missing."
            )

    def _mute(self) -> None:
        """Keep back the output of a run before the last one of an experiment."""
        if self._experiment is not None:
            self._muted.begin()

    def _start_session(self) -> None:
        from epprof_nb.recording.session import session

        if self._experiment is not None:
            self._experiment.prepare()
        if not self.request.lines:
            # Functions of cells that were profiled before have markers.
            _native.leave_out_statements()
        self._session = session.start(
            self.request.options, cell=self.cell.name, source=self.cell.source
        )

    def _begin_code(self, session: Session) -> None:
        from epprof_nb.recording.session.ops_table import CELL

        name = _native.intern(self.cell.name)
        session.begin_code()
        if self._interleaving is None:  # otherwise each repeat has its own op
            self._op = _native.push(name, CELL)

    def _show_progress(self, session: Session) -> None:
        from IPython.core.interactiveshell import InteractiveShell

        from epprof_nb.notebook.live_progress import LiveProgress, screen_of

        try:
            screen = screen_of(InteractiveShell.instance())
            if screen is not None:
                self._live = LiveProgress(
                    session, screen, None if self._job is None else self._job.progress
                )
        except Exception as error:  # noqa: BLE001
            warn(f"progress cannot be shown ({format_error(error)}). Profiling continues.")

    def repeat(self) -> bool:
        """Mark the start of the next repeat; False for the last one, which runs after the loop."""
        __tracebackhide__ = True
        if self._experiment is not None and self._repeats == self.request.repeat:
            self._muted.end()
            self._stop_recording()  # what follows is not recorded
            return False
        if self._session is not None and self._interleaving is not None:
            for _ in range(self._interleaving.runs_before(self._repeats)):
                self._begin_repeat(self._session, self._interleaving, OLD)
                self._run_baseline(self._interleaving)
            self._begin_repeat(self._session, self._interleaving, NEW)
        elif self._session is not None and self.request.repeat > 1:
            self._guarded_mark(self._session.mark_repeat)
        self._mark_repeat_time()
        self._repeats += 1
        self._runs += 1
        return self._experiment is not None or self._repeats < self.request.repeat

    def _mark_repeat_time(self) -> None:
        if self._warmup_times.are_long():
            self._repeat_times.mark()

    def _say_if_quiet(self, text: str) -> None:
        """Print why there is no experiment, unless it is shown below the cell."""
        if self.request.quiet:
            warn(text)

    def next_of_experiment(self) -> bool:
        """Whether to run the code again with delays. The last run, afterwards, has none."""
        __tracebackhide__ = True
        if self._experiment is None or self.profile is None:
            return False
        self._muted.end()
        if not self._experiment.has_begun or self._experiment.wants_recording:
            self._experiment.begin(self.profile)
        if not self._experiment.next():
            return False
        self._runs += 1
        self._mute()
        return True

    def _begin_repeat(self, session: Session, interleaving: Interleaving, side: int) -> None:
        """End the open repeat and begin a repeat of `side`."""
        from epprof_nb.recording.session.ops_table import CELL

        _native.pop(self._op)  # also closes the statement that is still open
        if interleaving.sides:
            self._guarded_mark(session.end_repeat)
        interleaving.sides.append(side)
        self._guarded_mark(session.begin_repeat)
        cell = interleaving.code.cell if side == OLD else self.cell
        self._op = _native.push(_native.intern(cell.name), CELL)

    def _guarded_mark(self, mark: Callable[[], None]) -> None:
        try:
            mark()
        except Exception as error:  # noqa: BLE001 - the code must run in any case
            warn(f"the repeats of this profile cannot be separated ({format_error(error)}).")

    def _run_baseline(self, interleaving: Interleaving, *, marked: bool = True) -> None:
        __tracebackhide__ = True
        try:
            interleaving.run(marked=marked)
        except BaseException as error:
            warn(
                f"{type(error).__name__} in the code of the baseline {interleaving.text} "
                f"({interleaving.code.cell.name}), which --interleave runs again, not in the code "
                "of this cell."
            )
            raise

    def stop(self, error: BaseException | None = None) -> None:
        """End the session and the experiment, if active, and create the profile."""
        self._muted.end(show=True)  # of a run that failed, or of the only one
        if self._experiment is not None:
            self._experiment.end(None if error is None else type(error).__name__)
        self._stop_recording(error)

    def _stop_recording(self, error: BaseException | None = None) -> None:
        ended_ns = _native.now_ns()
        _native.leave_function()
        if self._session is not None:
            self._mark_repeat_time()
            if self._job is not None:
                self._job.send_end(ended_ns)
            _native.call_then(self._end_session, self._stop, self._session, error, ended_ns)

    def _stop(self, session: Session, error: BaseException | None, ended_ns: int) -> None:
        _native.pop(self._op)  # also closes the statement that is still open
        self._end_progress()
        try:
            name = None if error is None else type(error).__name__
            data = session.stop(error=name, ended_ns=ended_ns)
            self._times = session.opened_ns, ended_ns
            # Not before the session has ended: in the first cell the import takes long.
            from epprof_nb.profiles import Profile

            if self._interleaving is None:
                self.profile = Profile.from_data(data)
            else:
                self.profile = self._split(data, self._interleaving)
        except (Exception, KeyboardInterrupt) as failure:  # noqa: BLE001
            warn(
                f"the profile could not be completed ({format_error(failure)}) and is lost. The "
                "results of the code are not affected. Run `epprof doctor` in a terminal to check "
                "the profiler."
            )

    def _split(self, data: ProfileData, interleaving: Interleaving) -> Profile:
        """Return the profile of the cell; its `baseline` is the profile of the baseline's code."""
        from epprof_nb.profiles import Profile
        from epprof_nb.recording.session.interleaving import split

        cells = (interleaving.code.cell, self.cell)
        old, new = split(
            data,
            interleaving.sides,
            [cell.name for cell in cells],
            [cell.source for cell in cells],
            recording=uuid.uuid4().hex,
        )
        profile = Profile.from_data(new)
        profile.baseline = Profile.from_data(old)
        return profile

    def _end_session(self) -> None:
        if self._session is not None:
            _native.pop(self._op)
            self._session.abort()  # does nothing if it has stopped
            self._session = None

    def _end_progress(self) -> None:
        live, self._live = self._live, None
        if live is None:
            return
        try:
            live.stop()
        except (Exception, KeyboardInterrupt) as failure:  # noqa: BLE001
            warn(f"the progress display could not be cleared ({format_error(failure)}).")
        if live.failure is not None:
            warn(
                f"the progress display failed ({format_error(live.failure)}). The profile is "
                "complete."
            )

    def finish(self, error: BaseException | None = None, *, note: str | None = None) -> None:
        """End the session, assign the variable, save the file and display the profile.

        `note` is added to the notes of the profile.
        """
        self.stop(error)
        if self.profile is None:
            self._say_nothing_recorded(error)
            if self._job is not None:
                self._job.close()
            return
        notes = self.notes if note is None else [*self.notes, note]
        self.profile.info["notes"] += notes
        self._add_time(self.profile)
        self._remember_code(self.profile)
        self._add_experiment()
        job = self._finish_job(self.profile)
        result = self.profile if job is None else job
        if self.request.name is not None:
            self._assign(self.request.name, result)
        if self.request.save is not None:
            cell_output.save(self.profile, self.request.save)
        if not self.request.quiet:
            cell_output.show(self.profile, job)
        if self._baseline is not None:
            cell_output.compare(
                self.profile,
                self._baseline,
                self.request.name,
                may_calibrate=self.request.calibrate,
            )

    def _say_nothing_recorded(self, error: BaseException | None) -> None:
        """Say that a run before the recorded one failed, if one did."""
        if error is None or not self._warmed or self._repeats:
            return
        if self.request.quiet and self.request.name is None:
            return  # nothing would have been shown
        kept = "" if self.request.name is None else f" and {self.request.name} is not assigned"
        kind = type(error).__name__
        warn(f"{kind} in a run before the recorded one, so nothing was recorded{kept}.")

    def _finish_job(self, profile: Profile) -> Job | None:
        return None if self._job is None else self._job.finish(profile, *self._times)

    def _add_time(self, profile: Profile) -> None:
        """Add what profiling added to the info."""
        # Warm-ups alternate with the baseline, too, but are not timed one by one.
        warmups = (
            cell_added_time.RunTimes() if self._interleaving is not None else self._warmup_times
        )
        try:
            cell_added_time.add_time(profile, self.request, warmups, self._repeat_times)
        except Exception as failure:  # noqa: BLE001 - the profile is complete without it
            warn(f"what profiling added is not known ({format_error(failure)}).")

    def _add_experiment(self) -> None:
        """Add how often the code ran; say why there was no experiment, if nothing else does."""
        if self._experiment is None or self.profile is None:
            return
        if not self._experiment.has_begun:
            error = self.profile.info.get("error")
            why = f"{error} ended the code" if error else "the code of this cell ended"
            run = " in its first run, a warm-up" if not self._repeats else ""
            warn(f"no experiment: {why}{run}.")
        elif "experiment" in self.profile.info:
            self.profile.info["experiment"]["runs"] = self._runs

    def _remember_code(self, profile: Profile) -> None:
        """Keep the code for a later ``--interleave``."""
        from IPython.core.interactiveshell import InteractiveShell

        variables = InteractiveShell.instance().user_ns
        try:
            if self.code is not None:
                self.code.remember(profile, variables)
            if self._interleaving is not None and profile.baseline is not None:
                self._interleaving.code.remember(profile.baseline, variables)
        except Exception as error:  # noqa: BLE001 - objects of the user may do anything
            warn(f"--interleave will not run this cell again ({format_error(error)}).")
