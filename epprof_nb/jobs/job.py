"""Job: the profiles of several processes, with tables over all of them."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Literal, SupportsIndex, cast

import numpy as np

from epprof_nb.arrays.intervals import LATEST
from epprof_nb.jobs.job_collectives import JobCollectives
from epprof_nb.jobs.job_data import JobData, ranks_text
from epprof_nb.jobs.job_tables import JobTables
from epprof_nb.jobs.job_views import JobViews
from epprof_nb.profiles import Profile
from epprof_nb.util.method_names import name_methods

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from os import PathLike


class Job(JobTables, JobCollectives, JobViews):
    """Profiles of several processes, by rank.

    A job is a mapping from the number of each recorded process to its profile. The number is the
    rank that the launcher gave (``torchrun``, MPI, Slurm); other processes have the numbers after
    it. `ranks` also lists the processes that have no profile.

    Parameters
    ----------
    profiles
        Number of each process to its profile. A mapping may read them on demand.
    manifests
        Number to the facts about the process: its rank, pid, command and clock. Processes without
        a profile have a manifest only. Without manifests, the profiles are placed by the system
        clock, which processes of one host share.
    processes, notes
        The processes and notes on them; as in the manifests if left out.

    Attributes
    ----------
    notes
        Sentences on what the job lacks, such as ranks without a part.

    Notes
    -----
    All times of a job's tables, windows, views and traces are on the clock of the job: it is 0 at
    the start of its first profile, whether that process is a rank or not. `placements` has
    the offset of the times of ``job[3]``, which count from the start of that profile.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> job = Job({rank: synthetic_profile(activities=100, seed=rank) for rank in range(2)})
    >>> len(job), list(job), len(job[1].activities)
    (2, [0, 1], 100)
    >>> job.by_rank()["kernels"].tolist()
    [97, 97]
    """

    def window(self, t0: int, t1: int, ranks: Collection[int] | int | None = None) -> Profile:
        """Return a stretch of time of some processes as one profile.

        Parameters
        ----------
        t0, t1
            Start and end on the clock of the job, nanoseconds. The first profile begins at 0, and
            `end_ns` is the end of the last one.
        ranks
            The processes; all if None. Of each, the events of the stretch are read.

        Returns
        -------
        profile
            A profile with all analyses and views. Devices, threads, ops, API calls and sessions
            have new numbers, and names such as ``rank 3, GPU 0``. Events that cross the bounds are
            cut there. Tables that join a host to its devices, such as `Profile.critical_path` and
            `Profile.waits`, are made for each process alone, and then have a column ``process``;
            findings begin with its name. Times of a process with an unknown clock error are placed
            by the system clocks, which a note says.

        Raises
        ------
        TypeError
            If a rank is not an integer.
        ValueError
            If the stretch is empty or infinite, or no process was chosen.
        KeyError
            If the job has no profile of one of `ranks`.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> job = Job({rank: synthetic_profile(activities=100) for rank in range(2)})
        >>> prof = job.window(0, job.end_ns)
        >>> prof.by_device()[["device", "kernels"]]
                  device  kernels
        0  rank 0, GPU 0       97
        1  rank 1, GPU 0       97
        """
        from epprof_nb.jobs.window import Stretch, window

        if not all(abs(time) <= LATEST for time in (t0, t1)):
            raise ValueError(
                f"a window from {t0} to {t1} has no bounds: pass nanoseconds, "
                f"0 <= t0 < t1 <= {self.end_ns}"
            )
        t0, t1 = int(t0), int(t1)
        if ranks is None:
            ranks = list(self)
        # An array has the method of a number, too.
        is_one = isinstance(ranks, SupportsIndex) and not np.ndim(ranks)
        numbers = cast("Collection[int]", [ranks] if is_one else ranks)
        chosen = list(dict.fromkeys(index(number) for number in numbers))
        if t1 <= t0 or not chosen:
            raise ValueError(
                f"a window from {t0} to {t1} ns of {len(chosen)} processes has nothing in it: pass "
                f"0 <= t0 < t1 <= {self.end_ns} and ranks of this job"
            )
        placed = self.placements
        stretches = []
        for number in chosen:
            if number not in self:
                self[number]  # raises, and says why
            begin, end = (t - placed[number].offset_ns for t in (t0, t1))
            data = self.stretch(number, begin, end)
            stretches.append(Stretch(self.name(number), data, begin, end))
        data = window(stretches, begin_ns=t0)
        unsure = [n for n in chosen if placed[n].error_ns is None]
        if unsure and len(chosen) > 1:
            data.info["notes"].append(
                f"The clock error of {ranks_text(unsure)} is not known: they are placed by the "
                "system clocks, so their order relative to the other processes is not certain."
            )
        return Profile.from_data(data)

    def summary(
        self,
        max_chars: int = 8_000,
        format: Literal["text", "json"] = "text",  # noqa: A002 - as in other libraries
        *,
        redact: bool | str | Iterable[str] = False,
    ) -> str:
        """Summary of the job for people, programs and language models.

        Parameters
        ----------
        max_chars
            Maximum length of the result, at least 500. Rows that do not fit are left out and
            counted.
        format
            ``"text"``, or ``"json"`` for an object with the same parts.
        redact
            Parts to leave out; see `redacted`.

        Returns
        -------
        text
            The rank that the others waited for, and what took longer there; the processes with
            their device work, the ops with the most device time over all processes, and notes on
            what the job lacks.

        Raises
        ------
        ValueError
            If an argument is not as described.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> job = Job({rank: synthetic_profile(activities=100) for rank in range(2)})
        >>> print(job.summary().splitlines()[0])
        job of 2 processes   62.6 ms wall   2 devices busy 3.93 ms   194 kernels
        """
        from epprof_nb.jobs.summary import check_max_chars, job_json, job_text

        check_max_chars(max_chars)
        if format not in ("text", "json"):
            raise ValueError(f"format must be 'text' or 'json', not {format!r}")
        job = self.redacted(redact)
        return job_json(job, max_chars) if format == "json" else job_text(job, max_chars)

    def redacted(self, redact: bool | str | Iterable[str] = True) -> Job:  # noqa: FBT001, FBT002
        """Return a copy to share, without source, paths, host names or shapes.

        Parameters
        ----------
        redact
            Parts to remove, as for `Profile.redacted`. ``"hosts"`` also numbers hosts, processes
            and clocks anew; ``"source"``, ``"paths"`` and ``"hosts"`` remove the commands.

        Returns
        -------
        job
            The redacted job. Each profile is redacted when it is read.

        Raises
        ------
        ValueError
            If a part is unknown.

        Examples
        --------
        >>> from epprof_nb.testing import synthetic_profile
        >>> job = Job({0: synthetic_profile(activities=100)}).redacted("source")
        >>> job[0].info["redacted"]
        ['source']
        """
        from epprof_nb.jobs.redaction import RedactedProfiles, Redaction

        removed = Redaction(self.processes, redact)
        if not removed.parts:
            return self
        copy = Job(
            RedactedProfiles(self._profiles, removed.parts, removed.text),
            processes=[removed.process(process) for process in self.processes],
            notes=[removed.text(note) for note in self.notes],
        )
        copy._begins = self.placements  # the info that places other clocks is gone
        return copy

    def save(
        self, folder: str | PathLike[str], *, redact: bool | str | Iterable[str] = False
    ) -> None:
        """Write the job to a folder, which `epprof_nb.load` reads.

        Parameters
        ----------
        folder
            A folder without parts; it is created if it does not exist. Processes without a profile
            are written with the reason why they have none. A URL that fsspec opens, such as
            ``s3://bucket/run/``, is one, too.
        redact
            What to remove from the parts; see `redacted`.

        Raises
        ------
        FileExistsError
            If the folder has parts of a job, or is a file or a link to nothing.
        ValueError
            If the folder has no name.
        OSError
            If the folder cannot be written.

        Examples
        --------
        >>> import epprof_nb, tempfile
        >>> from epprof_nb.testing import synthetic_profile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Job({0: synthetic_profile(activities=100)}).save(f"{folder}/job")
        ...     len(epprof_nb.load(f"{folder}/job")[0].activities)
        100
        """
        from epprof_nb.jobs.saving import save_job

        save_job(self.redacted(redact), folder)

    def __copy__(self) -> Job:
        """Return a job with the same profiles, which are read on demand as in this one."""
        return Job(self._profiles, processes=self.processes, notes=self.notes)


name_methods("Job", JobTables, JobCollectives, JobViews, JobData)
