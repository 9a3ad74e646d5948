"""The processes of a job: their states, clocks and numbers of records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.missing_records import record_counts, total_count
from epprof_nb.analysis.base.result_table import (
    Column,
    OptionalColumn,
    ResultTable,
    categorical,
    optional,
)
from epprof_nb.arrays.types import MISSING
from epprof_nb.jobs.by_device import knows_devices, total, used_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.jobs.job_data import JobData


def ranks_table(job: JobData) -> ResultTable:
    """Return the columns of `Job.ranks`."""
    device_totals = job.device_totals
    numbers = [process.number for process in job.processes]
    totals = [device_totals.get(number) for number in numbers]

    def of_totals(name: str) -> OptionalColumn:
        values = [
            MISSING if t is None or not knows_devices(job, number) else total(t, name)
            for number, t in zip(numbers, totals, strict=True)
        ]
        return optional(values)

    return ResultTable(
        {
            **_processes(job),
            "devices": categorical([None if t is None else used_names(t) for t in totals]),
            "clock_error_ns": _clock_errors(job),
            "busy_ns": of_totals("busy_ns"),
            "idle_ns": of_totals("idle_ns"),
            **_record_counts(job),
        },
        index="rank",
    )


def stated_columns(job: JobData) -> dict[str, Column]:
    """Return the columns of `Job.ranks` that need no events."""
    return {**_processes(job), "clock_error_ns": _clock_errors(job), **_record_counts(job)}


def _processes(job: JobData) -> dict[str, Column]:
    processes = job.processes
    manifests = [process.manifest for process in processes]
    damage = [job.damage.get(process.number) for process in processes]

    def of_manifest(value: Callable[[Any], Any], missing: object = None) -> list[Any]:
        return [missing if m is None else value(m) for m in manifests]

    return {
        "rank": np.array([process.number for process in processes], np.int64),
        "launched": np.array([process.launched for process in processes], np.bool_),
        "hostname": categorical(of_manifest(lambda m: m.hostname or None)),
        "address": categorical(of_manifest(lambda m: m.address)),
        "pid": optional([MISSING if p.pid is None else p.pid for p in processes]),
        "parent": optional(of_manifest(lambda m: m.parent_pid or MISSING, MISSING)),
        "command": categorical(of_manifest(lambda m: " ".join(m.command) or None)),
        "followed": categorical(of_manifest(lambda m: m.followed)),
        "state": categorical(
            [
                p.state if why is None else "damaged"
                for p, why in zip(processes, damage, strict=True)
            ]
        ),
        "reason": categorical(
            [
                (p.reason if why is None else why) or None
                for p, why in zip(processes, damage, strict=True)
            ]
        ),
    }


def _clock_errors(job: JobData) -> OptionalColumn:
    placed = [job.placements.get(process.number) for process in job.processes]
    return optional([MISSING if p is None or p.error_ns is None else p.error_ns for p in placed])


def _record_counts(job: JobData) -> dict[str, Column]:
    # Only those whose part could be read: the info of a redacted profile is in its part.
    counts = [
        counts_of(job.info(p.number)) if p.number in job and p.number not in job.damage else None
        for p in job.processes
    ]
    return {
        name: optional([MISSING if c is None else c[i] for c in counts])
        for i, name in enumerate(("recorded", "dropped"))
    }


def counts_of(info: Any) -> tuple[int, int]:  # noqa: ANN401
    """Return how many records a process has, and how many are missing."""
    counts = record_counts(info)
    if counts is None:
        return MISSING, MISSING
    recorded = info.get("recorded")
    dropped = total_count(recorded.get("dropped")) if isinstance(recorded, dict) else 0
    return counts.recorded, max(counts.all - counts.recorded, dropped)
