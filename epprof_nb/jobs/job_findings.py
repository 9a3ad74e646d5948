"""Findings of a job: the findings of its processes, equal ones as one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.base.result_table import ResultTable, categorical, objects, optional
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.base.tasks_of_ops import task_rows
from epprof_nb.analysis.findings.finding import code
from epprof_nb.analysis.findings.ranking import (
    counts_in_job,
    is_much_of,
    order_of,
    places_of,
    without_references,
)
from epprof_nb.arrays.types import MISSING
from epprof_nb.core.errors import ProfileFileError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    import numpy.typing as npt

    from epprof_nb.analysis.findings.finding import Finding
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.jobs.job_data import JobData


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFinding:
    """A finding of one or several processes.

    Attributes
    ----------
    finding
        The finding of the process that it can save most; without its evidence.
    rank, number
        This process, and the number of the finding in ``job[rank].insights()``.
    ranks
        How many processes have it.
    task
        Prefix of the keys of the tasks that it is about; None for none.
    cell, line
        Its place, as in `epprof_nb.Profile.insights`; `MISSING` for no line.
    """

    finding: Finding
    rank: int
    number: int
    ranks: int
    task: str | None
    cell: str | None
    line: int

    def text(self, job: JobData) -> str:
        """Return the sentence with the processes and the task that it is about."""
        who = job.name(self.rank)
        if self.ranks > 1:
            who = f"{self.ranks:,} processes, most of all {who}"
        if self.task is not None:
            who = f"Task {code(self.task)}, {who}"
        return f"{who}: {self.finding.text}"


def findings_of_job(
    job: JobData, numbers: Iterable[int] | None = None, *, with_unexplained: bool = False
) -> list[JobFinding]:
    """Return the findings of some processes of a job, or of all, causes first, by descending gain.

    One process after the other is read as a whole. Findings of one kind with the same task and line
    are one finding. With `with_unexplained`, processes that may have had nothing to do count, too.
    """
    merged: dict[tuple[object, ...], JobFinding] = {}
    waits_for_tasks: set[tuple[str | None, int]] = set()
    for number in job if numbers is None else numbers:
        try:
            index = ProfileIndex(job.read(number))
        except ProfileFileError as error:
            job.damage[number] = str(error)
            continue
        found = [
            one
            for one in _of_process(index, number)
            if with_unexplained or counts_in_job(one.finding)
        ]
        waits_for_tasks |= _lines_of_tasks(index)
        seen: dict[tuple[object, ...], int] = {}
        for one in found:
            place = one.finding.kind, one.task, one.cell, one.line
            seen[place] = seen.get(place, 0) + 1
            key = *place, seen[place]
            known = merged.get(key)
            if known is None:
                merged[key] = one
                continue
            largest = one if one.finding.gain_ns > known.finding.gain_ns else known
            merged[key] = replace(largest, ranks=known.ranks + 1)
    wall_ns = job.end_ns
    shown = [
        one
        for one in merged.values()
        # The notebook is at this line while the workers run its tasks.
        if is_much_of(one.finding, wall_ns)
        and (
            one.finding.kind not in ("hot line", "idle")
            or one.task
            or (one.cell, one.line) not in waits_for_tasks
        )
    ]
    return sorted(shown, key=lambda one: (*order_of(one.finding, wall_ns), one.rank, one.number))


def _lines_of_tasks(index: ProfileIndex) -> set[tuple[str | None, int]]:
    """Return the cells and lines that submitted the tasks of a process."""
    tasks = np.unique(index.cached(task_rows))
    statements = np.unique(index.statement[tasks[tasks >= 0]])
    ops, rows = index.profile.tables["ops"], statements[statements >= 0]
    cells = ops.names("cell").take(rows).to_list()
    return {*zip(cells, ops["line"][rows].tolist(), strict=True)}


def _of_process(index: ProfileIndex, rank: int) -> Iterator[JobFinding]:
    found = without_references(index)
    cells, lines = places_of(index, found)
    for number, (finding, cell, line) in enumerate(
        zip(found, cells.to_list(), lines.tolist(), strict=True), 1
    ):
        yield JobFinding(
            # Its evidence would keep the whole profile.
            finding=replace(finding, rows=None, spans=None),
            rank=rank, number=number, ranks=1, task=_task(index, finding), cell=cell, line=line,
        )  # fmt: skip


def _task(index: ProfileIndex, finding: Finding) -> str | None:
    """Return the name of the tasks with most of the evidence of a finding, if they have half."""
    ops, tasks = index.profile.tables["ops"], index.cached(task_rows)
    if not (tasks >= 0).any():
        return None
    sampled = _ops_at(index, finding)
    rows = finding.evidence_rows(index.profile)
    of_tables: dict[str, npt.NDArray[np.signedinteger[Any]]] = {
        "activities": index.activity_op, "api_calls": index.call_op, "ops": np.arange(len(ops)),
    }  # fmt: skip
    of_rows = of_tables.get(finding.table)
    op = index.tree.rows(np.array([finding.op_id]))
    if len(sampled):
        op = sampled
    elif of_rows is not None and len(rows):
        op = of_rows[rows]
    evident = np.where(op >= 0, tasks[op], MISSING)
    names = Counter(ops.names("name").take(evident[evident >= 0]).to_list())
    ((name, count),) = names.most_common(1) or [(None, 0)]
    return name if 2 * count >= len(evident) else None


def _ops_at(index: ProfileIndex, finding: Finding) -> IntArray:
    """Return the ops in which the host was seen at the line, or in the function, of a finding.

    The line is what the host ran while a device idled.
    """
    lines, samples = index.cached(StackLines), index.profile.tables["host_samples"]
    kinds = "idle", "held work", "hot function"
    at = lines.own[finding.stack_id]
    if finding.kind not in kinds or MISSING in (finding.stack_id, at):
        return np.empty(0, np.int64)
    own = lines.own[samples["stack_id"]]
    is_there = own == at
    if finding.kind == "hot function":
        is_there = own >= 0
        for names in (lines.file, lines.function):
            is_there &= names.codes[own] == names.codes[at]
    thread, time = samples["thread_id"][is_there], samples["start_ns"][is_there]
    return index.tree.open_op_at(thread, time)


def findings_table_of(job: JobData, found: Collection[JobFinding]) -> ResultTable:
    """Return the columns of `Job.insights`."""
    begins = [job.placements[one.rank].offset_ns for one in found]

    def times(values: Iterable[int]) -> IntArray:
        return np.fromiter(values, np.int64)

    return ResultTable(
        {
            "rank": times(one.rank for one in found),
            "ranks": times(one.ranks for one in found),
            "kind": categorical([one.finding.kind for one in found]),
            "task": categorical([one.task for one in found]),
            "text": objects(one.finding.text for one in found),
            "remedy": objects(one.finding.remedies for one in found),
            "gain_ns": times(one.finding.gain_ns for one in found),
            "gain_low_ns": times(one.finding.low_ns for one in found),
            "gain_high_ns": times(one.finding.high_ns for one in found),
            "finding": times(one.number for one in found),
            "cell": categorical([one.cell for one in found]),
            "line": optional([one.line for one in found]),
            "start_ns": times(
                one.finding.start_ns + at for one, at in zip(found, begins, strict=True)
            ),
            "end_ns": times(one.finding.end_ns + at for one, at in zip(found, begins, strict=True)),
        }
    )
