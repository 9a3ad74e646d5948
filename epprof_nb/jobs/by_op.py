"""Device and host time of a job by op, over all processes."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.base.index_in_pieces import COLUMNS as PIECE_COLUMNS
from epprof_nb.analysis.base.index_in_pieces import IndexInPieces, NotInOnePassError
from epprof_nb.analysis.base.result_table import (
    OptionalColumn,
    ResultTable,
    categorical,
    optional,
)
from epprof_nb.analysis.breakdowns.by_op import op_table
from epprof_nb.arrays.types import MISSING
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.data.profile_data import ProfileData

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from epprof_nb.analysis.base.result_table import Column
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table
    from epprof_nb.jobs.job_data import JobData

_COLUMNS_OF_OPS = (
    "op_id", "parent_op_id", "name", "op_type", "cell", "line", "start_ns", "end_ns",
    "duration_ns", "count", "status", "thread_id",
)  # fmt: skip
"""Columns of the ops that `op_table` needs."""
_OP_COLUMNS = (
    "name", "op_type", "cell", "line", "count", "device_ns", "self_device_ns", "kernels", "host_ns",
)  # fmt: skip


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
    order = sorted(range(len(rows)), key=lambda i: -(rows[i].device_ns or 0))
    ordered, places = [rows[i] for i in order], list(keys)
    places = [places[i] for i in order]

    def numbers(value: Callable[[_OpRow], int]) -> IntArray:
        return np.array([value(row) for row in ordered], np.int64)

    def measured(value: Callable[[_OpRow], int | None]) -> OptionalColumn:
        return optional([MISSING if (found := value(row)) is None else found for row in ordered])

    def of_device(value: Callable[[_OpRow], int | None]) -> Column:
        """Return a column of device work, which only parts that are traces may lack."""
        column = measured(value)
        return column if column.is_missing.any() else column.numbers

    return ResultTable(
        {
            **{
                name: categorical([place[i] for place in places])
                for i, name in enumerate(("name", "op_type", "cell"))
            },
            "line": optional([MISSING if place[3] is None else place[3] for place in places]),
            "ranks": numbers(lambda row: row.ranks),
            "count": numbers(lambda row: row.count),
            "device_ns": of_device(lambda row: row.device_ns),
            "self_device_ns": of_device(lambda row: row.self_device_ns),
            "kernels": of_device(lambda row: row.kernels),
            "min_device_ns": of_device(lambda row: row.device.least),
            "max_device_ns": of_device(lambda row: row.device.greatest),
            "max_device_rank": _rank_of_greatest(ordered, "device"),
            "host_ns": measured(lambda row: row.host_ns),
            "min_host_ns": measured(lambda row: row.host.least),
            "max_host_ns": measured(lambda row: row.host.greatest),
            "max_host_rank": _rank_of_greatest(ordered, "host"),
        }
    )


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


def rank_of_greatest(greatest: IntArray, rank: IntArray) -> OptionalColumn:
    """Return the processes with the greatest times; missing where all times are 0."""
    return optional(np.where(greatest > 0, rank, MISSING))


class _Bounds:
    """The least and the greatest value, and the process of the latter; None before the first."""

    __slots__ = ("greatest", "least", "rank")

    def __init__(self) -> None:
        self.least: int | None = None
        self.greatest: int | None = None
        self.rank = MISSING

    def add(self, value: int | None, number: int) -> None:
        """Add the value of a process; None is not known."""
        if value is None:
            return
        if self.least is None or value < self.least:
            self.least = value
        if self.greatest is None or value > self.greatest:
            self.greatest, self.rank = value, number


class _OpRow:
    """Sums of an op over the processes, and the least and the greatest of them.

    A sum is None if no process measured it.
    """

    __slots__ = (
        "count", "device", "device_ns", "host", "host_ns", "kernels", "ranks", "self_device_ns",
    )  # fmt: skip

    def __init__(self) -> None:
        self.ranks = self.count = 0
        self.device_ns: int | None = None
        self.self_device_ns: int | None = None
        self.kernels: int | None = None
        self.host_ns: int | None = None
        self.device, self.host = _Bounds(), _Bounds()

    def add(  # noqa: PLR0917 - a row
        self,
        number: int,
        count: int | None,
        device_ns: int | None,
        self_device_ns: int | None,
        kernels: int | None,
        host_ns: int | None,
    ) -> None:
        """Add the row of a process."""
        self.device.add(device_ns, number)
        self.host.add(host_ns, number)
        self.ranks += 1
        self.count += count or 0
        self.device_ns = _plus(self.device_ns, device_ns)
        self.self_device_ns = _plus(self.self_device_ns, self_device_ns)
        self.kernels = _plus(self.kernels, kernels)
        self.host_ns = _plus(self.host_ns, host_ns)


def _plus(total: int | None, value: int | None) -> int | None:
    return total if value is None else value + (total or 0)


def _rank_of_greatest(rows: list[_OpRow], of: str) -> OptionalColumn:
    bounds: list[_Bounds] = [getattr(row, of) for row in rows]
    greatest, rank = [b.greatest or 0 for b in bounds], [b.rank for b in bounds]
    return rank_of_greatest(np.array(greatest, np.int64), np.array(rank, np.int64))
