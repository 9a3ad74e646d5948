"""Tables of a job: its processes, and their device work by rank, op and device."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.index import ProfileIndex, index_of
from epprof_nb.analysis.base.index_in_pieces import COLUMNS as PIECE_COLUMNS
from epprof_nb.analysis.base.index_in_pieces import IndexInPieces, NotInOnePassError
from epprof_nb.analysis.base.missing_records import record_counts, total_count
from epprof_nb.analysis.base.result_table import (
    Column,
    OptionalColumn,
    ResultTable,
    categorical,
    optional,
)
from epprof_nb.analysis.breakdowns import device_pass
from epprof_nb.analysis.breakdowns.by_device import COLUMNS, device_table
from epprof_nb.analysis.breakdowns.by_op import op_table
from epprof_nb.analysis.ranks import communication
from epprof_nb.arrays.types import MISSING
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.data.profile_data import ProfileData

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table
    from epprof_nb.jobs.job_data import JobData

_DEVICE_COLUMNS = {"activities": COLUMNS}
_SUMS = (
    "device_ns", "busy_ns", "unknown_ns", "kernels", "memcpys", "memsets", "bytes",
    "sent_bytes", "received_bytes",
)  # fmt: skip


def device_data(job: JobData, number: int) -> ProfileData:
    """Return the profile of a process, of which only what its device work needs is read."""
    return job[number] if _lacks_records(job, number) else job.columns(number, _DEVICE_COLUMNS)


def _lacks_records(job: JobData, number: int) -> bool:
    """Whether records are missing. Idle time then also depends on the API calls."""
    info = job.info(number)
    counts, recorded = record_counts(info), info.get("recorded")
    dropped = isinstance(recorded, dict) and total_count(recorded.get("dropped"))
    return bool(dropped) or (counts is not None and counts.recorded < counts.all)


def devices_of(job: JobData, number: int) -> tuple[ResultTable, tuple[int, int] | None]:
    """Return `Profile.by_device` of a process, and the communication of its devices.

    Activities in a file are read in pieces. The communication is None if that is not possible.
    """
    if not _lacks_records(job, number):
        pieces = job.pieces(number, "activities", device_pass.COLUMNS)
        with suppress(NotInOnePassError):
            found = device_pass.DevicePass(pieces, job.info(number))
            return found.table(), found.communication
    return device_table(index_of(device_data(job, number))), None


def index_in_pieces_of(
    job: JobData,
    number: int,
    of_ops: Collection[str],
    times: Callable[[Table], IntArray] | None = None,
) -> ProfileIndex:
    """Return an index of a process for sums over ops, which reads the activities in pieces.

    Parameters
    ----------
    job
        The job.
    number
        Number of the process.
    of_ops
        Columns of the ops that are needed.
    times
        Function that gives the times for `IndexInPieces` from the ops.
    """
    ops = {"ops": job.columns(number, {"ops": of_ops}).tables["ops"]}
    profile = ProfileData(ops, job.info(number))
    asked = None if times is None else times(ops["ops"])
    with suppress(NotInOnePassError):
        return IndexInPieces(profile, job.pieces(number, "activities", PIECE_COLUMNS), asked)
    columns = {"activities": (*PIECE_COLUMNS, "device_id", "correlation_id")}
    activities = job.columns(number, columns).tables["activities"]
    return ProfileIndex(ProfileData({**ops, "activities": activities}, job.info(number)))


def ranks_table(job: JobData) -> ResultTable:
    """Return the columns of `Job.ranks`."""
    device_totals = job.device_totals
    totals = [device_totals.get(process.number) for process in job.processes]

    def of_totals(name: str) -> OptionalColumn:
        return optional([MISSING if t is None else total(t, name) for t in totals])

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


def by_rank_table(job: JobData) -> ResultTable:
    """Return the columns of `Job.by_rank`."""
    totals = job.device_totals
    talking: list[tuple[int, int] | None] = []
    numbers: list[int] = []
    for number in totals:
        try:
            talking.append(_communication(job, number))
        except ProfileFileError as error:
            job.damage[number] = str(error)
        else:
            numbers.append(number)
    device_ns = np.array([total(totals[n], "device_ns") for n in numbers], np.int64)
    # The client of a cluster and launchers have no device.
    has_device = np.array([used_devices(totals[n]) > 0 for n in numbers], np.bool_)
    middle = float(np.median(device_ns[has_device])) if has_device.any() else 0.0
    return ResultTable(
        {
            "rank": np.array(numbers, np.int64),
            "devices": categorical([used_names(totals[n]) for n in numbers]),
            "wall_ns": np.array([job.wall_ns(n) for n in numbers], np.int64),
            **{
                name: np.array([total(totals[n], name) for n in numbers], np.int64)
                for name in _SUMS[:2]
            },
            "idle_ns": optional([total(totals[n], "idle_ns") for n in numbers]),
            **{
                name: np.array([total(totals[n], name) for n in numbers], np.int64)
                for name in _SUMS[2:]
            },
            **{
                name: optional([MISSING if times is None else times[i] for times in talking])
                for i, name in enumerate(("communication_ns", "overlapped_ns"))
            },
            "vs_median": np.where(has_device, device_ns / (middle or np.nan), np.nan),
        },
        index="rank",
    )


def _communication(job: JobData, number: int) -> tuple[int, int] | None:
    """Return the communication of a process, and the part beside other work; None if unknown."""
    on_host: dict[str, Collection[str]] = {}
    if job.info(number).get("host_collectives"):
        on_host["ops"] = communication.COLUMNS
    on_devices = job.communication.get(number)
    if on_devices is None:
        columns = job.columns(number, {**_DEVICE_COLUMNS, **on_host})
        return communication.communication(ProfileIndex(columns))
    if not on_host:
        return on_devices
    found = communication.of_host(ProfileIndex(job.columns(number, on_host)))
    whole, beside = on_devices
    return None if found is None else (whole + found[0], beside + found[0] - found[1])


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
        elif name in ("device_id", "idle_ns"):
            columns[name] = optional([MISSING if v is None else v for v in values])
        else:
            columns[name] = np.array(values, np.int64)
    return ResultTable(columns)


def by_op_table(job: JobData) -> ResultTable:
    """Return the columns of `Job.by_op`."""
    keys: dict[tuple[Any, ...], int] = {}
    rows: list[_OpRow] = []
    for number in job:
        try:
            table = op_table(index_in_pieces_of(job, number, _COLUMNS_OF_OPS))
        except ProfileFileError as error:
            job.damage[number] = str(error)
            continue
        for row in zip(*(table.values(name) for name in _OP_COLUMNS), strict=True):
            key = row[:4]
            at = keys.setdefault(key, len(keys))
            if at == len(rows):
                rows.append(_OpRow())
            rows[at].add(number, *row[4:])
    order = sorted(range(len(rows)), key=lambda i: -rows[i].device_ns)
    ordered, places = [rows[i] for i in order], list(keys)
    places = [places[i] for i in order]

    def numbers(value: Callable[[_OpRow], int]) -> Any:  # noqa: ANN401
        return np.array([value(row) for row in ordered], np.int64)

    return ResultTable(
        {
            **{
                name: categorical([place[i] for place in places])
                for i, name in enumerate(("name", "op_type", "cell"))
            },
            "line": optional([MISSING if place[3] is None else place[3] for place in places]),
            "ranks": numbers(lambda row: row.ranks),
            "count": numbers(lambda row: row.count),
            "device_ns": numbers(lambda row: row.device_ns),
            "self_device_ns": numbers(lambda row: row.self_device_ns),
            "kernels": numbers(lambda row: row.kernels),
            "min_device_ns": numbers(lambda row: row.device[0][0]),
            "max_device_ns": numbers(lambda row: row.device[1][0]),
            "max_device_rank": rank_of_greatest(
                numbers(lambda row: row.device[1][0]), numbers(lambda row: row.device[1][1])
            ),
            "host_ns": numbers(lambda row: row.host_ns),
            "min_host_ns": numbers(lambda row: row.host[0][0]),
            "max_host_ns": numbers(lambda row: row.host[1][0]),
            "max_host_rank": rank_of_greatest(
                numbers(lambda row: row.host[1][0]), numbers(lambda row: row.host[1][1])
            ),
        }
    )


_COLUMNS_OF_OPS = (
    "op_id", "parent_op_id", "name", "op_type", "cell", "line", "start_ns", "end_ns",
    "duration_ns", "count", "status", "thread_id",
)  # fmt: skip
"""Columns of the ops that `op_table` needs."""
_OP_COLUMNS = (
    "name", "op_type", "cell", "line", "count", "device_ns", "self_device_ns", "kernels", "host_ns",
)  # fmt: skip


def rank_of_greatest(greatest: IntArray, rank: IntArray) -> OptionalColumn:
    """Return the processes with the greatest times; missing where all times are 0."""
    return optional(np.where(greatest > 0, rank, MISSING))


class _OpRow:
    """Sums of an op over the processes, and the least and the greatest of them."""

    __slots__ = (
        "count",
        "device",
        "device_ns",
        "host",
        "host_ns",
        "kernels",
        "ranks",
        "self_device_ns",
    )

    def __init__(self) -> None:
        self.ranks = self.count = self.device_ns = self.self_device_ns = 0
        self.kernels = self.host_ns = 0
        # Least and greatest value, each with its process.
        self.device = self.host = ((0, MISSING), (0, MISSING))

    def add(  # noqa: PLR0917 - a row
        self,
        number: int,
        count: int | None,
        device_ns: int,
        self_device_ns: int,
        kernels: int,
        host_ns: int | None,
    ) -> None:
        """Add the row of a process."""
        self.device = _bounds(self.device, device_ns, number)
        self.host = _bounds(self.host, host_ns or 0, number)
        self.ranks += 1
        self.count += count or 0
        self.device_ns += device_ns
        self.self_device_ns += self_device_ns
        self.kernels += kernels
        self.host_ns += host_ns or 0


def _bounds(bounds: Any, value: int, number: int) -> Any:  # noqa: ANN401
    least, greatest = bounds
    new = (value, number)
    return (
        new if least[1] == MISSING or value < least[0] else least,
        new if greatest[1] == MISSING or value > greatest[0] else greatest,
    )


def counts_of(info: Any) -> tuple[int, int]:  # noqa: ANN401
    """Return how many records a process has, and how many are missing."""
    counts = record_counts(info)
    if counts is None:
        return MISSING, MISSING
    recorded = info.get("recorded")
    dropped = total_count(recorded.get("dropped")) if isinstance(recorded, dict) else 0
    return counts.recorded, max(counts.all - counts.recorded, dropped)


def _is_used(table: ResultTable) -> Any:  # noqa: ANN401
    return table["count"] > 0


def used_names(table: ResultTable) -> str | None:
    """Return the labels of the devices with work."""
    return ", ".join(table.take(_is_used(table)).values("device")) or None


def total(table: ResultTable, name: str) -> int:
    """Sum a column over the devices with work; a process without one has no idle time."""
    used = table.take(_is_used(table))
    if name == "idle_ns" and not any(v is not None for v in used.values(name)):
        return MISSING
    return sum(value for value in used.values(name) if value is not None)


def used_devices(table: ResultTable) -> int:
    """Count the devices with work."""
    return int(_is_used(table).sum())
