"""Where the device's time went, by stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from epprof_nb.analysis.dataframe import categorical, optional
from epprof_nb.analysis.index import Shared
from epprof_nb.analysis.measures import bandwidth, mean_delay
from epprof_nb.analysis.op_totals import share
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.intervals import union
from epprof_nb.arrays.percentiles import GroupStatistics
from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData


def by_stream(profile: ProfileData, *, shared: Shared | None = None) -> pd.DataFrame:
    """Return the work of each stream of each device.

    Parameters
    ----------
    profile
        The profile.
    shared
        What the profile's tables share; made anew where left out.

    Returns
    -------
    frame
        One row a device, context and stream with kernels, copies or sets on it, in this order;
        `device_ns` adds up to the device's time.

        ====================  ========  =======================================================
        stream                category  ``stream 7``; with the device and context where that is
                                        needed to tell streams apart
        device_id,            Int64     as in ``prof.activities``
        context_id, stream_id
        count                 int64     kernels, copies and sets
        device_ns             int64     their time; overlapping ones each count
        busy_ns               int64     time during which at least one of them ran
        share                 float64   `device_ns` as a fraction of all device time
        mean_ns, p95_ns       int64     time of one; the percentile is a duration that occurred
        kernels, memcpys,     int64     how many of each
        memsets
        bytes                 int64     bytes copied and set
        bandwidth             float64   bytes a second of the copies; NaN where there are none
        launch_delay_ns       Int64     mean time from a kernel's API call to its start; missing
                                        where no call was recorded
        ====================  ========  =======================================================
    """
    activities = profile.tables["activities"]
    shared = shared or Shared(profile)
    rows = np.flatnonzero(shared.work)
    keys = [activities[name][rows] for name in ("device_id", "context_id", "stream_id")]
    groups, first = group_codes(*keys)
    n = len(first)
    durations = activities["duration_ns"][rows]
    statistics = GroupStatistics(groups, durations, n)
    order = np.lexsort([key[first] for key in reversed(keys)])
    sums = {name: values[order] for name, values in _sums(profile, shared, rows, groups, n).items()}
    device, context, stream = (key[first[order]] for key in keys)
    return pd.DataFrame(
        {
            "stream": categorical(_labels(device, context, stream)),
            "device_id": optional(device),
            "context_id": optional(context),
            "stream_id": optional(stream),
            "count": statistics.count[order],
            "device_ns": statistics.total[order],
            "busy_ns": _busy(groups, activities["start_ns"], activities["duration_ns"], rows, n)[
                order
            ],
            "share": share(statistics.total[order], int(statistics.total.sum())),
            "mean_ns": statistics.mean[order],
            "p95_ns": statistics.percentile(95)[order],
            **{name: sums[name] for name in ("kernels", "memcpys", "memsets", "bytes")},
            "bandwidth": bandwidth(sums["copied_bytes"], sums["copy_ns"]),
            "launch_delay_ns": mean_delay(sums["delay_ns"], sums["delays"]),
        }
    )


def _sums(
    profile: ProfileData, shared: Shared, rows: IntArray, groups: IntArray, n: int
) -> dict[str, IntArray]:
    """Add up the activities at `rows` by group; int64 arrays, one value a group."""
    activities = profile.tables["activities"]
    kind, (delays, known) = activities.names("kind"), shared.delays
    sums: dict[str, IntArray] = {}
    # An empty piece gives a profile without work its columns.
    for piece in [slice(0, 0), *chunks(len(rows))]:
        at, group_of = rows[piece], groups[piece]
        kinds = kind.take(at)
        kernel, memcpy = kinds.equals("kernel"), kinds.equals("memcpy")
        size, one = np.maximum(activities["bytes"][at], 0), np.ones(len(at), np.int64)
        timed = kernel & known[at]
        for name, which, values in (
            ("kernels", kernel, one),
            ("memcpys", memcpy, one),
            ("memsets", kinds.equals("memset"), one),
            ("bytes", size > 0, size),
            ("copied_bytes", memcpy, size),
            ("copy_ns", memcpy, activities["duration_ns"][at]),
            ("delay_ns", timed, delays[at]),
            ("delays", timed, one),
        ):
            part = sum_by_group(group_of[which], values[which], n)[:-1]
            sums[name] = sums[name] + part if name in sums else part
    return sums


def _labels(device: IntArray, context: IntArray, stream: IntArray) -> list[str]:
    several = len(np.unique(device)) > 1
    pairs = np.stack([device, stream], axis=1)
    _, place, times = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    shared = times[place.reshape(-1)] > 1
    labels = []
    for on, within, which, more in zip(device, context, stream, shared, strict=True):
        label = "no stream" if which == MISSING else f"stream {which}"
        if several:
            label += f", device {on}"
        labels.append(f"{label}, context {within}" if more else label)
    return labels


def _busy(
    groups: IntArray, starts: IntArray, durations: IntArray, rows: IntArray, n: int
) -> IntArray:
    """Return the time covered by each group's activities, those at `rows`, ns."""
    # Few numbers in few bits sort fastest.
    small = groups.astype(np.uint16) if n < 2**16 else groups
    bounds = np.cumsum(np.bincount(groups, minlength=n))[:-1]
    busy = np.zeros(n, np.int64)
    # One round a stream, not a row.
    for number, part in enumerate(np.split(np.argsort(small, kind="stable"), bounds)[:n]):
        start = starts[rows[part]]
        begin, end = union(start, start + durations[rows[part]])
        busy[number] = (end - begin).sum()
    return busy
