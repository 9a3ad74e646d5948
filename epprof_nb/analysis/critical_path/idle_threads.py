"""Time in which a thread does nothing, and nothing says what it waits for.

It may sleep for a fixed time, ask again and again whether other work is done, wait for a lock, or
keep a rate by waiting until a time of the clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from epprof_nb.analysis.base.time_off_cores import waits_for_cores
from epprof_nb.analysis.critical_path.between_same_events import pieces_of, with_alike
from epprof_nb.analysis.critical_path.columns import MAX_NS
from epprof_nb.analysis.critical_path.sampled_joins import joins_of_waits
from epprof_nb.analysis.critical_path.thread_joins import Joins, open_times
from epprof_nb.arrays.intervals import (
    EARLIEST,
    LATEST,
    complement,
    covered_between,
    intersection,
    union,
)
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.between_same_events import Pieces
    from epprof_nb.analysis.critical_path.thread_joins import Intervals
    from epprof_nb.analysis.critical_path.threads import Threads
    from epprof_nb.arrays.types import IntArray

Idle = Literal["fixed", "event loop", "queued", "until time", "exclusive", "last turn"] | int
"""The end of idle time: after a fixed time, or at a time of the clock; or, for the thread with this
number, when the work of other threads has ended.

``"event loop"``: as fixed, also in event loops until a suspended op goes on. ``"queued"``: as
fixed, but threads without an op do not wait for the thread of the cell either, because their next
op was already in a queue. ``"exclusive"``: when another thread has ended an op of the same name, as
within a lock. ``"last turn"``: as fixed, but each thread that came to a lock at once with others
was the last one to get it.
"""
MAX_THREADS = 4
"""Number of threads, those with the most idle time, that are checked for waiting for work."""
_IDLE = 8
"""A thread is idle between two samples if that time is this many times its processor time."""
_TAIL, _MOSTLY = 4, 0.5
"""Idle time ends with work that ends in its last quarter, if it does so in half of this time."""


def idle_times(index: ProfileIndex, threads: Threads) -> dict[int, Intervals]:
    """Return the idle time of threads, by number, cut where ops begin and end.

    Of other threads than the home thread, it is that with an op.
    """
    samples, ops = index.profile.tables["host_samples"], index.profile.tables["ops"]
    is_known = samples["processor_ns"] != MISSING
    found = {}
    for number, thread_id in zip(threads.numbers.tolist(), threads.ids.tolist(), strict=True):
        rows = np.flatnonzero(is_known & (samples["thread_id"] == thread_id))
        waits = _clock_waits(index, thread_id)
        if len(rows) < 2 and not len(waits[0]):
            continue
        own = threads.of_ops == number
        known = known_waits(index, threads, number, thread_id)
        events = np.sort(np.concatenate([ops["start_ns"][own], ops["end_ns"][own], *known]))
        events = events[np.diff(events, prepend=events[:1] - 1) != 0]  # faster than np.unique
        times = (
            samples["start_ns"][rows],
            samples["processor_ns"][rows],
            waits_for_cores(samples, rows),
        )
        idle = with_alike(_between(*times, events, known), index, own, known)
        idle = union(*(np.append(*bounds) for bounds in zip(idle, waits, strict=True)))
        if len(idle[0]):
            if number != threads.home:
                is_open = open_times(index, own, np.zeros(len(threads.of_calls), np.bool_))
                idle = intersection(idle, is_open)
            idle = intersection(idle, complement(*known, EARLIEST, LATEST))
            found[number] = _cut(idle, events)
    return {number: idle for number, idle in found.items() if len(idle[0])}


def _clock_waits(index: ProfileIndex, thread_id: int) -> Intervals:
    """Return when a thread slept, or waited for others until a time limit.

    Waits with hardly any time between them are one: the thread asks for something again and again.
    """
    table = index.profile.tables["thread_waits"]
    rows = (table["thread_id"] == thread_id) & (table["other_thread_id"] == MISSING)
    return _joined(*union(table["start_ns"][rows], table["end_ns"][rows]))


def _joined(start: IntArray, end: IntArray) -> Intervals:
    """Return intervals, in order, with those that have hardly any time between them as one."""
    if not len(start):
        return start, end
    length = end - start
    is_first = np.append(True, (start[1:] - end[:-1]) * _IDLE > length[1:] + length[:-1])
    return start[is_first], end[np.append(is_first[1:], True)]


def _between(
    time: IntArray, used: IntArray, waited: IntArray, events: IntArray, known: Intervals
) -> Intervals:
    """Return the time between samples in which a thread was idle, up to the next of its events.

    Nothing tells when in the time between an event and the sample after it a thread was idle, nor
    if it was beside a long wait that is known, or was for a core.
    """
    waited = waited + covered_between(*known, time[:-1], time[1:])
    is_idle = np.diff(used) * _IDLE <= np.diff(time) - waited
    is_idle &= 2 * waited <= np.diff(time)
    start, end = time[:-1][is_idle], time[1:][is_idle]
    before = np.append(-MAX_NS, time)[:-2][is_idle]
    after = np.append(time, MAX_NS)[2:][is_idle]
    bounds = np.concatenate([[-MAX_NS], events, [MAX_NS]])
    begun = bounds[np.searchsorted(bounds, start, side="right") - 1]
    ended = bounds[np.searchsorted(bounds, end, side="left")]
    return union(
        np.where((begun >= before) & (begun > -MAX_NS), begun, start),
        np.where((ended <= after) & (ended < MAX_NS), ended, end),
    )


def idle_joins(
    number: int, idle: dict[int, Intervals], index: ProfileIndex, threads: Threads
) -> Joins:
    """Return the idle time of one thread as waits for the work of others that ends meanwhile.

    Without the time between events after which it mostly does not end: the end of this work is a
    coincidence.
    """
    own = threads.of_ops == number
    pieces = pieces_of(index, own)
    of_others = threads.op_end[(threads.of_ops != MISSING) & ~own]
    calls = index.profile.tables["api_calls"]["end_ns"][threads.of_calls != number]
    ends = np.sort(np.append(of_others, calls))
    # A loop that asks for work may do so in an op of its own: its turns are one wait, too.
    all_idle = idle[number], _joined(*idle[number])
    found = [_until_work_ends(*times, pieces, ends) for times in all_idle]
    waiting = union(*(np.concatenate(times) for times in zip(*found, strict=True)))
    none = np.empty(0, np.int64), np.empty(0, np.int64)
    waits = dict.fromkeys(threads.numbers.tolist(), none) | {number: waiting}
    return joins_of_waits(waits, index, threads)


def _until_work_ends(start: IntArray, end: IntArray, pieces: Pieces, ends: IntArray) -> Intervals:
    """Return the idle time that mostly ends with the end of work, of all that follows one event."""
    kind = np.append(pieces.kind, -1)[np.searchsorted(pieces.start, start, side="right") - 1] + 1
    last = np.append(ends, -MAX_NS)[np.searchsorted(ends, end, side="right") - 1]
    ended = last >= end - (end - start) // _TAIL
    length = (end - start).astype(np.float64)
    share = np.bincount(kind, length * ended) / np.maximum(np.bincount(kind, length), 1)
    use = share[kind] >= _MOSTLY
    return start[use], end[use]


def waits_of(idle: dict[int, Intervals]) -> Joins:
    """Return the idle time as waits of threads for nothing but the clock."""
    sizes = [len(start) for start, _ in idle.values()]
    thread = np.repeat(np.array([*idle], np.int32), sizes)
    start, end = (
        np.concatenate([np.empty(0, np.int64), *(times[i] for times in idle.values())])
        for i in (0, 1)
    )
    return Joins(start, end, thread, np.full(len(start), MISSING, np.int32), thread)


def known_waits(index: ProfileIndex, threads: Threads, number: int, thread_id: int) -> Intervals:
    """Return when a thread was in API calls, or in waits that another thread ended."""
    calls, waits = (index.profile.tables[name] for name in ("api_calls", "thread_waits"))
    of_calls = threads.of_calls == number
    recorded = (waits["thread_id"] == thread_id) & (waits["other_thread_id"] != MISSING)
    start, end = (
        np.append(calls[name][of_calls], waits[name][recorded]) for name in ("start_ns", "end_ns")
    )
    return union(start, end)


def _cut(intervals: Intervals, times: IntArray) -> Intervals:
    """Return intervals cut at some ascending times."""
    starts, ends = intervals
    at = np.searchsorted(starts, times, side="left") - 1  # not at the start itself
    inside = times[(at >= 0) & (times < np.append(ends, 0)[at])]
    return np.sort(np.append(starts, inside)), np.sort(np.append(ends, inside))
