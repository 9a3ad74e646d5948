"""Counters of a Chrome trace: how busy each device was, and how much work was outstanding."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.index import Shared
from epprof_nb.arrays.ids import IdIndex, unique_values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData


POINTS = 2_000
"""Equal stretches of the profile that a counter has a value for."""


def counters(profile: ProfileData, first_process: int) -> Iterator[str]:
    """Yield the counter events of each device that worked.

    Parameters
    ----------
    profile
        The profile.
    first_process
        Process id of device 0's tracks.

    Yields
    ------
    event
        JSON. ``busy`` is the percentage of a stretch in which the device worked, ``outstanding``
        the number of activities launched and not finished as the stretch begins.
    """
    shared = Shared(profile)
    activities = profile.tables["activities"]
    work = shared.work
    if not work.any():
        return
    begin, end = int(activities["start_ns"][work].min()), int(activities["end_ns"][work].max())
    calls = profile.tables["api_calls"]["start_ns"]
    call = IdIndex(profile.tables["api_calls"]["correlation_id"]).rows(activities["correlation_id"])
    # Without its call, an activity counts while it runs; none ends before it was launched.
    given = activities["start_ns"].copy()
    given[call >= 0] = np.minimum(calls[call[call >= 0]], given[call >= 0])
    begin = min(begin, int(given[work].min()))
    edges = np.unique(np.linspace(begin, max(end, begin + 1), POINTS + 1).astype(np.int64))
    for device in unique_values(activities["device_id"][work]):
        mine = work & (activities["device_id"] == device)
        starts, ends = shared.busy(device)
        share = np.diff(_covered(starts, ends, edges)) / np.diff(edges)
        waiting = np.searchsorted(np.sort(given[mine]), edges, "right")
        waiting -= np.searchsorted(np.sort(activities["end_ns"][mine]), edges, "right")
        process = device + first_process
        yield from _events(process, "busy", "%", edges, np.append(share * 100, 0).round(1))
        yield from _events(process, "outstanding", "activities", edges, waiting)


def _covered(starts: IntArray, ends: IntArray, edges: IntArray) -> npt.NDArray[np.float64]:
    """Return how much of the disjoint intervals lies before each edge."""
    if not len(starts):
        return np.zeros(len(edges))
    times = np.stack([starts, ends], axis=1).reshape(-1)
    total = np.cumsum(np.stack([np.zeros_like(starts), ends - starts], axis=1).reshape(-1))
    covered: npt.NDArray[np.float64] = np.interp(edges, times, total)
    return covered


def _events(
    process: int, name: str, unit: str, edges: IntArray, values: npt.NDArray[np.generic]
) -> Iterator[str]:
    """Yield a step at each edge where the value is another than before."""
    before = [None, *values.tolist()]
    for time, (old, value) in zip(edges.tolist(), pairwise(before), strict=True):
        if value != old:
            yield (
                f'{{"ph":"C","pid":{process},"tid":0,"ts":{time / 1000:.3f},"name":"{name}",'
                f'"args":{json.dumps({unit: value})}}}'
            )
