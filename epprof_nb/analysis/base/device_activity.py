"""Activity of one device in the order of time: busy time, copies and queued launches.

The counters use these data; `ProfileIndex.cached` stores them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb import _native
from epprof_nb.analysis.base.device_work import MEMCPY
from epprof_nb.arrays.ids import rows_as_slice
from epprof_nb.arrays.intervals import clip_times
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray


class Copies(NamedTuple):
    """Copies by start, int64: ``start`` and ``end`` in ns, ``size`` in bytes."""

    start: IntArray
    end: IntArray
    size: IntArray


class QueuedLaunches(NamedTuple):
    """Number of queued launches from each time at which it changes.

    ``t`` is ascending, int64 ns; ``level`` is int32.
    """

    t: IntArray
    level: npt.NDArray[np.int32]


def busy_total(index: ProfileIndex, device_id: int) -> IntArray:
    """Return the running sum of a device's busy intervals, int64 ns, from 0."""
    starts, ends = index.busy(device_id)
    return np.concatenate(([0], np.cumsum(ends - starts)))


def copies(index: ProfileIndex, device_id: int) -> Copies:
    """Return the copies of a device; a copy without a duration lasts one nanosecond."""
    activities = index.profile.tables["activities"]
    rows = index.work_of(device_id)
    rows = rows[(index.kinds[rows] == MEMCPY) & (activities["bytes"][rows] > 0)]
    rows = rows[np.argsort(activities["start_ns"][rows], kind="stable")]
    start, end = clip_times(activities["start_ns"][rows], activities["end_ns"][rows])
    return Copies(start, np.maximum(end, start + 1), activities["bytes"][rows])


def queued_launches(index: ProfileIndex, device_id: int) -> QueuedLaunches:
    """Count the launches that a device has received but not finished.

    A launch is queued from the start of its API call until the last activity that it launched
    has ended, so the replay of a CUDA graph is one launch. An activity whose API call was not
    recorded counts while it runs.
    """
    activities, calls = index.profile.tables["activities"], index.profile.tables["api_calls"]
    rows = rows_as_slice(index.work_of(device_id))
    start = activities["start_ns"][rows]
    end = np.maximum(activities["end_ns"][rows], start)
    call = index.calls.rows(activities["correlation_id"][rows])
    # Usually, each launch has one activity, and they are in the order of their launches.
    if len(call) and call[0] != MISSING and (call[1:] > call[:-1]).all():
        return _levels(np.minimum(calls["start_ns"][call], end), end)
    alone = call == MISSING
    # The activities of a launch, which may be the nodes of a graph, become neighbours.
    order = np.flatnonzero(~alone)
    if (np.diff(call[order]) < 0).any():
        order = order[np.argsort(call[order], kind="stable")]
    first = np.flatnonzero(np.diff(call[order], prepend=MISSING))
    launching = call[order[first]]
    last_end = np.maximum.reduceat(end[order], first) if len(first) else end[:0]
    # No launch ends before it was queued, whatever the clocks say.
    queued = np.concatenate([np.minimum(calls["start_ns"][launching], last_end), start[alone]])
    return _levels(queued, np.concatenate([last_end, end[alone]]))


def _levels(queued: IntArray, done: IntArray) -> QueuedLaunches:
    """Return how many launches are queued, from the times when they are queued and done."""
    # They are nearly in order: a stable sort, which merges runs, is the fastest.
    queued.sort(kind="stable")
    done.sort(kind="stable")
    queued, done = clip_times(queued, done)
    t, level = np.empty(2 * len(queued), np.int64), np.empty(2 * len(queued), np.int32)
    size = _native.count_levels(t, level, queued, done)
    return QueuedLaunches(t[:size], level[:size])
