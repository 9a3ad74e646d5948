"""Files of profiles and traces: read by their content, written by the suffix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.profiles import Profile, load, read_trace

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from epprof_nb.jobs.job import Job

_ZIP = b"PK"
_METHODS = {
    ".epprof": "save",
    ".html": "to_html",
    ".pftrace": "to_perfetto",
    ".pftrace.gz": "to_perfetto",
    # Before .json, which these names end in, too.
    ".speedscope.json": "to_speedscope",
    ".speedscope.json.gz": "to_speedscope",
    ".json": "to_chrome",
    ".json.gz": "to_chrome",
}
SUFFIXES = tuple(_METHODS)
"""Suffixes that `writer_for` knows."""
_OF_JOBS = ("to_html", "to_perfetto", "to_chrome")
JOB_SUFFIXES = tuple(suffix for suffix, method in _METHODS.items() if method in _OF_JOBS)
"""Suffixes of files that can hold a job."""


def open_any(path: Path) -> Profile:
    """Read a saved profile, which is a zip archive, or a trace of another tool."""
    with path.open("rb") as file:
        is_profile = file.read(len(_ZIP)) == _ZIP
    return load(path) if is_profile else read_trace(path)


def open_job_or_any(path: Path) -> Profile | Job:
    """Read the job of a folder, or a file as `open_any` does."""
    from epprof_nb.jobs.loading import load_job

    return load_job(path) if path.is_dir() else open_any(path)


def writer_for(path: Path, *, of_job: bool = False) -> Callable[[Profile | Job, Path], None] | None:
    """Return what writes the format of a path's suffix; None for other suffixes.

    Parameters
    ----------
    path
        The path.
    of_job
        Whether it writes a job, for which some formats have no place.
    """
    method = next((name for suffix, name in _METHODS.items() if path.name.endswith(suffix)), None)
    if method is None or (of_job and method not in _OF_JOBS):
        return None
    name = method

    def write(profile: Profile | Job, target: Path) -> None:
        getattr(profile, name)(target)

    return write
