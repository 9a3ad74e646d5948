"""Orders in which threads that come to a lock at once may get it.

The replay keeps the recorded order. But of threads that come at once, as after a barrier, any may
be the last one, and with other durations another one often is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.critical_path.changed_durations import HostTime
from epprof_nb.analysis.critical_path.columns import spans
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.threads import Threads
    from epprof_nb.arrays.types import BoolArray, IntArray

_AT_ONCE_NS = 100_000
"""Time within which threads come at once: they have to wake up."""


class LastTurns(NamedTuple):
    """Waits for locks, if each thread that came with others were the last to get the lock.

    Attributes
    ----------
    rows
        Boolean array: the rows of ``thread_waits`` of these locks.
    waits
        These waits.
    added_ns
        int64 array: how long the threads would wait, added to the op that ends after it.
    """

    rows: BoolArray
    waits: HostTime
    added_ns: IntArray


class _Wait(NamedTuple):
    row: int
    thread: int
    other: int
    start: int
    end: int


def last_turns(index: ProfileIndex, threads: Threads) -> LastTurns:
    """Return the waits of threads that came to a lock at once."""
    added, kept = np.zeros(len(index.tree), np.int64), list[_Wait]()
    events = _Events(index, threads)
    for group in _groups(_lock_waits(index, threads)):
        first = group[0]  # the other thread did not have to wait
        came = events.before(first.other, first.start)
        if max(wait.start for wait in group) - came > _AT_ONCE_NS:
            continue
        kept += group
        longest = max(wait.end - wait.start for wait in group)
        for thread, got in ((first.other, first.start), *((w.thread, w.end) for w in group)):
            if (op := events.op_ending_after(thread, got)) != MISSING:
                added[op] += longest
    rows = np.zeros(len(index.profile.tables["thread_waits"]), np.bool_)
    rows[[wait.row for wait in kept]] = True
    columns = np.array([(w.thread, w.start, w.end) for w in kept], np.int64).reshape(-1, 3).T
    return LastTurns(rows, HostTime(*columns), added)


def _lock_waits(index: ProfileIndex, threads: Threads) -> list[_Wait]:
    """Return the waits for locks that another thread released, by their ends."""
    table = index.profile.tables["thread_waits"]
    start, end = spans(table)
    thread, other = (threads.numbers_of(table[f"{part}thread_id"]) for part in ("", "other_"))
    function = table.names("function")
    is_lock = function.equals("Lock.acquire") | function.equals("RLock.acquire")
    rows = np.flatnonzero(is_lock & (other != MISSING) & (other != thread))
    rows = rows[np.argsort(end[rows], kind="stable")]
    columns = (rows, thread[rows], other[rows], start[rows], end[rows])
    return [_Wait(*wait) for wait in zip(*(c.tolist() for c in columns), strict=True)]


def _groups(waits: list[_Wait]) -> list[list[_Wait]]:
    """Return the waits in which a lock went from one thread to the next."""
    groups: list[list[_Wait]] = []
    last_of: dict[int, list[_Wait]] = {}  # the group of the last wait of a thread
    for wait in waits:
        group = last_of.get(wait.other)
        # The other thread got the lock while this one waited.
        if group is None or group[-1].thread != wait.other or wait.start >= group[-1].end:
            group = []
            groups.append(group)
        group.append(wait)
        last_of[wait.thread] = group
    return groups


class _Events:
    """Events of the threads."""

    def __init__(self, index: ProfileIndex, threads: Threads) -> None:
        waits = index.profile.tables["thread_waits"]
        self._waiting, self._ends = threads.numbers_of(waits["thread_id"]), spans(waits)[1]
        self._threads = threads
        self._found: dict[int, tuple[IntArray, IntArray]] = {}

    def before(self, thread: int, time: int) -> int:
        """Return the last time until `time` of an event of a thread; long ago for none."""
        times, _ = self._of(thread)
        at = int(np.searchsorted(times, time, side="right"))
        return int(times[at - 1]) if at else time - 2 * _AT_ONCE_NS

    def op_ending_after(self, thread: int, time: int) -> int:
        """Return the first op of a thread that ends after `time`; `MISSING` for none."""
        _, ops = self._of(thread)
        at = int(np.searchsorted(self._threads.op_end[ops], time, side="right"))
        return int(ops[at]) if at < len(ops) else MISSING

    def _of(self, thread: int) -> tuple[IntArray, IntArray]:
        """Return when a thread did anything, and its ops by their ends."""
        if thread not in self._found:
            ops = np.flatnonzero(self._threads.of_ops == thread)
            starts, ends = self._threads.op_start[ops], self._threads.op_end[ops]
            times = np.concatenate([starts, ends, self._ends[self._waiting == thread]])
            self._found[thread] = np.sort(times), ops[np.argsort(ends, kind="stable")]
        return self._found[thread]
