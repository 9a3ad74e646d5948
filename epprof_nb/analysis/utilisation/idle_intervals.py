"""Idle intervals of devices: between pieces of work, before the first and after the last one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.missing_records import is_unrecorded
from epprof_nb.analysis.base.wall_time import span_of_device
from epprof_nb.arrays.ids import rows_as_slice
from epprof_nb.arrays.intervals import clip_times, complement
from epprof_nb.arrays.nearest import first_from

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

POSITIONS = ("before", "between", "after")
"""Positions of an idle interval in the work of its device; the position is a code."""
BEFORE, BETWEEN, AFTER = 0, 1, 2


class IdleIntervals(NamedTuple):
    """Idle intervals by device and time: int64 columns.

    ``device`` is the device id, ``start`` and ``end`` are in ns, ``position`` is a code of
    `POSITIONS` and ``next_row`` the activity that ended the interval, or the last one if none
    follows.
    """

    device: IntArray
    start: IntArray
    end: IntArray
    position: IntArray
    next_row: IntArray

    def take(self, rows: IntArray | BoolArray | slice) -> IdleIntervals:
        """Return some of the intervals."""
        return IdleIntervals(*(column[rows] for column in self))


def idle_intervals(index: ProfileIndex, min_ns: int = 1) -> IdleIntervals:
    """Return the intervals of at least `min_ns` in which a device that did work was idle.

    An interval in which unrecorded work may have run is not idle.
    """
    return index.cached(_intervals, max(min_ns, 1))


def _intervals(index: ProfileIndex, min_ns: int) -> IdleIntervals:
    of_devices = [_of_device(index, device, min_ns) for device in index.device_ids]
    if len(of_devices) == 1:
        return of_devices[0]
    none = np.empty(0, np.int64)
    columns = zip(IdleIntervals(*[none] * 5), *of_devices, strict=True)
    return IdleIntervals(*map(np.concatenate, columns))


def _of_device(index: ProfileIndex, device: int, min_ns: int) -> IdleIntervals:
    """Return the intervals of one device."""
    profile = index.profile
    starts, ends = clip_times(*index.busy(device))
    if not len(starts):
        return IdleIntervals(*[np.empty(0, np.int64)] * 5)
    # Work may precede the start of the profile. A length that is not recorded has no idle ends.
    first, last = span_of_device(profile, device) if profile.wall_ns > 0 else (0, 0)
    begin = min(first, int(starts[0]))
    start, end = complement(starts, ends, begin, max(last, int(ends[-1])))
    is_long = end - start >= min_ns
    start, end = start[is_long], end[is_long]
    is_known = ~is_unrecorded(index, start, end)
    start, end = start[is_known], end[is_known]
    position = np.where(end <= starts[0], BEFORE, np.where(start >= ends[-1], AFTER, BETWEEN))
    activities = profile.tables["activities"]
    rows = index.work_of(device)
    work_start = activities["start_ns"][rows_as_slice(rows)]
    next_row = rows[first_from(work_start, np.ones(len(rows), np.bool_), end)]
    return IdleIntervals(np.full(len(start), device), start, end, position, next_row)
