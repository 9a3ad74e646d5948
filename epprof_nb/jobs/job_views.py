"""Views and traces of a job."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from epprof_nb.analysis.base.result_table import ResultTable, categorical
from epprof_nb.analysis.ranks.collectives import collectives_table
from epprof_nb.analysis.ranks.straggler_reasons import explained
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.files.exporters.trace_processes import TraceProcess
from epprof_nb.jobs.by_device import device_data
from epprof_nb.jobs.ranks_of_job import notes_on_collectives, sentence_on_stragglers
from epprof_nb.jobs.ranks_table import ranks_table
from epprof_nb.jobs.summary import findings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from os import PathLike

    from epprof_nb.jobs.job import Job
    from epprof_nb.views.job_view import JobView


class JobViews:
    """The methods of a job that show it, or write it for other tools."""

    def to_html(
        self, path: str | PathLike[str], *, redact: bool | str | Iterable[str] = False
    ) -> None:
        """Write a self-contained HTML page: ranks over time, collectives and what is missing.

        It needs neither kernel nor network, and has a timeline of up to 8 ranks: stragglers, and
        the first ones.

        Parameters
        ----------
        path
            The file; an existing file is replaced.
        redact
            Parts to remove from the file; see `Job.redacted`.

        Raises
        ------
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> import os, tempfile
        >>> from epprof_nb.jobs.job import Job
        >>> from epprof_nb.testing import synthetic_profile
        >>> job = Job({rank: synthetic_profile(activities=100) for rank in range(2)})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     job.to_html(f"{folder}/job.html")
        ...     os.listdir(folder)
        ['job.html']
        """
        view_of(cast("Job", self).redacted(redact)).write_html(path)

    def to_chrome(
        self, path: str | PathLike[str], *, redact: bool | str | Iterable[str] = False
    ) -> None:
        """Write a Chrome trace (JSON) with one process per rank, which Perfetto can open.

        Times are microseconds on the job's clock.

        Parameters
        ----------
        path
            The file. It is compressed if the name ends in ``.gz`` or has no suffix.
        redact
            Parts to remove from the file; see `Job.redacted`.

        Raises
        ------
        OSError
            If the file cannot be written.
        ProfileFileError
            If all parts of the job are damaged.

        Warns
        -----
        UserWarning
            If a part is damaged: the trace does not have its process.

        Examples
        --------
        >>> job.to_chrome("job.json.gz")  # doctest: +SKIP
        """
        from epprof_nb.files.exporters.chrome_trace import job_to_chrome

        _write_trace(cast("Job", self).redacted(redact), job_to_chrome, path)

    def to_perfetto(
        self, path: str | PathLike[str], *, redact: bool | str | Iterable[str] = False
    ) -> None:
        """Write a trace in Perfetto's own format with one process per rank.

        https://ui.perfetto.dev opens it. Times are nanoseconds on the job's clock. The export
        requires ``pip install epprof-nb[perfetto]``.

        Parameters
        ----------
        path
            The file. It is compressed if the name ends in ``.gz``.
        redact
            Parts to remove from the file; see `Job.redacted`.

        Raises
        ------
        ImportError
            If the package ``perfetto`` is not installed.
        OSError
            If the file cannot be written.
        ProfileFileError
            If all parts of the job are damaged.

        Warns
        -----
        UserWarning
            If a part is damaged: the trace does not have its process.

        Examples
        --------
        >>> job.to_perfetto("job.pftrace")  # doctest: +SKIP
        """
        from epprof_nb.files.exporters.perfetto import job_to_perfetto

        _write_trace(cast("Job", self).redacted(redact), job_to_perfetto, path)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return view_of(cast("Job", self)).mimebundle()


class _DeviceData(Mapping[int, ProfileData]):
    """The profiles of a job, of which only device work needs to be read."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __getitem__(self, rank: int) -> ProfileData:
        return device_data(self._job, rank)

    def __iter__(self) -> Iterator[int]:
        return iter(self._job)

    def __len__(self) -> int:
        return len(self._job)


def view_of(job: Job) -> JobView:
    """Return what a notebook and a page show of a job."""
    from epprof_nb.views.job_view import JobView

    sentence, collectives = sentence_on_stragglers(job), collectives_table(job.across)
    sentences = [] if sentence is None else [sentence]
    return JobView(
        _DeviceData(job),
        bounds=_bounds(job),
        ranks=_ranks(job),
        collectives=collectives if len(collectives) else None,
        stragglers=[found.straggler.rank for found in job.across.cached(explained)],
        sentences=[*sentences, *_findings_on_children(job)],
        notes=[*job.notes, *notes_on_collectives(job)],
        window=partial(job.window, 0, job.end_ns),
    )


def _findings_on_children(job: Job) -> list[str]:
    """Return findings on the children of a cell; those on the cell itself are below the job."""
    cells = {p.number for p in job.processes if p.manifest and p.manifest.followed == "cell"}
    if not cells:
        return []
    is_cluster = any(p.manifest and p.manifest.followed == "dask" for p in job.processes)
    children = [n for n in job if n not in cells and len(job.device_totals.get(n, ()))]
    return [
        " ".join(filter(None, (found.text(job), found.finding.advice)))
        for found in findings_of(job, children, with_unexplained=not is_cluster)
    ]


def _ranks(job: Job) -> ResultTable:
    """Return the columns of `Job.ranks`, and the names of the processes."""
    table = ranks_table(job)
    columns = {name: table.column(name) for name in table.columns}
    names = [job.name(number) for number in table["rank"].tolist()]
    # All workers of a Dask cluster have the same command.
    known = zip(table.values("address"), table.values("command"), strict=True)
    columns["command"] = categorical([address or command for address, command in known])
    return ResultTable(columns | {"name": categorical(names)})


def _bounds(job: Job) -> dict[int, tuple[int, int]]:
    """Return the start and end of each profile on the job's clock."""
    found = {}
    for number in job:
        begin = job.placements[number].offset_ns
        try:
            found[number] = begin, begin + job.wall_ns(number)
        except ProfileFileError:  # a redacted job reads the part for it; the view names the damage
            found[number] = begin, begin
    return found


def _write_trace(
    job: Job,
    write: Callable[[list[TraceProcess], str | PathLike[str]], None],
    path: str | PathLike[str],
) -> None:
    """Write a trace of the processes whose parts can be read, and warn of the others."""
    known = {process.number: process for process in job.processes}
    lacking: dict[int, str] = {}

    def load(number: int) -> ProfileData | None:
        try:
            return job.read(number)
        except ProfileFileError as error:
            job.damage[number] = lacking[number] = str(error)
            if len(lacking) == len(job):
                raise
            return None

    offsets = {number: job.placements[number].offset_ns for number in job}
    write(
        [
            TraceProcess(job.name(number), known[number].pid, offset, partial(load, number))
            for number, offset in offsets.items()
        ],
        path,
    )
    lacking |= {p.number: p.reason for p in job.processes if p.state == "damaged"}
    for number, why in sorted(lacking.items()):
        warnings.warn(f"The trace lacks {job.name(number)}: {why}", stacklevel=3)
