"""Code that computes while other threads want to: they share the GIL, or the cores.

Nothing records who has the GIL. But samples have the processor time of each thread. A thread with
less of it than an op of it was open, of which nothing says what it waited for, may have waited for
the others that computed meanwhile, for each in proportion to its processor time. Without samples,
as in short cells, threads of Python with open ops may have taken turns, each for as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.critical_path.changed_durations import NO_TIME, HostTime
from epprof_nb.analysis.critical_path.idle_threads import MAX_THREADS, known_waits
from epprof_nb.analysis.critical_path.interleaved_ops import suspended_ops
from epprof_nb.arrays.ids import sorted_distinct
from epprof_nb.arrays.intervals import (
    EARLIEST,
    LATEST,
    complement,
    covered_between,
    intersection,
    length,
    union,
    union_of,
)
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.thread_joins import Intervals, Joins
    from epprof_nb.analysis.critical_path.threads import Threads
    from epprof_nb.arrays.types import IntArray

    Floats = npt.NDArray[np.float64]

_NONE = np.empty(0, np.int64)
_COMPUTES = 8
"""Time of an op in units of its processor time, up to which it computes: others wait or sleep."""


class _Computing(NamedTuple):
    """The processor time of a thread.

    Attributes
    ----------
    number
        The number of the thread.
    time, used
        Times, and the processor time until then. Less than two if it is not known.
    begin, op
        When an op, or no op (`MISSING`), became the innermost one of the thread.
    computes
        For each `begin`, whether this op computes.
    free
        When the thread waited for nothing that is known, as starts and ends.
    turns
        When it has an op open, and may take turns with others where samples do not tell.
    """

    number: int
    time: IntArray
    used: IntArray
    begin: IntArray
    op: IntArray
    computes: npt.NDArray[np.bool_]
    free: Intervals
    turns: Intervals


class SharedProcessor:
    """The processor time of the threads of a profile with the most of it.

    `waits` are waits of threads for others which are not in ``thread_waits``.
    """

    def __init__(self, index: ProfileIndex, threads: Threads, waits: Joins) -> None:
        found = []
        for number, thread_id in zip(threads.numbers.tolist(), threads.ids.tolist(), strict=True):
            if (threads.of_ops == number).any():
                thread = _computing(index, threads, waits, (number, thread_id))
                known = int(thread.used[-1] - thread.used[0]) if len(thread.used) else 0
                found.append((known + length(*thread.turns), thread))
        found = sorted((entry for entry in found if entry[0]), key=lambda entry: -entry[0])
        several = found[:MAX_THREADS] if len(found) > 1 else []
        self._threads = _with_computing([thread for _, thread in several], index)
        sampled = _times(part for one in self._threads for part in (one.time, one.begin))
        times = _times(part for one in self._threads for part in (sampled, *one.turns))
        self._start, lasts = times[:-1], np.diff(times)
        shape = len(self._threads), len(lasts)
        self._used, self._waited = np.zeros(shape), np.zeros(shape)
        takes_turns = np.zeros(shape, np.bool_)
        for row, thread in enumerate(self._threads):
            self._used[row] = _used(thread, times)
            self._waited[row] = _waited(thread, sampled, times)
            takes_turns[row] = covered_between(*thread.turns, times[:-1], times[1:]) > 0
        # Each of those that take turns gets an equal part, or what the others leave.
        users = np.maximum((takes_turns | (self._used > 0)).sum(axis=0), 1)
        left = lasts - self._used.sum(axis=0)
        equal = np.maximum(left / np.maximum(takes_turns.sum(axis=0), 1), lasts / users)
        self._used = np.where(takes_turns, equal, self._used)
        self._waited = np.where(takes_turns, lasts - equal, self._waited)

    def freed(self, removed: Floats) -> HostTime:
        """Return when threads would no longer wait for the processor.

        `removed` is the part of the time of each op that is left out.
        """
        found, removed = [NO_TIME], np.append(removed, 0.0)
        total, less = self._used.sum(axis=0), np.zeros_like(self._used)
        for row, thread in enumerate(self._threads):
            at = np.searchsorted(thread.begin, self._start, side="right") - 1
            less[row] = self._used[row] * removed[thread.op[at]] * thread.computes[at]
        for row, thread in enumerate(self._threads):
            of_others = less.sum(axis=0) - less[row]
            freed = self._waited[row] * of_others / np.maximum(total - self._used[row], 1.0)
            rows = np.flatnonzero(freed >= 1)
            until = self._start[rows] + freed[rows].astype(np.int64)
            found.append(HostTime(np.full(len(rows), thread.number), self._start[rows], until))
        return HostTime(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _times(parts: Iterable[IntArray]) -> IntArray:
    """Return all times of several arrays, ascending, and the earliest one."""
    return sorted_distinct(np.concatenate([[EARLIEST], *parts]))


def _waited(thread: _Computing, sampled: IntArray, times: IntArray) -> Floats:
    """Return how long a thread was free but not on a processor, as far as samples tell.

    It is known between the `sampled` times, and taken for even between the `times` within them.
    """
    if len(thread.time) < 2:
        return np.zeros(len(times) - 1)
    first, last = thread.time[0], thread.time[-1]
    free, each = (
        covered_between(*thread.free, *(np.clip(part, first, last) for part in (t[:-1], t[1:])))
        for t in (sampled, times)
    )
    part = np.maximum(free - _used(thread, sampled), 0) / np.maximum(free, 1)
    at = np.searchsorted(sampled, times[:-1], side="right") - 1
    waited: Floats = part[np.minimum(at, len(part) - 1)] * each
    return waited


def _used(thread: _Computing, times: IntArray) -> Floats:
    """Return the processor time of a thread between times, as far as samples tell."""
    if len(thread.time) < 2:
        return np.zeros(len(times) - 1)
    used: Floats = np.diff(np.interp(times, thread.time, thread.used))
    return used


def _computing(
    index: ProfileIndex, threads: Threads, joins: Joins, thread: tuple[int, int]
) -> _Computing:
    number, thread_id = thread
    samples, waits = (index.profile.tables[name] for name in ("host_samples", "thread_waits"))
    rows = np.flatnonzero(
        (samples["processor_ns"] != MISSING) & (samples["thread_id"] == thread_id)
    )
    time, used = samples["start_ns"][rows], samples["processor_ns"][rows]
    begin, op = innermost_ops(index, threads, number)
    if len(rows) and used[0] <= time[0] - begin[1]:  # it is not older than its first op
        time, used = np.append(begin[1], time), np.append(0, used)
    if len(time) < 2:
        time, used = time[:0], used[:0]
    known = known_waits(index, threads, number, thread_id)
    of_thread, joined = waits["thread_id"] == thread_id, joins.thread == number
    idle = union_of([
        known,
        (waits["start_ns"][of_thread], waits["end_ns"][of_thread]),
        (joins.start[joined], joins.end[joined]),
        (time[:1], time[-1:]),
    ])  # fmt: skip
    runs = np.append(~suspended_ops(index), False)[op]
    until = np.append(begin[1:], LATEST)
    turns = intersection(union(begin[runs], until[runs]), complement(*idle, EARLIEST, LATEST))
    if not has_gil(index):
        turns = _NONE, _NONE
    free = complement(*known, EARLIEST, LATEST)
    return _Computing(number, time, used, begin, op, np.zeros(len(op), np.bool_), free, turns)


def has_gil(index: ProfileIndex) -> bool:
    """Return whether a profile is of a process with Python."""
    return "python" in index.profile.info.get("versions", {})


def innermost_ops(index: ProfileIndex, threads: Threads, number: int) -> tuple[IntArray, IntArray]:
    """Return when which op became the innermost one of a thread."""
    rows = np.flatnonzero(threads.of_ops == number)
    parent = index.tree.parent[rows]
    parent = np.where(np.append(threads.of_ops, MISSING)[parent] == number, parent, -1)
    start, end = threads.op_start[rows], threads.op_end[rows]
    times = np.concatenate([[EARLIEST], end, start])
    op = np.concatenate([[-1], parent, rows])
    kind = np.repeat([0, 1, 2], [1, len(rows), len(rows)])
    longest = np.concatenate([[0], end - start, start - end])  # the outer one begins first
    order = np.lexsort((longest, kind, times))
    return times[order], op[order]


def _with_computing(threads: list[_Computing], index: ProfileIndex) -> list[_Computing]:
    """Return the threads with which ops compute, by name, as samples may miss a short one."""
    names = np.append(index.profile.tables["ops"].names("name").codes, MISSING)
    count = int(names.max(initial=MISSING)) + 2
    used, sampled, opened = (np.zeros(count) for _ in range(3))
    for thread in threads:
        own = names[thread.op] + 1
        times = np.append(thread.begin, LATEST)
        turns = covered_between(*thread.turns, times[:-1], times[1:])
        opened += np.bincount(own, turns, minlength=count)
        if len(thread.time):
            inside = np.clip(times, thread.time[0], thread.time[-1])
            free = covered_between(*thread.free, inside[:-1], inside[1:])
            used += np.bincount(own, _used(thread, inside), minlength=count)
            sampled += np.bincount(own, free, minlength=count)
    # An op may wait for its first turn in the few samples that it has.
    computes = (used * _COMPUTES > sampled) | (sampled < opened)
    computes[0] = False
    return [thread._replace(computes=computes[names[thread.op] + 1]) for thread in threads]
