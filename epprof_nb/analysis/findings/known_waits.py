"""Waits of code for another thread, a lock or the clock: who was waited for, and what it ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.base.op_totals import self_host_ns
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.base.thread_labels import thread_names
from epprof_nb.analysis.base.time_off_cores import time_off_cores, used_by_other_threads
from epprof_nb.analysis.base.waiting_frames import FOR_PROCESSES, OF_EVENT_LOOPS, waiting_samples
from epprof_nb.analysis.findings.finding import code, launcher_name, place_name
from epprof_nb.analysis.findings.host_code_name import host_code_name
from epprof_nb.analysis.findings.host_waits import CALL_REMEDY, wait_remedy
from epprof_nb.analysis.utilisation.sampled_host import samples_within
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.ids import unique_values
from epprof_nb.arrays.intervals import contain, covered_between, union
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.schema import SLEEP

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

_LOCKS = ("Lock.acquire", "RLock.acquire")
_SLEEP_REMEDY = (
    "This code sleeps: it does no work. Sleep for less time, or do other work meanwhile."
)
_LOCK_REMEDY = (
    "This code waits for a lock. Hold the lock for less time in the other threads, or do other "
    "work meanwhile."
)
_ALONE_REMEDY = (
    "This code waits while the process has no other thread: for a time limit or another process. "
    "Shorten what it waits for, or do other work meanwhile."
)
_LOOP_REMEDY = (
    "This code waits until a coroutine can go on: for a timer, the network or a process. Begin to "
    "wait for more of these at once (`asyncio.gather`, `asyncio.create_task`)."
)


class KnownWait(NamedTuple):
    """A wait that most of the time of some code was: how the sentence on it goes on, and ends."""

    text: str
    remedy: str


def waits_of_ops(index: ProfileIndex) -> tuple[IntArray, IntArray]:
    """Return op, `MISSING` for none, and time in ns of each row of ``thread_waits``."""
    waits = index.profile.tables["thread_waits"]
    op = index.tree.open_op_at(waits["thread_id"], waits["start_ns"])
    return op, np.maximum(waits["end_ns"] - waits["start_ns"], 0)


def ops_of_samples(index: ProfileIndex) -> IntArray:
    """Return the row of the op in which each sample is; `MISSING` for none."""
    samples = index.profile.tables["host_samples"]
    return index.tree.open_op_at(samples["thread_id"], samples["start_ns"])


def wait_of_function(
    index: ProfileIndex, stack: int, start_ns: IntArray, end_ns: IntArray, total_ns: float
) -> KnownWait | None:
    """Return the wait that at least half of the time of a function of the user was, or None.

    `stack` is a row of ``stacks``, a frame of the function; only samples in the intervals count.
    """
    samples = index.profile.tables["host_samples"]
    lines, rows = index.cached(StackLines), samples_within(index, start_ns, end_ns)
    own = lines.own[samples["stack_id"][rows]]
    is_function = (own >= 0) & (lines.file.codes[own] == lines.file.codes[stack])
    is_function &= lines.function.codes[own] == lines.function.codes[stack]
    rows = rows[is_function]
    wait, time = index.cached(waits_of_samples)[rows], np.zeros(_count(index), np.int64)
    np.add.at(time, wait[wait >= 0], samples["interval_ns"][rows[wait >= 0]])
    found = np.flatnonzero(time)
    known = _known_wait(index, found, time[found], total_ns)
    return known or _while_others_ran(index, rows)


def waits_of_samples(index: ProfileIndex) -> IntArray:
    """Return the row of ``thread_waits`` in which each sample is; `MISSING` for none."""
    waits, samples = (index.profile.tables[name] for name in ("thread_waits", "host_samples"))
    found = np.full(len(samples), MISSING, np.int64)
    for thread in np.unique(samples["thread_id"]).tolist():
        of_thread = np.flatnonzero(waits["thread_id"] == thread)
        of_thread = of_thread[np.argsort(waits["start_ns"][of_thread], kind="stable")]
        rows = np.flatnonzero(samples["thread_id"] == thread)
        at = np.searchsorted(waits["start_ns"][of_thread], samples["start_ns"][rows], "right")
        rows, row = rows[at > 0], of_thread[at[at > 0] - 1]
        inside = samples["start_ns"][rows] < waits["end_ns"][row]
        found[rows[inside]] = row[inside]
    return found


def _count(index: ProfileIndex) -> int:
    return len(index.profile.tables["thread_waits"])


def _known_wait(
    index: ProfileIndex, waits: IntArray, time: IntArray, total_ns: float
) -> KnownWait | None:
    """Return the recorded wait that at least half of the time of some code was, or None.

    Parameters
    ----------
    index
        Index of the profile.
    waits, time
        int64 arrays: rows of ``thread_waits``, those of the code, and its time in each, ns.
    total_ns
        Time that the code took, the sum over its threads.
    """
    table = index.profile.tables["thread_waits"].take(waits)
    if not len(table) or 2 * int(time.sum()) < total_ns:
        return None
    names = table.names("function")
    codes, of_row = np.unique(names.codes, return_inverse=True)
    main = int(np.bincount(of_row, time).argmax())
    function = names.categories[codes[main]] if codes[main] >= 0 else ""
    if function == SLEEP:
        return KnownWait(f", mostly in {code(SLEEP)}", _SLEEP_REMEDY)
    is_lock = function in _LOCKS
    text = ", mostly to wait for " + ("a lock" if is_lock else "another thread")
    chosen = (of_row == main) & (table["other_thread_id"] != MISSING)
    awaited, of_thread = np.unique(table["other_thread_id"][chosen], return_inverse=True)
    if len(awaited):
        longest = int(np.bincount(of_thread, time[chosen]).argmax())
        rows, thread = np.flatnonzero(chosen)[of_thread == longest], int(awaited[longest])
        start, end = union(table["start_ns"][rows], table["end_ns"][rows])
        label = _label(index, thread, len(awaited))
        text = f", mostly to wait for {'a lock of ' if is_lock else ''}{label}"
        ran = _ran(index, thread, start, end)
        text += f", which ran {ran}" if ran else ""
    elif not is_lock and _is_only_thread(index, table["thread_id"]):
        return KnownWait(f", mostly in {code(function)}", _ALONE_REMEDY)
    return KnownWait(text, _LOCK_REMEDY if is_lock else CALL_REMEDY)


def _while_others_ran(index: ProfileIndex, rows: IntArray) -> KnownWait | None:
    """Return the wait that code was mostly in while other threads of the process ran, or None.

    Nothing records which thread has the GIL: between recorded waits, samples show that the code
    waited, but not for a core, and the load that other threads used one. `rows` are the samples of
    the code.
    """
    samples, off = index.profile.tables["host_samples"], index.cached(time_off_cores)
    if not len(rows):
        return None
    waits = index.cached(waits_of_samples)[rows]
    is_between, interval = waits == MISSING, samples["interval_ns"][rows]
    blocked, queued = (int(part[rows].sum(where=is_between)) for part in (off.blocked, off.queued))
    recorded = int(interval.sum(where=~is_between))
    own = unique_values(samples["thread_id"][rows])
    if 2 * (recorded + blocked) < int(interval.sum()) - queued or not blocked:
        return None
    if 2 * used_by_other_threads(index, own) < blocked:
        return None
    of_process = waiting_samples(index, FOR_PROCESSES)[rows]
    if 2 * int(off.blocked[rows].sum(where=is_between & of_process)) >= blocked:
        return KnownWait(", mostly to wait for another process", wait_remedy(index))
    start, end = union(samples["start_ns"][rows] - interval, samples["start_ns"][rows])
    is_other = ~np.isin(samples["thread_id"], own) & (off.used > 0)
    is_other &= contain(start, end, samples["start_ns"])
    threads, of_thread = np.unique(samples["thread_id"][is_other], return_inverse=True)
    if not len(threads):
        return KnownWait(", mostly to wait while other threads ran", CALL_REMEDY)
    thread = int(threads[np.bincount(of_thread, off.used[is_other]).argmax()])
    label, ran = _label(index, thread, len(threads)), _ran(index, thread, start, end)
    return KnownWait(f", mostly to wait while {label} ran{' ' + ran if ran else ''}", CALL_REMEDY)


def _label(index: ProfileIndex, thread: int, count: int) -> str:
    """Return the name of a thread, and how many others there are of `count`."""
    name = thread_names(index.profile.info).get(thread)
    more = f" and {count - 1} more" if count > 1 else ""
    return (code(name) if name else f"thread {thread}") + more


def _is_only_thread(index: ProfileIndex, threads: IntArray) -> bool:
    """Return whether no threads but these were recorded."""
    profile, known = index.profile, set(thread_names(index.profile.info))
    for name in ("ops", "thread_waits", "host_samples"):
        known |= set(np.unique(profile.tables[name]["thread_id"]).tolist())
    return known <= {MISSING, *threads.tolist()}


def wait_of_statements(index: ProfileIndex, rows: IntArray, total_ns: float) -> KnownWait | None:
    """Return the wait that at least half of the time of some statements was, or None.

    Parameters
    ----------
    index
        Index of the profile.
    rows
        int64 array: rows of ``ops``.
    total_ns
        Time that they took, the sum over their threads.
    """
    op, time = index.cached(waits_of_ops)
    waits = np.flatnonzero(np.isin(op, rows))
    found = _known_wait(index, waits, time[waits], total_ns)
    found = found or _wait_in_event_loop(index, rows, total_ns)
    return found or _while_others_ran(
        index, np.flatnonzero(np.isin(index.cached(ops_of_samples), rows))
    )


def _wait_in_event_loop(index: ProfileIndex, rows: IntArray, total_ns: float) -> KnownWait | None:
    ops, samples = index.profile.tables["ops"], index.profile.tables["host_samples"]
    within = samples_within(index, ops["start_ns"][rows], ops["end_ns"][rows])
    waits = waiting_samples(index, OF_EVENT_LOOPS)[within]
    if 2 * int(samples["interval_ns"][within][waits].sum()) < total_ns or not waits.any():
        return None
    return KnownWait(", mostly to wait in the event loop", _LOOP_REMEDY)


def _ran(index: ProfileIndex, thread: int, start: IntArray, end: IntArray) -> str:
    """Return the name of the line that a thread ran for most of some disjoint intervals."""
    ops, samples = index.profile.tables["ops"], index.profile.tables["host_samples"]
    rows = np.flatnonzero((ops["thread_id"] == thread) & (ops["line"] != MISSING))
    if len(rows):
        inside = covered_between(start, end, ops["start_ns"][rows], ops["end_ns"][rows])
        own = np.minimum(self_host_ns(ops, index.tree.parent)[rows], inside)
        if own.any():
            places = index.cached(Places)
            at = places.of_op[rows]
            top = int(sum_by_group(at, own, places.count)[:-1].argmax())
            return place_name(index, int(rows[at == top][own[at == top].argmax()]))
    taken = np.flatnonzero(samples["thread_id"] == thread)
    at = np.searchsorted(start, samples["start_ns"][taken], side="right") - 1
    taken = taken[(at >= 0) & (samples["start_ns"][taken] < end[at])]
    stack = samples["stack_id"][taken]
    stack = stack[stack >= 0]
    own = index.cached(StackLines).own[stack]
    if (own >= 0).any():
        return launcher_name(index, int(np.bincount(own[own >= 0]).argmax()), MISSING)
    return host_code_name(index, int(np.bincount(stack).argmax()) if len(stack) else MISSING)
