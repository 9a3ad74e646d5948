"""by_stream: device time by stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.dataframe import ResultTable, categorical, optional
from epprof_nb.analysis.devices import device_labels
from epprof_nb.analysis.index import ProfileIndex
from epprof_nb.analysis.measures import bandwidth, mean_delay
from epprof_nb.analysis.op_totals import share
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.ids import unique_values
from epprof_nb.arrays.intervals import covered_by_group, union
from epprof_nb.arrays.percentiles import GroupStatistics
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.columns import with_columns

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData

_MANY = 256
"""With more streams, their busy times are computed together."""


@with_columns("by_stream")
def by_stream(profile: ProfileData, *, index: ProfileIndex | None = None) -> pd.DataFrame:
    """Return the device work of each stream of each device.

    Parameters
    ----------
    profile
        The profile.
    index
        Index of the profile; a new one if None.

    Returns
    -------
    frame
        {columns}

        `device_ns` adds up to the device time of the profile.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> by_stream(synthetic_profile(activities=100, streams=2))["stream"].tolist()
    ['stream 7', 'stream 13']
    """
    return stream_table(index or ProfileIndex(profile)).to_frame()


def stream_table(index: ProfileIndex) -> ResultTable:
    """Return the columns of `by_stream`."""
    activities = index.profile.tables["activities"]
    rows = np.flatnonzero(index.is_device_work)
    keys = [activities[name][rows] for name in ("device_id", "context_id", "stream_id")]
    groups, first = group_codes(*keys)
    n = len(first)
    statistics = GroupStatistics(groups, activities["duration_ns"][rows], n)
    order = np.lexsort([key[first] for key in reversed(keys)])
    sums = {name: values[order] for name, values in _sums(index, rows, groups, n).items()}
    device, context, stream = (key[first[order]] for key in keys)
    busy = _busy(groups, activities["start_ns"], activities["duration_ns"], rows, n)
    return ResultTable(
        {
            "stream": categorical(_labels(index.profile.info, device, context, stream)),
            "device_id": optional(device),
            "context_id": optional(context),
            "stream_id": optional(stream),
            "count": statistics.count[order],
            "device_ns": statistics.total[order],
            "busy_ns": busy[order],
            "share": share(statistics.total[order], int(statistics.total.sum())),
            "mean_device_ns": statistics.mean[order],
            "p95_device_ns": statistics.percentile(95)[order],
            **{name: sums[name] for name in ("kernels", "memcpys", "memsets", "bytes")},
            "bandwidth": bandwidth(sums["copied_bytes"], sums["copy_ns"]),
            "launch_delay_ns": mean_delay(sums["delay_ns"], sums["delays"]),
        }
    )


def _sums(index: ProfileIndex, rows: IntArray, groups: IntArray, n: int) -> dict[str, IntArray]:
    """Sum up the activities at `rows` by group; int64 arrays, one value per group."""
    activities = index.profile.tables["activities"]
    kind, (delays, is_known) = activities.names("kind"), index.delays
    sums: dict[str, IntArray] = {}
    # With an empty chunk, a profile without device work has all columns.
    for chunk in [slice(0, 0), *chunks(len(rows))]:
        at, group = rows[chunk], groups[chunk]
        kinds = kind.take(at)
        kernel, memcpy = kinds.equals("kernel"), kinds.equals("memcpy")
        size, one = np.maximum(activities["bytes"][at], 0), np.ones(len(at), np.int64)
        timed = kernel & is_known[at]
        for name, mask, values in (
            ("kernels", kernel, one),
            ("memcpys", memcpy, one),
            ("memsets", kinds.equals("memset"), one),
            ("bytes", size > 0, size),
            ("copied_bytes", memcpy, size),
            ("copy_ns", memcpy, activities["duration_ns"][at]),
            ("delay_ns", timed, delays[at]),
            ("delays", timed, one),
        ):
            part = sum_by_group(group[mask], values[mask], n)[:-1]
            sums[name] = sums[name] + part if name in sums else part
    return sums


def _labels(
    info: Mapping[str, Any], device: IntArray, context: IntArray, stream: IntArray
) -> list[str]:
    device_ids = unique_values(device)
    several_devices = len(device_ids) > 1
    of_device = device_labels(info, device_ids)
    pairs = np.stack([device, stream], axis=1)
    _, position, counts = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    several_contexts = counts[position.reshape(-1)] > 1
    labels = []
    for device_id, context_id, stream_id, needs_context in zip(
        device, context, stream, several_contexts, strict=True
    ):
        label = "no stream" if stream_id == MISSING else f"stream {stream_id}"
        if several_devices:
            label += f", {of_device[device_id]}"
        labels.append(f"{label}, context {context_id}" if needs_context else label)
    return labels


def _busy(
    groups: IntArray, starts: IntArray, durations: IntArray, rows: IntArray, n: int
) -> IntArray:
    """Return the time covered by each group's activities, those at `rows`, ns."""
    if n > _MANY:
        begin = starts[rows]
        return covered_by_group(groups, begin, begin + durations[rows], n)
    # Small dtypes sort fastest.
    codes = groups.astype(np.uint16)
    bounds = np.cumsum(np.bincount(groups, minlength=n))[:-1]
    busy = np.zeros(n, np.int64)
    for number, part in enumerate(np.split(np.argsort(codes, kind="stable"), bounds)[:n]):
        start = starts[rows[part]]
        begin, end = union(start, start + durations[rows[part]])
        busy[number] = (end - begin).sum()
    return busy
