"""Code that computes while other threads want to: they share the GIL, or the cores.

Nothing records who has the GIL. But samples have the processor time of each thread. A thread with
less of it than an op of it was open, of which nothing says what it waited for, may have waited for
the others that computed meanwhile, for each in proportion to its processor time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.critical_path.changes import NO_TIME, HostTime
from epprof_nb.analysis.critical_path.idle_time import MAX_THREADS, known_waits
from epprof_nb.arrays.intervals import EARLIEST, LATEST, complement, covered_between
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.threads import Threads
    from epprof_nb.arrays.types import IntArray

    Floats = npt.NDArray[np.float64]

_COMPUTES = 8
"""Time of an op in units of its processor time, up to which it computes: others wait or sleep."""


class _Computing(NamedTuple):
    """The processor time of a thread.

    Attributes
    ----------
    number
        The number of the thread.
    time, used
        Times, and the processor time until then.
    begin, op
        When an op, or no op (`MISSING`), became the innermost one of the thread.
    computes
        For each `begin`, whether this op computes.
    free
        When the thread waited for nothing that is known, as starts and ends.
    """

    number: int
    time: IntArray
    used: IntArray
    begin: IntArray
    op: IntArray
    computes: npt.NDArray[np.bool_]
    free: tuple[IntArray, IntArray]


class SharedProcessor:
    """The processor time of the threads of a profile with the most of it."""

    def __init__(self, index: ProfileIndex, threads: Threads) -> None:
        samples = index.profile.tables["host_samples"]
        is_known = samples["processor_ns"] != MISSING
        found = []
        for number, thread_id in zip(threads.numbers.tolist(), threads.ids.tolist(), strict=True):
            rows = np.flatnonzero(is_known & (samples["thread_id"] == thread_id))
            if len(rows) > 1 and (threads.of_ops == number).any():
                times, used = samples["start_ns"][rows], samples["processor_ns"][rows]
                found.append((int(used[-1] - used[0]), (number, thread_id), (times, used)))
        found.sort(key=lambda entry: -entry[0])
        several = found[:MAX_THREADS] if len(found) > 1 else []
        of_threads = [_computing(index, threads, *entry[1:]) for entry in several]
        self._threads = _with_computing(of_threads, index)

    def freed(self, removed: Floats) -> HostTime:
        """Return when threads would no longer wait for the processor.

        `removed` is the part of the time of each op that is left out.
        """
        found, removed = [NO_TIME], np.append(removed, 0.0)
        for thread in self._threads:
            others = [other for other in self._threads if other is not thread]
            if not any((removed[other.op] * other.computes).any() for other in others):
                continue
            times = np.unique(np.concatenate([
                part for one in self._threads for part in (one.time, one.begin)
            ]))  # fmt: skip
            start, end = times[:-1], times[1:]
            waited = covered_between(*thread.free, start, end) - _used(thread, times)
            total, less = np.zeros(len(start)), np.zeros(len(start))
            for other in others:
                at = np.searchsorted(other.begin, start, side="right") - 1
                used = _used(other, times)
                total += used
                less += used * removed[other.op[at]] * other.computes[at]
            freed = np.maximum(waited, 0.0) * less / np.maximum(total, 1.0)
            rows = np.flatnonzero(freed >= 1)
            until = start[rows] + freed[rows].astype(np.int64)
            found.append(HostTime(np.full(len(rows), thread.number), start[rows], until))
        return HostTime(*(np.concatenate(column) for column in zip(*found, strict=True)))


def _used(thread: _Computing, times: IntArray) -> Floats:
    """Return the processor time of a thread between times."""
    used: Floats = np.diff(np.interp(times, thread.time, thread.used))
    return used


def _computing(
    index: ProfileIndex, threads: Threads, thread: tuple[int, int], samples: tuple[IntArray, ...]
) -> _Computing:
    (number, thread_id), (time, used) = thread, samples
    begin, op = _innermost(index, threads, number)
    if used[0] <= time[0] - begin[1]:  # the thread is not older than its first op
        time, used = np.append(begin[1], time), np.append(0, used)
    waits = known_waits(index, threads, number, thread_id)
    free = complement(*waits, EARLIEST, LATEST)
    return _Computing(number, time, used, begin, op, np.zeros(len(op), np.bool_), free)


def _innermost(index: ProfileIndex, threads: Threads, number: int) -> tuple[IntArray, IntArray]:
    """Return when which op became the innermost one of a thread."""
    rows = np.flatnonzero(threads.of_ops == number)
    parent = index.tree.parent[rows]
    parent = np.where(np.append(threads.of_ops, MISSING)[parent] == number, parent, -1)
    start, end = threads.op_start[rows], threads.op_end[rows]
    times = np.concatenate([[EARLIEST], end, start])
    op = np.concatenate([[-1], parent, rows])
    kind = np.repeat([0, 1, 2], [1, len(rows), len(rows)])
    length = np.concatenate([[0], end - start, start - end])  # the outer one begins first
    order = np.lexsort((length, kind, times))
    return times[order], op[order]


def _with_computing(threads: list[_Computing], index: ProfileIndex) -> list[_Computing]:
    """Return the threads with which ops compute, by name, as samples may miss a short one."""
    names = np.append(index.profile.tables["ops"].names("name").codes, MISSING)
    count = int(names.max(initial=MISSING)) + 2
    used, opened = np.zeros(count), np.zeros(count)
    for thread in threads:
        times = np.append(thread.begin, LATEST)
        inside = np.clip(times, thread.time[0], thread.time[-1])
        own = names[thread.op] + 1
        used += np.bincount(own, _used(thread, inside), minlength=count)
        opened += np.bincount(own, covered_between(*thread.free, inside[:-1], inside[1:]), count)
    computes = used * _COMPUTES > opened
    computes[0] = False
    return [thread._replace(computes=computes[names[thread.op] + 1]) for thread in threads]
