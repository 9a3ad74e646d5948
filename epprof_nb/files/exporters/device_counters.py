"""Counters of a trace: how busy each device was, and how many launches were queued."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.device_activity import queued_launches
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.base.wall_time import span_of_device
from epprof_nb.analysis.utilisation.counters import busy_shares
from epprof_nb.arrays.ids import unique_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData

POINTS = 2_000
"""Number of equal intervals for which a counter has a value."""


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter of a device.

    Attributes
    ----------
    device_id
        The device.
    name, unit
        ``busy`` in ``%``: the percentage of an interval in which the device was busy. ``queued``
        in ``launches``: the number of queued launches at the start of the interval.
    times
        int64 array, ns: times at which the counter changes.
    values
        float64 or int64 array: these values.
    """

    device_id: int
    name: str
    unit: str
    times: IntArray
    values: npt.NDArray[np.generic]


def device_counters(profile: ProfileData) -> Iterator[Counter]:
    """Yield the counters of each device with work.

    They come from `epprof_nb.analysis.utilisation.counters`, sampled at equidistant times.
    """
    index = ProfileIndex(profile)
    work = index.is_device_work
    if not work.any():
        return
    activities = profile.tables["activities"]
    devices = unique_values(activities["device_id"][work])
    launches = {device: index.cached(queued_launches, device) for device in devices}
    begin = min(int(queued.t[0]) for queued in launches.values())
    end = int(activities["end_ns"][work].max())
    span = max(end - begin, 1)
    # Python integers do not overflow: times in files may be as large as int64 allows.
    edges = np.unique([begin + span * point // POINTS for point in range(POINTS + 1)])
    for device, queued in launches.items():
        percent = busy_shares(index, device, edges) * 100
        # A counter keeps its last value, so it has to end with its process.
        percent[edges[:-1] >= span_of_device(profile, device)[1]] = 0
        level = queued.level[np.searchsorted(queued.t, edges, "right") - 1]
        level = np.where(edges >= queued.t[0], level, 0)
        yield _changes(device, "busy", "%", edges, np.append(percent, 0).round(1))
        yield _changes(device, "queued", "launches", edges, level)


def _changes(
    device_id: int, name: str, unit: str, edges: IntArray, values: npt.NDArray[np.generic]
) -> Counter:
    """Return the counter with its value at each edge where it changes and is known."""
    is_known = ~np.isnan(values)
    edges, values = edges[is_known], values[is_known]
    kept = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    return Counter(device_id, name, unit, edges[kept], values[kept])
