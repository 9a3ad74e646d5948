"""Files with the tables of a job, for queries that read them without loading profiles."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from epprof_nb.core.errors import ProfileFileError
from epprof_nb.jobs.part_profiles import PartProfiles
from epprof_nb.jobs.saving import save_job

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.jobs.job_data import JobData

Files = dict[int, dict[str, Path]]
"""Number of a process to its files by the name of the table."""


@contextmanager
def files_of(job: JobData) -> Iterator[Files]:
    """Give the files of a job; one that is not in files is written to a temporary folder.

    Damaged parts are left out, and listed in ``job.damage``; ProfileFileError if no other is there.
    """
    if isinstance(job.profiles, PartProfiles):
        yield _with_one(job, _files(job, job.profiles))
        return
    with tempfile.TemporaryDirectory(prefix="epprof-job-") as folder:
        parts = save_job(job, folder)
        found = {
            number: {file.stem: file for file in parts[number].glob("*.parquet")}
            for number in job
            if number not in job.damage
        }
        yield _with_one(job, found)


def _files(job: JobData, profiles: PartProfiles) -> Files:
    found: Files = {}
    for number in profiles:
        try:
            found[number] = profiles.files(number)
        except ProfileFileError as error:
            job.damage[number] = str(error)
    return found


def _with_one(job: JobData, files: Files) -> Files:
    """Return the files of a job; ProfileFileError if all its parts are damaged."""
    number = next(iter(job), None)
    if number is not None and not files:
        raise ProfileFileError(
            f"the job cannot be read, because all its parts are damaged; {job.name(number)}: "
            f"{job.damage[number]}"
        )
    return files
