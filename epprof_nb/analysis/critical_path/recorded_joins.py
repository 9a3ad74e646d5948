"""Recorded waits of a thread for another one, as in ``Thread.join`` and ``Event.wait``."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.critical_path.columns import spans
from epprof_nb.analysis.critical_path.thread_joins import Joins, open_times
from epprof_nb.arrays.intervals import LATEST, covered_between, intersection, union
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.schema import SLEEP

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.columns import Rows
    from epprof_nb.analysis.critical_path.threads import Threads
    from epprof_nb.arrays.types import BoolArray, IntArray


class _Waits(NamedTuple):
    """Waits of threads for others, as columns."""

    start: IntArray
    end: IntArray
    thread: IntArray
    other: IntArray


def recorded_joins(
    index: ProfileIndex, threads: Threads, own_until: IntArray, left_out: BoolArray | None = None
) -> Joins:
    """Return the recorded waits of threads, while the other one works or waits itself.

    Where nothing is known of the other thread, the wait is time of the one that waits. `own_until`
    is until when each thread takes the time between its ops, by number. The end of each wait is an
    own entry without length: it depends on all that the other one has done, also if that is a wait
    only with other durations. `left_out` are rows of ``thread_waits`` that are no waits.
    """
    waits = _known(index, threads, left_out)
    found = []
    pairs = np.unique(np.stack([waits.thread, waits.other], axis=1), axis=0)
    for waiting, other in pairs.tolist():
        own = (waits.thread == waiting) & (waits.other == other)
        its = waits.thread == other
        work = open_times(index, threads.of_ops == other, threads.of_calls == other)
        begun = work[0][work[0] < own_until[other]][:1]  # nothing between ops is unknown then
        busy = union(
            np.concatenate([work[0], waits.start[its], begun]),
            np.concatenate([work[1], waits.end[its], np.full(len(begun), own_until[other])]),
        )
        of_pair = union(waits.start[own], waits.end[own])
        start, end = intersection(of_pair, busy)
        until = of_pair[1][np.searchsorted(of_pair[0], start, side="right") - 1]
        # A thread that has done nothing yet has no time of its own: its begin was waited for.
        ends = waits.end[own]
        ends = ends[ends > min(busy[0][:1], default=LATEST)]
        found.append(np.stack([np.append(times, ends) for times in (start, end, until)]))
    sizes = [times.shape[1] for times in found]
    start, end, until = np.concatenate([np.empty((3, 0), np.int64), *found], axis=1)
    thread, other = np.repeat(pairs, sizes, axis=0).T.astype(np.int32)
    joins = Joins(start, end, thread, np.full(len(start), MISSING, np.int32), other)
    # A thread may wait for one that waits itself until then: its wait ends first.
    return joins.take(np.argsort(until, kind="stable"))


def _known(index: ProfileIndex, threads: Threads, left_out: BoolArray | None) -> _Waits:
    """Return the waits that another thread ended, from the first try of each on.

    A thread may wait in vain several times, as with a time limit in a loop.
    """
    table = index.profile.tables["thread_waits"]
    starts, ends = spans(table)
    thread, other = (threads.numbers_of(table[f"{part}thread_id"]) for part in ("", "other_"))
    is_known = (other != MISSING) & (other != thread)
    functions = table.names("function")
    is_sleep = functions.equals(SLEEP)
    if left_out is not None:
        is_known &= ~left_out
    events = np.zeros(len(table), np.int64)
    ops, calls = (index.profile.tables[name] for name in ("ops", "api_calls"))
    for number in np.unique(thread).tolist():
        of_thread, own = thread == number, (threads.of_ops == number, threads.of_calls == number)
        # A stable sort merges the columns, each of which is nearly in order.
        times = np.sort(np.concatenate([
            part[name][rows] for part, rows in zip((ops, calls), own, strict=True)
            for name in ("start_ns", "end_ns")
        ]), kind="stable")  # fmt: skip
        events[of_thread] = np.searchsorted(times, starts[of_thread], side="right")
    order = np.lexsort((starts, thread))
    order = order[~is_sleep[order]]
    known = np.cumsum(is_known[order]) - is_known[order]
    # Tries that follow each other without any other event of the thread, up to one that succeeds.
    tries = np.stack([thread[order], events[order], known])
    is_first = (np.diff(tries, axis=1, prepend=MISSING - 1) != 0).any(axis=0)
    begun = starts[order][np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))]
    waits = _Waits(starts, ends, thread, np.where(is_known, other, MISSING))
    in_vain = ~is_sleep & (table["other_thread_id"] == MISSING)
    other = _also_in_vain(waits, functions.codes, in_vain)
    kept = other[order] != MISSING
    order, begun = order[kept], begun[kept]
    return _Waits(begun, ends[order], thread[order], other[order])


def _also_in_vain(waits: _Waits, function: Rows, in_vain: BoolArray) -> IntArray:
    """Return which thread ended each wait, or the next wait of its kind if it timed out.

    A thread that does something again and again until an event is set waits for the thread that
    sets it, however often its waits time out before. The wait that does not is a shorter one, and
    this thread does not wait for the other one meanwhile.
    """
    start, end, thread, other = waits
    found = other.copy()
    rows = np.flatnonzero(in_vain | (other != MISSING))
    rows = rows[np.lexsort((start[rows], function[rows], thread[rows]))]
    count = len(rows)
    ended = np.where(other[rows] != MISSING, np.arange(count), count)
    following = np.append(rows, MISSING)[np.minimum.accumulate(ended[::-1])[::-1]]
    same = (following != MISSING) & (other[rows] == MISSING)
    rows, following = rows[same], following[same]
    same = (thread[rows] == thread[following]) & (function[rows] == function[following])
    same &= end[following] - start[following] <= end[rows] - start[rows]
    rows, following = rows[same], following[same]
    for waiting, cause in np.unique(np.stack([thread[rows], other[following]], axis=1), axis=0):
        back = (thread == cause) & (other == waiting)
        tries = rows[(thread[rows] == waiting) & (other[following] == cause)]
        mutual = covered_between(*union(start[back], end[back]), start[tries], end[tries])
        found[tries[mutual == 0]] = cause
    return found
