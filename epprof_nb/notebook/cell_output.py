"""Output of a profiled cell: its file, and what is displayed below it. Errors are only reported."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from IPython.display import display

from epprof_nb.notebook.messages import warn
from epprof_nb.util.format import format_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from epprof_nb.jobs.job import Job
    from epprof_nb.notebook.baseline import Baseline
    from epprof_nb.profiles import Profile


def save(profile: Profile, path: Path) -> None:
    """Save the profile of a cell."""
    try:
        profile.save(path)
    except Exception as failure:  # noqa: BLE001
        warn(
            f"the profile could not be saved to {path} ({format_error(failure)}). If it was "
            "assigned to a variable, save it again with prof.save(path)."
        )


def show(profile: Profile, job: Job | None) -> None:
    """Display a profile, the job that it is a part of, and its experiment.

    The info of the profile has the time that it took, which the cell takes longer.
    """
    begin = time.perf_counter_ns()
    try:
        for shown in _shown(profile, job):
            display(shown)
    except Exception as failure:  # noqa: BLE001
        warn(f"the profile could not be displayed ({format_error(failure)}).")
        return
    from epprof_nb.analysis.base.index import add_to_info

    cost = profile.info.get("profiling_cost") or {}
    draw_ns = time.perf_counter_ns() - begin
    add_to_info(profile, profiling_cost={**cost, "draw_ns": draw_ns})


def _shown(profile: Profile, job: Job | None) -> Iterator[object]:
    if job is not None:
        yield job
    yield profile
    if "experiment" in profile.info:
        from epprof_nb.views.sensitivity import SensitivityView

        yield SensitivityView(profile)


def compare(profile: Profile, baseline: Baseline, name: str | None, *, may_calibrate: bool) -> None:
    """Display the comparison of a profile with its baseline."""
    try:
        display(baseline.compare(profile, name, may_calibrate=may_calibrate))
    except Exception as failure:  # noqa: BLE001
        warn(f"the comparison with the baseline failed ({format_error(failure)}).")
