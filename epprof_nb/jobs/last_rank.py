"""The rank of a job that ends last: it can say what the others cannot know yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.analysis.ranks.straggler_reasons import explained
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.files.dataset.manifest import MANIFEST
from epprof_nb.jobs import launcher_environment
from epprof_nb.jobs.loading import load_job
from epprof_nb.jobs.process_part import part_folders
from epprof_nb.jobs.ranks_of_job import sentence_on_stragglers
from epprof_nb.jobs.summary import MAX_PROCESSES_OF_FINDINGS

if TYPE_CHECKING:
    from pathlib import Path

    from epprof_nb.jobs.job import Job


def sentence_of_last_rank(folder: Path) -> str | None:
    """Return the sentence on the straggler of a job whose ranks have all ended.

    Parameters
    ----------
    folder
        Folder of the job, in which this process has written its part.

    Returns
    -------
    sentence
        None without a straggler, before all ranks have written their parts, in other ranks than
        the last one to do so, and in large jobs, which take long to read.
    """
    rank, world = launcher_environment.rank(), launcher_environment.world_size()
    if rank is None or world is None or not 1 < world <= MAX_PROCESSES_OF_FINDINGS:
        return None
    try:
        if sum((part / MANIFEST).exists() for part, _ in part_folders(folder)) < world:
            return None
        job = load_job(folder)
        if _last(job, world) != rank or not job.across.cached(explained):
            return None
        return sentence_on_stragglers(job)
    except (OSError, ProfileFileError):
        return None  # such as the part of another rank, which its own process reports


def _last(job: Job, world: int) -> int | None:
    """Return the rank that wrote its part last; None if one has not."""
    written = {
        process.number: (process.part / MANIFEST).stat().st_ctime_ns
        for process in job.processes
        # Children of a rank state its number, too.
        if process.launched and process.manifest and process.manifest.followed == "run"
    }
    if written.keys() != {*range(world)}:
        return None
    return max(written, key=lambda number: (written[number], number))
