"""Device work of a job by process and device, and its sums."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.index import ProfileIndex, index_of
from epprof_nb.analysis.base.index_in_pieces import NotInOnePassError
from epprof_nb.analysis.base.missing_records import record_counts, total_count
from epprof_nb.analysis.base.result_table import ResultTable, categorical, optional
from epprof_nb.analysis.base.unknown_device_times import is_trace
from epprof_nb.analysis.breakdowns import devices_in_pieces
from epprof_nb.analysis.breakdowns.by_device import COLUMNS, device_table
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.profile_data import ProfileData

if TYPE_CHECKING:
    from epprof_nb.jobs.job_data import JobData

DEVICE_COLUMNS = {"activities": COLUMNS}


def by_device_table(job: JobData) -> ResultTable:
    """Return the columns of `Job.by_device`."""
    totals = {n: t.take(_is_used(t)) for n, t in job.device_totals.items()}
    rank = np.array([n for n, t in totals.items() for _ in range(len(t))], np.int64)
    columns: dict[str, Any] = {"rank": rank}
    tables = list(totals.values())
    for name in device_table(ProfileIndex(ProfileData())).columns:
        values = [value for table in tables for value in table.values(name)]
        if name == "share":
            continue
        if name in ("device", "name"):
            columns[name] = categorical(values)
        elif name in ("device_id", "idle_ns", "unknown_ns"):
            columns[name] = optional([MISSING if v is None else v for v in values])
        else:
            columns[name] = np.array(values, np.int64)
    return ResultTable(columns)


def device_data(job: JobData, number: int) -> ProfileData:
    """Return the profile of a process, of which only what its device work needs is read."""
    return job[number] if _lacks_records(job, number) else job.columns(number, DEVICE_COLUMNS)


def devices_of(job: JobData, number: int) -> tuple[ResultTable, tuple[int, int] | None]:
    """Return `Profile.by_device` of a process, and the communication of its devices.

    Activities in a file are read in pieces. The communication is None if that is not possible.
    """
    if not _lacks_records(job, number):
        pieces = job.pieces(number, "activities", devices_in_pieces.COLUMNS)
        with suppress(NotInOnePassError):
            found = devices_in_pieces.DevicePass(pieces, job.info(number))
            return found.table(), found.communication
    return device_table(index_of(device_data(job, number))), None


def _lacks_records(job: JobData, number: int) -> bool:
    """Whether records are missing. Idle time then also depends on the API calls."""
    info = job.info(number)
    counts, recorded = record_counts(info), info.get("recorded")
    dropped = isinstance(recorded, dict) and total_count(recorded.get("dropped"))
    return bool(dropped) or (counts is not None and counts.recorded < counts.all)


def total(table: ResultTable, name: str) -> int:
    """Sum a column over the devices with work.

    A process without one has no idle time, and no time of which a device's work is not known.
    """
    used = table.take(_is_used(table))
    if name in ("idle_ns", "unknown_ns") and not any(v is not None for v in used.values(name)):
        return MISSING
    return sum(value for value in used.values(name) if value is not None)


def knows_devices(job: JobData, number: int) -> bool:
    """Whether the device work of a process is known: a trace without any may lack it."""
    return used_devices(job.device_totals[number]) > 0 or not is_trace(job.info(number))


def used_names(table: ResultTable) -> str | None:
    """Return the labels of the devices with work."""
    return ", ".join(table.take(_is_used(table)).values("device")) or None


def used_devices(table: ResultTable) -> int:
    """Count the devices with work."""
    return int(_is_used(table).sum())


def _is_used(table: ResultTable) -> Any:  # noqa: ANN401
    return table["count"] > 0
