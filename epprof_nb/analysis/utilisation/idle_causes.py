"""Causes of idle intervals: why nothing ran on a device.

The next work after an idle interval explains it. Until its API call, the host *had not launched*
it, or the host was *waiting*, in a call such as ``cuStreamSynchronize``. From the call on, the
launch was on its way (*launching*) for about the time that a launch takes on this device. After
that the work was *held* by an event, another stream or another device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.missing_records import first_starts
from epprof_nb.analysis.utilisation.blocking_calls import host_wait
from epprof_nb.analysis.utilisation.idle_intervals import AFTER, idle_intervals
from epprof_nb.arrays.ids import values_at
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.utilisation.idle_intervals import IdleIntervals
    from epprof_nb.arrays.types import BoolArray, IntArray

CAUSES = ("not launched", "launching", "waiting", "held", "unknown")
LONGEST_LAUNCH_NS = 1_000_000
"""Longest time of a launch from its call on; longer calls do more, such as loading code."""
LEAST_HELD_NS = 5_000
"""Longest time between two pieces of work of a queue that needs no reason."""
_LATENCY_FACTOR = 2
"""A launch is on its way for at most this many times the median latency of launches."""
_LONGEST_LATENCY_NS = 1_000_000
"""Maximum time of a launch, because the median of a single launch would explain any time."""


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
    unknown = np.flatnonzero(call == MISSING)
    thread[unknown] = tables["activities"]["thread_id"][rows[unknown]]
    return thread
