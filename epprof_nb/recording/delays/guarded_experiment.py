"""Experiments in the user's process: their errors are reported and never reach the user's code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb import _native
from epprof_nb.analysis.experiments.measurements_in_info import Measured
from epprof_nb.core.errors import ExperimentError
from epprof_nb.recording.delays.device import device_of
from epprof_nb.recording.delays.experiment import Experiment
from epprof_nb.util.format import format_error
from epprof_nb.util.progress_bar import progress_bar

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tqdm.std import tqdm

    from epprof_nb.data.profile_data import ProfileData


_LONG_NS = 10_000_000_000
"""Expected time from which on the progress bar is shown at once, with how long it will take."""


class GuardedExperiment:
    """An experiment with a progress bar, whose result is put into the info of a profile.

    Parameters
    ----------
    repeats
        Maximum number of repeats with delays.
    say
        Called with a sentence if something goes wrong.
    tell
        Called with a sentence on how often the code will run, at the start, and with one on how
        exact the repeats will be, before those with delays.
    has_bar
        Whether to show a progress bar, where there is a place for it.
    may_record
        Whether whoever runs the repeats can record again.
    in_steps
        Whether a repeat is some steps of a loop, as many as were recorded.
    """

    def __init__(
        self,
        repeats: int,
        say: Callable[[str], None],
        *,
        tell: Callable[[str], None] | None = None,
        has_bar: bool = True,
        may_record: bool = False,
        in_steps: bool = False,
    ) -> None:
        self._may_record, self._in_steps = may_record, in_steps
        self._repeats, self._say, self._tell_user, self._has_bar = repeats, say, tell, has_bar
        self._profile: ProfileData | None = None
        self._experiment: Experiment | None = None
        self._bar: tqdm[Any] | None = None

    @property
    def has_begun(self) -> bool:
        """Whether there was a profile to begin with."""
        return self._profile is not None

    @property
    def steps(self) -> int:
        """Number of steps of a repeat."""
        return 1 if self._experiment is None else self._experiment.steps

    @property
    def wants_recording(self) -> bool:
        """Whether to record again, and to call `begin` with the new profile."""
        return self._experiment is not None and self._experiment.wants_recording

    def prepare(self) -> None:
        """Let the next recording note the streams of GPUs. `end` ends it."""
        _native.follow_streams(True)  # noqa: FBT003

    def begin(self, profile: ProfileData) -> None:
        """Begin, or go on, with the profile of a recorded repeat, which gets the result."""
        self._profile = profile
        try:
            if self._experiment is not None:
                self._experiment.begin(profile)
                return
            self._experiment = experiment = Experiment(
                self._repeats, device_of(profile), self._tell,
                may_record=self._may_record, in_steps=self._in_steps,
            )  # fmt: skip
            experiment.begin(profile)
            what = f"Experiment: {experiment.announcement}"
            if self._has_bar:
                delay_s = 0 if experiment.expected_ns > _LONG_NS else None
                title = what.removesuffix(".")  # the bar adds a colon
                self._bar = progress_bar(title, experiment.total, " repeats", delay_s=delay_s)
            if self._tell_user is not None:
                self._tell_user(what)
        except Exception as error:  # noqa: BLE001 - the code must run in any case
            self._refuse(error)

    def next(self) -> bool:
        """End the repeat that runs, and begin the next one; False if there is none."""
        experiment = self._experiment
        if experiment is None:
            return False
        try:
            if self._bar is not None:
                self._bar.total = experiment.total
                self._bar.update(experiment.done - self._bar.n)
            if experiment.next():
                return True
            if experiment.wants_recording:
                return False
        except Exception as error:  # noqa: BLE001 - the code must run in any case
            self._refuse(error)
        self._end()
        return False

    def end(self, error: str | None = None) -> None:
        """End the experiment, if it runs, and keep what was measured.

        Parameters
        ----------
        error
            Name of the exception that ended the code; None if there was none.
        """
        experiment = self._experiment
        if experiment is not None:
            why = "the code ended" if error is None else f"{error} ended the code"
            if error == "KeyboardInterrupt":
                why = "it was interrupted"
            when = (
                f"after {experiment.measured.repeats} of {experiment.delayed} repeats with delays"
                if experiment.delayed
                else "before the repeats with delays"
            )
            needs = f" It takes {experiment.runs} steps after the recorded ones."
            experiment.measured.refused = f"{why} {when}.{needs if self._in_steps else ''}"
        self._end()

    def _end(self) -> None:
        experiment, self._experiment = self._experiment, None
        bar, self._bar = self._bar, None
        if experiment is not None and self._profile is not None:
            experiment.end()
            self._profile.info["experiment"] = experiment.measured.as_info()
        _native.follow_streams(False)  # noqa: FBT003 - once no delay can be launched
        if bar is not None:
            bar.close()

    def _tell(self, sentence: str) -> None:
        if self._bar is not None:
            # A refresh would show it before its time, and `close` would not know that it did.
            self._bar.set_description_str(sentence.removesuffix("."), refresh=False)
        if self._tell_user is not None:
            self._tell_user(sentence)

    def _refuse(self, error: Exception) -> None:
        reason = str(error) if isinstance(error, ExperimentError) else format_error(error)
        if self._experiment is not None:
            self._experiment.measured.refused = reason
        elif self._profile is not None:
            self._profile.info["experiment"] = Measured(self._repeats, refused=reason).as_info()
        self._say(f"no experiment: {reason}")
        self._end()
