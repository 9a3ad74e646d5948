"""Where the device's time went, by stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from epprof_nb.analysis.columns import bandwidth, mean_delay
from epprof_nb.analysis.frames import categorical, optional
from epprof_nb.analysis.intervals import union
from epprof_nb.analysis.lookup import add_up, group
from epprof_nb.analysis.shared import Shared
from epprof_nb.analysis.spread import Spread
from epprof_nb.analysis.totals import share
from epprof_nb.schema import MISSING

if TYPE_CHECKING:
    from epprof_nb.profiles import Profile

_Int = npt.NDArray[np.int64]


def by_stream(profile: Profile, *, shared: Shared | None = None) -> pd.DataFrame:
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
    groups, first = group(*keys)
    n = len(first)
    durations = activities["duration_ns"][rows]
    spread = Spread(groups, durations, n)
    kind = activities.names("kind").take(rows)
    kernel, memcpy = kind.equals("kernel"), kind.equals("memcpy")
    sizes = np.maximum(activities["bytes"][rows], 0)
    delays, known = shared.delays
    delays, timed = delays[rows], known[rows] & kernel

    order = np.lexsort([key[first] for key in reversed(keys)])

    def total(which: npt.NDArray[np.bool_], values: _Int) -> _Int:
        return add_up(groups[which], values[which], n)[:-1][order]

    one = np.ones(len(rows), np.int64)
    device, context, stream = (key[first[order]] for key in keys)
    return pd.DataFrame(
        {
            "stream": categorical(_labels(device, context, stream)),
            "device_id": optional(device),
            "context_id": optional(context),
            "stream_id": optional(stream),
            "count": spread.count[order],
            "device_ns": spread.total[order],
            "busy_ns": _busy(groups, activities["start_ns"][rows], durations, n)[order],
            "share": share(spread.total[order], int(spread.total.sum())),
            "mean_ns": spread.mean[order],
            "p95_ns": spread.percentile(95)[order],
            "kernels": total(kernel, one),
            "memcpys": total(memcpy, one),
            "memsets": total(kind.equals("memset"), one),
            "bytes": total(sizes > 0, sizes),
            "bandwidth": bandwidth(total(memcpy, sizes), total(memcpy, durations)),
            "launch_delay_ns": mean_delay(total(timed, delays), total(timed, one)),
        }
    )


def _labels(device: _Int, context: _Int, stream: _Int) -> list[str]:
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


def _busy(groups: _Int, starts: _Int, durations: _Int, n: int) -> _Int:
    """Return the time covered by each group's activities, ns."""
    order = np.argsort(groups, kind="stable")
    starts, ends = starts[order], starts[order] + durations[order]
    bounds = np.cumsum(np.bincount(groups, minlength=n))[:-1]
    busy = np.zeros(n, np.int64)
    # One round a stream, not a row.
    pieces = zip(np.split(starts, bounds), np.split(ends, bounds), strict=True)
    for number, piece in enumerate(pieces):
        if number < n:
            begin, end = union(*piece)
            busy[number] = (end - begin).sum()
    return busy
