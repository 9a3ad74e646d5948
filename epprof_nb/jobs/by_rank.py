"""Device work and communication of a job by rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.base.result_table import (
    Column,
    OptionalColumn,
    ResultTable,
    categorical,
    optional,
)
from epprof_nb.analysis.ranks import communication
from epprof_nb.arrays.types import MISSING
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.jobs.by_device import (
    DEVICE_COLUMNS,
    knows_devices,
    total,
    used_devices,
    used_names,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from epprof_nb.jobs.job_data import JobData

_SUMS = (
    "device_ns", "busy_ns", "idle_ns", "unknown_ns", "kernels", "memcpys", "memsets", "bytes",
    "sent_bytes", "received_bytes",
)  # fmt: skip


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

    is_known = np.array([knows_devices(job, n) for n in numbers], np.bool_)

    def sums(name: str) -> Column:
        values = np.array([total(totals[n], name) for n in numbers], np.int64)
        if name in ("idle_ns", "unknown_ns"):
            return optional(values)
        return values if is_known.all() else OptionalColumn(values, ~is_known)

    return ResultTable(
        {
            "rank": np.array(numbers, np.int64),
            "devices": categorical([used_names(totals[n]) for n in numbers]),
            "wall_ns": np.array([job.wall_ns(n) for n in numbers], np.int64),
            **{name: sums(name) for name in _SUMS},
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
    elif not knows_devices(job, number):
        return None
    on_devices = job.communication.get(number)
    if on_devices is None:
        columns = job.columns(number, {**DEVICE_COLUMNS, **on_host})
        return communication.communication(ProfileIndex(columns))
    if not on_host:
        return on_devices
    found = communication.of_host(ProfileIndex(job.columns(number, on_host)))
    whole, beside = on_devices
    return None if found is None else (whole + found[0], beside + found[0] - found[1])
