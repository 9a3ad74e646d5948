"""Counters of a Chrome trace: how busy each device was, and how many launches were queued."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.counters import busy_shares
from epprof_nb.analysis.device_activity import queued_launches
from epprof_nb.analysis.index import ProfileIndex
from epprof_nb.arrays.ids import unique_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData

POINTS = 2_000
"""Number of equal intervals for which a counter has a value."""


def counters(profile: ProfileData, first_process: int) -> Iterator[str]:
    """Yield the counter events of each device with work.

    The counters are those of `epprof_nb.analysis.counters`, sampled at equidistant times.

    Parameters
    ----------
    profile
        The profile.
    first_process
        Process id of the tracks of device 0.

    Yields
    ------
    event
        JSON. ``busy`` is the percentage of an interval in which the device was busy, ``queued``
        the number of queued launches at the start of the interval.
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
    # Integers of Python, because times in files may be anything that int64 holds.
    edges = np.unique([begin + span * point // POINTS for point in range(POINTS + 1)])
    for device, queued in launches.items():
        percent = busy_shares(index, device, edges) * 100
        level = queued.level[np.searchsorted(queued.t, edges, "right") - 1]
        level = np.where(edges >= queued.t[0], level, 0)
        process = device + first_process
        yield from _events(process, "busy", "%", edges, np.append(percent, 0).round(1))
        yield from _events(process, "queued", "launches", edges, level)


def _events(
    process: int, name: str, unit: str, edges: IntArray, values: npt.NDArray[np.generic]
) -> Iterator[str]:
    """Yield an event at each edge where the value changes."""
    before = [None, *values.tolist()]
    for time, (old, value) in zip(edges.tolist(), pairwise(before), strict=True):
        if value != old:
            yield (
                f'{{"ph":"C","pid":{process},"tid":0,"ts":{time / 1000:.3f},"name":"{name}",'
                f'"args":{json.dumps({unit: value})}}}'
            )
