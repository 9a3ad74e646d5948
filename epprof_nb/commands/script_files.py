"""Files and summary of a recorded script, written and printed when it ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from epprof_nb.core.errors import EpprofError
from epprof_nb.jobs import launcher_environment
from epprof_nb.jobs.child_start import list_unrecorded
from epprof_nb.profiles.added_time_in_info import state_added_time
from epprof_nb.util.format import printable
from epprof_nb.util.stderr import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.commands.script_recording import RunRequest, ScriptRecording
    from epprof_nb.jobs.job import Job
    from epprof_nb.profiles import Profile


def save_files(recording: ScriptRecording, request: RunRequest) -> bool:
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
    if profile is not None and member is None:
        state_added_time(profile)
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
    if not request.quiet and profile is not None and not launcher_environment.rank():
        _summarise(profile, _job_of_children(request))
        for path in dict.fromkeys(path for path, _ in asked):
            if path not in lacking:
                say(f"Wrote {path}", prefix="")
    return not lacking


def _say_straggler(folder: Path) -> None:
    """Print the rank that the others waited for, if this process is the last of them to end."""
    if not launcher_environment.is_one_of_several():
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
    if request.member is None or not request.children or launcher_environment.is_one_of_several():
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
