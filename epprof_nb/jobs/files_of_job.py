"""The files with the tables of a job, for what reads them instead of the profiles."""

from __future__ import annotations

import stat
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from epprof_nb.files.epprof.manifest_checks import stated
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

    Parts that lack a file are left out, and listed in ``job.damage``.
    """
    if isinstance(job.profiles, PartProfiles):
        yield _files(job, job.profiles)
        return
    with tempfile.TemporaryDirectory(prefix="epprof-job-") as folder:
        parts = save_job(job, folder)
        yield {
            number: {file.stem: file for file in part.glob("*.parquet")}
            for number, part in parts.items()
        }


def _files(job: JobData, profiles: PartProfiles) -> Files:
    found: Files = {}
    for number, (folder, manifest) in profiles.parts.items():
        files = {name: folder / f"{name}.parquet" for name in stated(manifest.tables)[0]}
        wrong = [path for path in files.values() if not _is_file(path)]
        if wrong:
            job.damage[number] = f"{wrong[0]} is not a file"
        else:
            found[number] = files
    return found


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
