"""Waits of a thread for others that no op connects, as in ``Thread.join`` and ``Future.result``.

Samples of the host find the thread in a function that waits for another thread. Between two of its
own events (ops, API calls, samples in other code) it then does nothing but wait. An event loop also
waits for files and timers: for a thread only if its work ended just before the loop went on, as
with ``asyncio.to_thread``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.waiting_frames import FOR_THREADS, OF_EVENT_LOOPS, waiting_samples
from epprof_nb.analysis.critical_path.between_same_events import with_alike
from epprof_nb.analysis.critical_path.thread_joins import Joins, open_times
from epprof_nb.arrays.ids import sorted_distinct
from epprof_nb.arrays.intervals import EARLIEST, LATEST, complement, intersection, union
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.thread_joins import Intervals
    from epprof_nb.analysis.critical_path.threads import Threads
    from epprof_nb.arrays.types import IntArray

_NONE = np.empty(0, np.int64)
WAKE_UP_NS = 500_000
"""Time in which an event loop goes on after work of a thread that wakes it, or after a timer."""
_NO_CHANCE = 3
"""Least time between two ends of work in units of `WAKE_UP_NS`: if work ends more often, it ends
just before anything else, too."""


class _Waited(NamedTuple):
    """Work of another thread in the waits of a thread, as columns.

    ``wait`` is the number of the wait, and ``goes_on`` whether the work lasted longer than it.
    """

    start: IntArray
    end: IntArray
    wait: IntArray
    goes_on: npt.NDArray[np.bool_]


def sampled_joins(index: ProfileIndex, threads: Threads) -> Joins:
    """Return the waits of threads for others that samples found, and that were not recorded."""
    waits = _sampled_waits(index, threads, FOR_THREADS)
    loops = _sampled_waits(index, threads, OF_EVENT_LOOPS)
    return joins_of_waits(waits, index, threads).with_more(_wake_ups(loops, index, threads))


def _sampled_waits(
    index: ProfileIndex, threads: Threads, frames: Collection[tuple[str, str]]
) -> dict[int, Intervals]:
    """Return when threads, by number, waited in some functions."""
    samples = index.profile.tables["host_samples"]
    is_wait = waiting_samples(index, frames)
    waits = {}
    if is_wait.any() and threads.count > 1:
        times_of = _Times(index, threads)
        for number, thread_id in zip(threads.numbers.tolist(), threads.ids.tolist(), strict=True):
            of_thread = samples["thread_id"] == thread_id
            times = samples["start_ns"][of_thread]
            waits[number] = times_of.waits(number, thread_id, times, is_wait[of_thread])
    return waits


def _wake_ups(waits: dict[int, Intervals], index: ProfileIndex, threads: Threads) -> Joins:
    """Return the waits of event loops that the end of another thread's work has ended."""
    found, times_of = list[tuple[_Waited, int, int]](), _Times(index, threads)
    ids = dict(zip(threads.numbers.tolist(), threads.ids.tolist(), strict=True))
    for number, sampled in waits.items():
        start, end = times_of.alike(number, ids[number], sampled) if len(sampled[0]) else sampled
        for other in threads.numbers.tolist():
            if other == number or not len(start):
                continue
            part = _waited(start, end, *times_of.work(other))
            last, count = np.full(len(start), -WAKE_UP_NS - 1), np.zeros(len(start), np.int64)
            ended = ~part.goes_on
            np.maximum.at(last, part.wait[ended], part.end[ended])
            np.add.at(count, part.wait[ended], 1)
            is_woken = (end - last <= WAKE_UP_NS) & (end - start >= _NO_CHANCE * WAKE_UP_NS * count)
            use = ended & is_woken[part.wait]
            found.append((_Waited(*(column[use] for column in part)), number, other))
    return _joins_of(found)


def joins_of_waits(waits: dict[int, Intervals], index: ProfileIndex, threads: Threads) -> Joins:
    """Return the waits of threads, by number, for the work of the others.

    A thread waits for the work that ended while it waited; if none did, for that which went on.
    """
    found: list[tuple[_Waited, int, int]] = []
    if any(len(start) for start, _ in waits.values()):
        times_of = _Times(index, threads)
        work = {
            number: intersection(times_of.work(number), complement(*wait, EARLIEST, LATEST))
            for number, wait in waits.items()
        }
        for number, (start, end) in waits.items():
            if len(start):
                found += _pieces(number, start, end, work)
    return _joins_of(found)


def _joins_of(found: list[tuple[_Waited, int, int]]) -> Joins:
    """Return work in waits, the number of the waiting thread and that of the other as joins."""
    sizes = [len(part.start) for part, *_ in found]
    thread, other = (
        np.repeat(np.array([entry[i] for entry in found], np.int32), sizes) for i in (1, 2)
    )
    start, end = (
        np.concatenate([_NONE, *(getattr(part, name) for part, *_ in found)])
        for name in ("start", "end")
    )
    return Joins(start, end, thread, np.full(len(start), MISSING, np.int32), other)


class _Times:
    """The work and the waits of the threads of a profile."""

    def __init__(self, index: ProfileIndex, threads: Threads) -> None:
        self._index = index
        self._op_thread, self._call_thread = threads.of_ops, threads.of_calls
        self._ops, self._calls, self._recorded = (
            index.profile.tables[name] for name in ("ops", "api_calls", "thread_waits")
        )

    def work(self, thread: int) -> Intervals:
        """Return when a thread had ops or API calls open."""
        return open_times(self._index, self._op_thread == thread, self._call_thread == thread)

    def waits(
        self, thread: int, thread_id: int, sampled_ns: IntArray, is_wait: npt.NDArray[np.bool_]
    ) -> Intervals:
        """Return when a thread waited: from the event before a sample that waits to the next."""
        of_ops, of_calls = self._op_thread == thread, self._call_thread == thread
        own = [self._ops[name][of_ops] for name in ("start_ns", "end_ns")]
        own += [self._calls[name][of_calls] for name in ("start_ns", "end_ns")]
        known = self.known(thread, thread_id)
        events = sorted_distinct(np.concatenate([*own, sampled_ns[~is_wait], [0, LATEST]]))
        at = np.unique(np.searchsorted(events, sampled_ns[is_wait], side="right"))
        at = at[(at > 0) & (at < len(events))]
        return intersection(union(events[at - 1], events[at]), complement(*known, EARLIEST, LATEST))

    def alike(self, thread: int, thread_id: int, waits: Intervals) -> Intervals:
        """Return waits, and the time between the same events, which samples may have missed."""
        known = self.known(thread, thread_id)
        found = with_alike(waits, self._index, self._op_thread == thread, known)
        return intersection(found, complement(*known, EARLIEST, LATEST))

    def known(self, thread: int, thread_id: int) -> Intervals:
        """Return the API calls and recorded waits, which say themselves what they wait for."""
        of_calls, recorded = self._call_thread == thread, self._recorded["thread_id"] == thread_id
        return union(*(
            np.append(self._calls[name][of_calls], self._recorded[name][recorded])
            for name in ("start_ns", "end_ns")
        ))  # fmt: skip


def _pieces(
    thread: int, start: IntArray, end: IntArray, work: dict[int, Intervals]
) -> list[tuple[_Waited, int, int]]:
    """Return the work of other threads in the waits of a thread that it may have waited for."""
    found = {
        other: _waited(start, end, *of_other) for other, of_other in work.items() if other != thread
    }
    has_ended = np.zeros(len(start), np.bool_)
    for part in found.values():
        has_ended[part.wait[~part.goes_on]] = True
    kept = []
    for other, part in found.items():
        use = ~part.goes_on | ~has_ended[part.wait]
        of_use = _Waited(part.start[use], part.end[use], part.wait[use], part.goes_on[use])
        kept.append((of_use, thread, other))
    return kept


def _waited(start: IntArray, end: IntArray, work_start: IntArray, work_end: IntArray) -> _Waited:
    begin, until = intersection((start, end), (work_start, work_end))
    wait = np.searchsorted(start, begin, side="right") - 1
    of_work = np.searchsorted(work_start, begin, side="right") - 1
    goes_on = work_end[of_work] > end[wait] if len(begin) else np.zeros(0, np.bool_)
    return _Waited(begin, until, wait, goes_on)
