"""The ranks of a job for analyses across them, on the job's clock."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from epprof_nb.analysis.ranks.collectives import collective_notes
from epprof_nb.analysis.ranks.ranks_on_one_clock import Ranks
from epprof_nb.analysis.ranks.straggler_reasons import straggler_sentence
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.data.profile_data import ProfileData

if TYPE_CHECKING:
    from epprof_nb.jobs.job_data import JobData


def ranks_of(job: JobData) -> Ranks:
    """Return the ranks of a job.

    These are the processes to which the launcher gave a rank, else all of them.
    """
    numbers = []
    launched = {process.number for process in job.processes if process.launched}
    for number in job:
        if launched and number not in launched:
            continue
        numbers.append(number)
    profiles = _ReadProfiles(job, numbers)
    placed = job.placements
    # With an unknown error, no two times are near each other.
    stated = {number: placed[number].error_ns for number in numbers}
    errors = {n: sys.maxsize // 4 if error is None else error for n, error in stated.items()}
    ranks = Ranks(profiles, {n: placed[n].offset_ns for n in numbers}, errors)
    for number in [*numbers]:
        try:
            ranks.facts(number)
        except ProfileFileError as error:
            job.damage[number] = str(error)
            numbers.remove(number)
    return ranks


class _ReadProfiles(Mapping[int, ProfileData]):
    """Profiles of a job that are read each time, so that only one needs to be in memory."""

    def __init__(self, job: JobData, numbers: Sequence[int]) -> None:
        self._job, self._numbers = job, numbers

    def __getitem__(self, number: int) -> ProfileData:
        return self._job.read(number)

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


def notes_on_collectives(job: JobData) -> list[str]:
    """Return what `Job.collectives` could not match, and the residual of the clocks."""
    return collective_notes(job.across)


def sentence_on_stragglers(job: JobData) -> str | None:
    """Return a sentence on the rank that the others waited for most.

    If no rank was late, the sentence says so. None without collectives that wait for all ranks.
    """
    return straggler_sentence(job.across)
