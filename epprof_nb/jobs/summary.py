"""Summary of a job as text or JSON: stragglers, findings, processes, largest ops, missing parts."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from epprof_nb.analysis.ranks.straggler_reasons import stragglers_table
from epprof_nb.jobs.by_rank import by_rank_table
from epprof_nb.jobs.job_findings import findings_of_job
from epprof_nb.jobs.ranks_of_job import sentence_on_stragglers
from epprof_nb.jobs.ranks_table import ranks_table
from epprof_nb.util.format import duration, plural, printable, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.jobs.job import Job
    from epprof_nb.jobs.job_findings import JobFinding

_NAME = 48
_MAX_OPS = 20
_MIN_CHARS = 500
MAX_FINDINGS = 3
MAX_PROCESSES_OF_FINDINGS = 8
"""Processes up to which a summary has findings: for these, each process is loaded as a whole."""


def job_text(job: Job, max_chars: int, *, ops: bool = True) -> str:
    """Return the summary as text; the least important rows are left out and counted."""
    late = sentence_on_stragglers(job)
    head = [job.headline, *([late] if late else [])]
    if ops:
        for finding in findings_of(job):
            advice = finding.finding.advice
            head += [f"  {finding.text(job)}", *([f"    {advice}"] if advice else [])]
    processes = _processes(job)
    largest = _ops(job) if ops else []
    notes = [f"note: {note}" for note in job.all_notes()]
    lines: list[str] = []
    for share in (1.0, 0.5, 0.25, 0.1, 0.0):
        lines = [*head, "", *_some(processes, share, "process", "processes")]
        if largest:
            lines += ["", *_some(largest, share, "op")]
        lines += ["", *notes] if notes else []
        text = "\n".join(map(printable, lines))
        if len(text) <= max_chars:
            return text
    return text[: max_chars - 1] + "…"


def job_json(job: Job, max_chars: int) -> str:
    """Return the summary as a JSON object with the same parts."""
    late = sentence_on_stragglers(job)
    stragglers, ranks, by_rank, by_op = (
        _rows(table)
        for table in (
            stragglers_table(job.across),
            ranks_table(job),
            by_rank_table(job),
            job.ops_table,
        )
    )
    notes = job.all_notes()
    found = [
        {"text": f.text(job), "advice": f.finding.advice, "gain_ns": f.finding.gain_ns}
        for f in findings_of(job)
    ]
    kept = max(len(found), len(stragglers), len(ranks), len(by_op))
    while True:
        made = {
            "job": job.headline,
            "sentence": None if late is None else shorten(late, 1_000),
            "stragglers": stragglers[:kept],
            "findings": found[:kept],
            "notes": [shorten(note, 1_000) for note in notes[:20]],
            "ranks": ranks[:kept],
            "by_rank": by_rank[:kept],
            "by_op": by_op[: min(kept, _MAX_OPS)],
            "left_out": {
                "stragglers": len(stragglers[kept:]),
                "ranks": len(ranks[kept:]),
                "by_rank": len(by_rank[kept:]),
                "by_op": len(by_op[min(kept, _MAX_OPS) :]),
            },
        }
        text = json.dumps(made)  # ASCII, so that a terminal obeys no control of a name
        if len(text) <= max_chars:
            return text
        if not kept:
            return json.dumps({"job": job.headline, "left_out": made["left_out"]})
        kept //= 2


def findings_of(
    job: Job, ranks: Collection[int] | None = None, *, with_unexplained: bool = False
) -> list[JobFinding]:
    """Return the first ones of `findings_of_job`; none of a large job."""
    if not 0 < len(job) <= MAX_PROCESSES_OF_FINDINGS or job.end_ns <= 0:
        return []
    found = findings_of_job(job, ranks, with_unexplained=with_unexplained)
    return found[:MAX_FINDINGS]


def check_max_chars(max_chars: int) -> None:
    """Check the limit of a summary; ValueError if it is too small."""
    if max_chars < _MIN_CHARS:
        raise ValueError(f"max_chars must be at least {_MIN_CHARS}, not {max_chars}")


def _rows(table: ResultTable) -> list[dict[str, Any]]:
    columns = {name: table.values(name) for name in table.columns}
    return [
        {name: _plain(value) for name, value in zip(columns, row, strict=True)}
        for row in zip(*columns.values(), strict=True)
    ]


def _plain(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, str):
        return shorten(value, 200)
    return None if isinstance(value, float) and math.isnan(value) else value


def _processes(job: Job) -> list[str]:
    """Return a line of titles and one per process."""
    table = ranks_table(job)
    by_rank = by_rank_table(job)
    kernels = dict(zip(by_rank.values("rank"), by_rank.values("kernels"), strict=True))
    titles = (
        "",
        "pid",
        "state",
        "devices",
        "busy",
        "idle",
        "kernels",
        "address",
        "command",
        "reason",
    )
    columns = (
        "rank", "pid", "state", "devices", "busy_ns", "idle_ns", "address", "command", "reason",
    )  # fmt: skip
    rows: list[tuple[str, ...]] = []
    for rank, pid, state, devices, busy, idle, address, command, reason in zip(
        *(table.values(name) for name in columns), strict=True
    ):
        count = kernels.get(rank)
        rows.append(
            (
                job.name(rank),
                _shown(pid, str),
                str(state),
                devices or "",
                _shown(busy, duration),
                _shown(idle, duration),
                _shown(count, "{:,}".format),
                address or "",
                # All workers of a cluster have the same.
                "" if address else shorten(command or "", _NAME),
                shorten(reason or "", 99),
            )
        )
    shown = [i for i, title in enumerate(titles) if not title or any(row[i] for row in rows)]
    return _aligned([tuple(row[i] for i in shown) for row in [titles, *rows]])


def _ops(job: Job) -> list[str]:
    table = job.ops_table
    rows: list[tuple[str, ...]] = [("op", "ranks", "device time", "least", "most", "by rank")]
    columns = ("name", "ranks", "device_ns", "min_device_ns", "max_device_ns", "max_device_rank")
    for name, ranks, total, least, most, rank in zip(
        *(table.take(slice(_MAX_OPS)).values(name) for name in columns), strict=True
    ):
        if total:
            times = (duration(ns) for ns in (total, least, most))
            rows.append((shorten(name or "", _NAME), str(ranks), *times, str(rank)))
    return _aligned(rows) if len(rows) > 1 else []


def _shown(value: Any, text: Callable[[Any], str]) -> str:  # noqa: ANN401
    return "" if value is None else text(value)


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    shown = [tuple(printable(cell) for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in shown
    ]


def _some(lines: list[str], share: float, *word: str) -> list[str]:
    """Return the titles and a share of the rows, and how many are left out."""
    kept = 1 + int((len(lines) - 1) * share)
    left = len(lines) - kept
    return [*lines[:kept], *([f"({plural(left, *word)} left out)"] if left else [])]
