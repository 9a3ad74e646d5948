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
