"""Save a job as a folder of parts."""

from __future__ import annotations

import os
import secrets
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from epprof_nb.core.errors import ProfileFileError
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.files.dataset.manifest import Manifest
from epprof_nb.files.dataset.part import write_part
from epprof_nb.files.dataset.remote import is_url, not_a_folder, put_job

if TYPE_CHECKING:
    from epprof_nb.jobs.job_data import JobData
    from epprof_nb.jobs.process_numbers import Process


def save_job(job: JobData, folder: str | os.PathLike[str]) -> dict[int, Path]:
    """Write a job to a folder, one process after the other; see `Job.save`.

    Returns
    -------
    parts
        Number of each process to the folder of its part; empty for a URL.
    """
    if not os.fspath(folder):
        raise ValueError("the folder has no name: name a new one, as in job.save('run/')")
    if isinstance(folder, str) and is_url(folder):
        with tempfile.TemporaryDirectory(prefix="epprof-save-") as local:
            save_job(job, Path(local) / "job")
            put_job(Path(local) / "job", folder)
        return {}
    target = Path(folder)
    if os.path.lexists(target) and not target.is_dir():
        kind = "a link to nothing" if not target.exists() else "a file"
        raise FileExistsError(not_a_folder(target, kind))
    target.mkdir(parents=True, exist_ok=True)
    if any(entry.name.startswith("rank-") for entry in os.scandir(target)):
        raise FileExistsError(
            f"{target} has parts of a job already, which would be mixed up with these; name a new "
            "folder"
        )
    job_id = next((p.manifest.job_id for p in job.processes if p.manifest), secrets.token_hex(8))
    taken: set[str] = set()
    parts: dict[int, Path] = {}
    for process in job.processes:
        if process.state == "missing":  # it is again, because the others state their number
            continue
        manifest, data = _manifest(job, process, job_id), ProfileData()
        if process.number in job:
            try:
                data = job[process.number]
            except ProfileFileError as error:
                job.damage[process.number] = str(error)
                manifest = replace(manifest, state="not recorded", reason=str(error))
        parts[process.number] = target / _free(manifest.folder_name, taken)
        write_part(data, parts[process.number], manifest)
    return parts


def _manifest(job: JobData, process: Process, job_id: str) -> Manifest:
    if process.manifest is not None:
        return process.manifest
    is_recorded = process.number in job
    return Manifest(
        job_id=job_id,
        pid=process.number + 1 if process.pid is None else process.pid,
        parent_pid=0,
        rank=process.number if process.launched or is_recorded else None,
        state="complete" if is_recorded else "not recorded",
        reason=process.reason,
        end_ns=job.wall_ns(process.number) if is_recorded else 0,
    )


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    taken.add(free)
    return free
