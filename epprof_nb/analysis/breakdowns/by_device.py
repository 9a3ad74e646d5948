"""by_device: device work and idle time by device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.activity_sums import activity_sums, busy_by_group
from epprof_nb.analysis.base.devices import device_labels, device_name, gpu_ids
from epprof_nb.analysis.base.missing_records import unrecorded_gaps
from epprof_nb.analysis.base.op_totals import share
from epprof_nb.analysis.base.result_table import (
    OptionalColumn,
    ResultTable,
    categorical,
    optional,
)
from epprof_nb.analysis.base.unknown_device_times import is_trace
from epprof_nb.analysis.base.wall_time import span_of_device
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData

COLUMNS = (
    "kind", "name", "device_id", "context_id", "stream_id", "start_ns", "end_ns", "duration_ns",
    "bytes", "graph_id", "copy_kind", "src_device_id", "dst_device_id", "correlation_id",
)  # fmt: skip
"""Columns of the activities that `device_table` reads, if no record is missing."""


@dataclass(slots=True)
class DeviceSums:
    """Sums of some devices, in their order.

    Attributes
    ----------
    devices
        Ids, ascending; `MISSING` for activities without a device.
    streams
        Number of streams with work.
    sums
        Measure of `activity_sums` to its values.
    busy, sent, received
        Time in which they work; bytes of copies to and from other devices.
    """

    devices: IntArray
    streams: IntArray
    sums: Mapping[str, IntArray]
    busy: IntArray
    sent: IntArray
    received: IntArray


def device_table(index: ProfileIndex) -> ResultTable:
    """Return the columns of `Profile.by_device`."""
    activities, info = index.profile.tables["activities"], index.profile.info
    # GPUs that did nothing have rows, too: an idle GPU is what the table must show.
    devices = np.array(sorted({*index.device_ids, *gpu_ids(info)}), np.int64)
    n = len(devices)
    groups = np.searchsorted(devices, activities["device_id"]).astype(np.int32)
    groups = np.where(index.is_device_work, groups, n).astype(np.int32)
    rows, first = streams_of(index, groups, n)
    sums = DeviceSums(
        devices,
        np.bincount(groups[rows[first]], minlength=n).astype(np.int64),
        {name: values[:n] for name, values in activity_sums(index, groups, n + 1).items()},
        busy_by_group(index, groups, n + 1)[:n],
        peer_bytes(index, devices, "src_device_id"),
        peer_bytes(index, devices, "dst_device_id"),
    )
    unknown = np.array([_unknown(index, device) for device in devices.tolist()], np.int64)
    return table_of(sums, index.profile, unknown)


def table_of(found: DeviceSums, profile: ProfileData, unknown: IntArray) -> ResultTable:
    """Return the columns of `Profile.by_device`.

    Parameters
    ----------
    found
        The sums of the devices.
    profile
        Their profile; its tables are not needed if its info has the wall time.
    unknown
        Time in which the work of each device is not known, because records are missing.
    """
    info, devices, sums = profile.info, found.devices, found.sums
    spans = [span_of_device(profile, device) for device in devices.tolist()]
    wall = np.array([end - begin for begin, end in spans], np.int64)
    known = np.maximum(wall - unknown, 0)
    is_device = devices != MISSING
    labels = device_labels(info, devices.tolist())
    names = [device_name(info, device) for device in devices.tolist()]
    return ResultTable(
        {
            "device": categorical(
                [labels[device] if device >= 0 else "no device" for device in devices.tolist()]
            ),
            "device_id": optional(devices),
            "name": categorical(
                [name if is_ else None for name, is_ in zip(names, is_device, strict=True)]
            ),
            "streams": found.streams,
            "count": sums["activities"],
            "device_ns": sums["device_ns"],
            "share": share(sums["device_ns"], int(sums["device_ns"].sum())),
            "busy_ns": found.busy,
            "idle_ns": optional(np.where(is_device, np.maximum(known - found.busy, 0), MISSING)),
            "unknown_ns": OptionalColumn(unknown, np.full(len(devices), is_trace(info))),
            **{name: sums[name] for name in ("kernels", "memcpys", "memsets", "bytes")},
            "sent_bytes": found.sent,
            "received_bytes": found.received,
        }
    )


def _unknown(index: ProfileIndex, device: int) -> int:
    starts, ends = index.cached(unrecorded_gaps, device)
    return int((ends - starts).sum())


def streams_of(
    index: ProfileIndex, groups: npt.NDArray[np.int32], n: int
) -> tuple[IntArray, IntArray]:
    """Return the rows of device work in groups below `n`, and the first of them per stream."""
    activities = index.profile.tables["activities"]
    rows = np.flatnonzero(groups < n)
    keys = [activities[name][rows] for name in ("context_id", "stream_id")]
    if not len(rows):
        return rows, rows
    _, first = group_codes(groups[rows], *keys)
    return rows, first


def peer_bytes(index: ProfileIndex, devices: IntArray, column: str) -> IntArray:
    """Sum the bytes of copies between two devices, by the device that a column names.

    Both devices know such a copy, but only the one whose stream it ran on has it as work.
    """
    activities = index.profile.tables["activities"]
    source, target = activities["src_device_id"], activities["dst_device_id"]
    rows = np.flatnonzero((source != MISSING) & (target != MISSING) & (source != target))
    rows = rows[activities["bytes"][rows] > 0]
    found = np.zeros(len(devices), np.int64)
    at = np.searchsorted(devices, activities[column][rows])
    is_known = np.append(devices, MISSING)[at] == activities[column][rows]
    np.add.at(found, at[is_known], activities["bytes"][rows[is_known]])
    return found
