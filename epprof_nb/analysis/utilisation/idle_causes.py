"""Idle intervals of devices, and why nothing ran in them.

The next work after an idle interval explains it. Until its API call, the host *had not launched*
it, or the host was *waiting*, in a call such as ``cuStreamSynchronize``. From the call on, the
launch was on its way (*launching*) for about the time that a launch takes on this device. After
that the work was *held* by an event, another stream or another device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.copies import is_pageable, is_synchronous
from epprof_nb.analysis.base.device_work import MEMCPY
from epprof_nb.analysis.base.missing_records import first_starts, is_unrecorded
from epprof_nb.analysis.base.result_table import values_at
from epprof_nb.analysis.base.wall_time import span_of_device
from epprof_nb.arrays.ids import unique_values
from epprof_nb.arrays.intervals import clip_times, complement, covered_between, union
from epprof_nb.arrays.nearest import first_from
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

POSITIONS = ("before", "between", "after")
"""Positions of an idle interval in the work of its device; the position is a code."""
BEFORE, BETWEEN, AFTER = 0, 1, 2

CAUSES = ("not launched", "launching", "waiting", "held", "unknown")
HELD = CAUSES.index("held")
LONGEST_LAUNCH_NS = 1_000_000
"""Longest time of a launch from its call on; longer calls do more, such as loading code."""
LEAST_HELD_NS = 5_000
"""Longest time between two pieces of work of a queue that needs no reason."""
_LATENCY_FACTOR = 2
"""A launch is on its way for at most this many times the median latency of launches."""
_LONGEST_LATENCY_NS = 1_000_000
"""Maximum time of a launch, because the median of a single launch would explain any time."""


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

    def take(self, rows: IntArray | BoolArray) -> IdleIntervals:
        """Return some of the intervals."""
        return IdleIntervals(*(column[rows] for column in self))


def idle_intervals(index: ProfileIndex, min_ns: int = 1) -> IdleIntervals:
    """Return the intervals of at least `min_ns` in which a device that did work was idle.

    An interval in which unrecorded work may have run is not idle.
    """
    return index.cached(_intervals, max(min_ns, 1))


def _intervals(index: ProfileIndex, min_ns: int) -> IdleIntervals:
    of_devices = [_of_device(index, device, min_ns) for device in index.device_ids]
    columns = np.concatenate([np.empty((5, 0), np.int64), *of_devices], axis=1)
    return IdleIntervals(*columns)


def _of_device(index: ProfileIndex, device: int, min_ns: int) -> IntArray:
    """Return the columns of `IdleIntervals` for one device, shape ``(5, intervals)``."""
    profile = index.profile
    starts, ends = clip_times(*index.busy(device))
    if not len(starts):
        return np.empty((5, 0), np.int64)
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
    work_start = activities["start_ns"][rows]
    next_row = rows[first_from(work_start, np.ones(len(rows), np.bool_), end)]
    return np.stack([np.full(len(start), device), start, end, position, next_row])


def split_by_cause(index: ProfileIndex, idle: IdleIntervals) -> dict[str, IntArray]:
    """Return how long each cause lasted in each interval.

    Parameters
    ----------
    index
        Index of the profile.
    idle
        Intervals of this profile.

    Returns
    -------
    parts
        ``not_launched``, ``launching``, ``waiting``, ``held`` and ``unknown`` (the API call that
        launched the next work was not recorded): int64 arrays, nanoseconds, which add up to the
        intervals.
    """
    if idle is idle_intervals(index):
        return index.cached(_split_all)
    return _split(index, idle)


def _split_all(index: ProfileIndex) -> dict[str, IntArray]:
    return _split(index, idle_intervals(index))


def _split(index: ProfileIndex, idle: IdleIntervals) -> dict[str, IntArray]:
    calls = index.profile.tables["api_calls"]
    call = index.calls.rows(index.profile.tables["activities"]["correlation_id"][idle.next_row])
    # After the last work, nothing more was launched.
    follows = idle.position != AFTER
    is_known = (call != MISSING) | ~follows
    called = np.where(follows, values_at(calls["start_ns"], call), idle.end)
    returned = np.where(follows, values_at(calls["end_ns"], call), idle.end)
    called = np.clip(np.where(is_known, called, idle.start), idle.start, idle.end)
    arrival = np.maximum(returned + launch_latency(index), called)
    arrival = np.where(_inside_replay(index, call, idle), idle.end, np.minimum(arrival, idle.end))
    waiting = host_wait(index, launching_thread(index, idle.next_row), idle.start, called)
    return {
        "not_launched": np.where(is_known, called - idle.start - waiting, 0),
        "launching": np.where(is_known, arrival - called, 0),
        "waiting": np.where(is_known, waiting, 0),
        "held": np.where(is_known, idle.end - arrival, 0),
        "unknown": np.where(is_known, 0, idle.end - idle.start),
    }


def main_cause(parts: dict[str, IntArray]) -> CategoryColumn:
    """Return the cause that takes the largest part of each interval."""
    times = np.stack(list(parts.values()))
    codes = times.argmax(axis=0) if times.size else np.empty(0)
    return CategoryColumn(codes.astype(np.int32), CAUSES)


def launch_latency(index: ProfileIndex) -> int:
    """Return the maximum time from the return of a launch's call to its start, ns.

    It is `_LATENCY_FACTOR` times the median of the launches during which a device was idle, because
    other work does not delay most of these, and at most 1 ms.
    """
    return index.cached(_launch_latency)


def _launch_latency(index: ProfileIndex) -> int:
    idle = idle_intervals(index)
    activities, calls = index.profile.tables["activities"], index.profile.tables["api_calls"]
    call = index.calls.rows(activities["correlation_id"][idle.next_row])
    was_idle = (call != MISSING) & (idle.position != AFTER)
    was_idle &= values_at(calls["start_ns"], call) >= idle.start
    if not was_idle.any():
        return 0
    late = idle.end[was_idle] - calls["end_ns"][call[was_idle]]
    return min(_LATENCY_FACTOR * max(int(np.median(late)), 0), _LONGEST_LATENCY_NS)


def _inside_replay(index: ProfileIndex, call: IntArray, idle: IdleIntervals) -> BoolArray:
    """Return which intervals lie between two nodes of one replay of a CUDA graph."""
    activities = index.profile.tables["activities"]
    if not (activities["graph_id"][idle.next_row] != MISSING).any():
        return np.zeros(len(call), np.bool_)
    has_begun: BoolArray = values_at(index.cached(first_starts), call) < idle.start
    has_begun &= call != MISSING
    return has_begun


def launching_thread(index: ProfileIndex, rows: IntArray) -> IntArray:
    """Return the thread that launched each activity, by its API call if it was recorded."""
    tables = index.profile.tables
    call = index.calls.rows(tables["activities"]["correlation_id"][rows])
    thread = values_at(tables["api_calls"]["thread_id"], call)
    return np.where(call == MISSING, tables["activities"]["thread_id"][rows], thread)


def is_wait(index: ProfileIndex) -> BoolArray:
    """Return which API calls block the host until the device has finished something.

    These are synchronizing calls, synchronous copies, and copies to pageable memory, whose calls
    return when the copy is done, even if their name says asynchronous.
    """
    tables = index.profile.tables
    names = tables["api_calls"].names("name")
    of_name = [_blocks(name) for name in names.categories]
    waits = np.array([*of_name, False], np.bool_)[names.codes]
    copies = np.flatnonzero(index.kinds == MEMCPY)
    to_host = tables["activities"].names("copy_kind").equals("DtoH")[copies]
    copies = copies[to_host & is_pageable(index, copies)]
    copies = copies[is_synchronous(index, copies)]
    waits[index.calls.rows(tables["activities"]["correlation_id"][copies])] = True
    return waits


def _blocks(name: str) -> bool:
    return "Synchronize" in name or ("Memcpy" in name and "Async" not in name)


def host_wait(index: ProfileIndex, threads: IntArray, starts: IntArray, ends: IntArray) -> IntArray:
    """Return how long each thread was in a blocking API call between each start and end."""
    calls = index.profile.tables["api_calls"]
    waits = np.flatnonzero(index.cached(is_wait))
    result = np.zeros(len(threads), np.int64)
    wait_threads = calls["thread_id"][waits]
    for thread in unique_values(wait_threads):
        of_thread = waits[wait_threads == thread]
        blocked = union(calls["start_ns"][of_thread], calls["end_ns"][of_thread])
        at = np.flatnonzero(threads == thread)
        result[at] = covered_between(*blocked, starts[at], ends[at])
    return result
