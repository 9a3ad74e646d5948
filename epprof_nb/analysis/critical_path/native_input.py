"""Input of the critical path: ops, calls and activities as columns for the native core.

The rules by which one event waits for another are in this folder, in
``native/analysis/critical_path.cpp`` and ``critical_path_lanes.h``:

* A host thread works through its ops and API calls in order. A thread without an open op starts
  when the thread of the cell has reached that time, unless its waits are recorded.
* An activity waits for its launch and for earlier work on its stream. The nodes of a graph replay
  are on the stream of its first node.
* After a stream waits for an event, its next activity waits for the last work that was launched on
  the stream of the event before the call that recorded it. If that call is unknown, it waits for
  the last-ending work of another stream that was launched before.
* A synchronization, and a copy of pageable memory, waits for the event, stream or context.
* While another thread works for an op of a thread, and that thread does nothing of its own, it
  waits for the other one, as in PyTorch's backward pass.
* A thread in ``Thread.join``, or in ``Condition.wait``, which events and queues use, or for a lock,
  waits for the thread that ended, that notified it, or that released the lock.
* Where no such wait was recorded, a thread that samples find in these functions waits for the work
  of other threads that ends meanwhile.
* An event loop that is idle until a suspended op goes on waits for a time after this op began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import proxy

import numpy as np

from epprof_nb import _native
from epprof_nb.analysis.critical_path.awaited_work import (
    NO_WAIT,
    OP,
    THREAD,
    TIME,
    EventMarks,
    event_waits,
    waiting_calls,
)
from epprof_nb.analysis.critical_path.changed_durations import Owners
from epprof_nb.analysis.critical_path.columns import MAX_NS, row_order, spans
from epprof_nb.analysis.critical_path.exclusive_ops import exclusive_joins
from epprof_nb.analysis.critical_path.gil_of_python_kernels import PythonKernels
from epprof_nb.analysis.critical_path.idle_threads import (
    MAX_THREADS,
    idle_joins,
    idle_times,
    waits_of,
)
from epprof_nb.analysis.critical_path.kernel_ops import kernel_ops
from epprof_nb.analysis.critical_path.lanes import lanes_of
from epprof_nb.analysis.critical_path.launches import (
    after_launch,
    call_ops,
    calls_of,
    usual_latency,
)
from epprof_nb.analysis.critical_path.lock_order import last_turns
from epprof_nb.analysis.critical_path.own_time import NO_OWN_TIME, own_time_until
from epprof_nb.analysis.critical_path.recorded_joins import recorded_joins
from epprof_nb.analysis.critical_path.sampled_joins import sampled_joins
from epprof_nb.analysis.critical_path.shared_gil_and_cores import SharedProcessor
from epprof_nb.analysis.critical_path.thread_joins import thread_joins
from epprof_nb.analysis.critical_path.threads import Threads
from epprof_nb.analysis.critical_path.timers import timer_joins
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.cached import KeyedCache, cached_property, weakly

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.changed_durations import Changes, HostTime, Removed
    from epprof_nb.analysis.critical_path.columns import Columns, Rows
    from epprof_nb.analysis.critical_path.idle_threads import Idle
    from epprof_nb.analysis.critical_path.lock_order import LastTurns
    from epprof_nb.analysis.critical_path.thread_joins import Joins
    from epprof_nb.arrays.types import BoolArray, IntArray

_NONE = np.empty(0, np.int64)
_NO_CHANGE, _NO_FACTORS = np.empty(0, np.uint8), np.empty(0, np.float64)
_NOT_REMOVED = np.empty(0, np.bool_)
_NOTHING_REMOVED: Columns = (
    _NOT_REMOVED, _NOT_REMOVED, *[_NONE] * 2, np.empty(0, np.int32), np.empty(0, np.uint8),
    np.empty(0, np.int32),
)  # fmt: skip
VARIANTS = 8
"""Number of variants that the core computes at once."""
REMOVALS = 4
"""Number of variants without some work that the core computes at once."""
_FREE: npt.NDArray[np.float64] = np.repeat(
    (np.arange(256)[:, None, None] >> np.arange(VARIANTS) & 1) == 0, 3, axis=1
).astype(np.float64)
"""Factors of ops of which bit ``k`` is set if they cost nothing in variant ``k``."""


class CriticalPathInput:
    """Columns of a profile for `epprof_nb._native.critical_path`.

    Parameters
    ----------
    index
        Index of the profile.
    attribution
        Op to which an activity belongs; see `epprof_nb.Profile.by_op`.

    Attributes
    ----------
    activity_op, call_op
        int32 arrays: row of the op of each activity and of each API call; `MISSING` for none.
    span_ns
        Time from the start of the profile to its end or to the last event.
    home_thread
        Operating-system id of the thread of the cell; `MISSING` without ops and calls.
    """

    def __init__(self, index: ProfileIndex, attribution: Attribution = "launch") -> None:
        tables = index.profile.tables
        self.activity_op = index.attributed_op(attribution).astype(np.int32, copy=False)
        call = calls_of(index)
        self.call_op = call_ops(index.call_op, call, self.activity_op)
        start, end = spans(tables["activities"])
        call_start, call_end = spans(tables["api_calls"])
        order = row_order(start)
        self._latency = usual_latency(start, end, order, call, call_start)
        recorded, start = start, after_launch(start, call, call_start)
        end = end if (end >= start).all() else np.maximum(start, end)
        lane, self._contexts, streams = lanes_of(index, call, start)
        is_work = np.where(index.is_device_work, lane, np.int32(MISSING))
        events = EventMarks(index, lane, streams)
        self._activities: Columns = (
            start, end, _NONE, _NONE, is_work, call, self.activity_op, events.mark_of_activity,
            order if start is recorded else row_order(start),
        )  # fmt: skip
        call_wait, call_lane = waiting_calls(index, call, lane, end, events)
        self._waits = event_waits(index, call, lane, events)
        threads = Threads(index, call_start)
        self._threads, self._home = threads.count, threads.home
        self._ends_with_home = threads.ends_profile
        self._thread_ids, self._thread_numbers = threads.ids, threads.numbers
        homes = threads.ids[threads.numbers == threads.home]
        self.home_thread = int(homes[0]) if len(homes) else MISSING
        joins = thread_joins(index, threads)
        self._own_until = own_time_until(index, threads)
        sampled = sampled_joins(index, threads)
        calls: Columns = (
            call_start, call_end, threads.of_calls, self.call_op, call_lane, call_wait
        )  # fmt: skip

        self._index, self._host_threads = proxy(index), threads  # it keeps this object
        self._joins, self._sampled = joins, sampled
        self._recorded_calls = calls
        self._work_in: KeyedCache[int, Joins] = KeyedCache(weakly(self._compute_work_in))
        self._timers = timer_joins(index, threads)
        self._calls_without_timers = self._with_waits()
        self._calls = self._with_timers(self._calls_without_timers)
        parent = index.tree.parent.astype(np.int32)
        op_order = (row_order(threads.op_start), row_order(threads.op_end))
        self._ops: Columns = (
            threads.op_start, threads.op_end, threads.of_ops, parent, *op_order, _NONE,
        )  # fmt: skip
        self._start = min(0, *(int(values.min(initial=0)) for values in (start, call_start)))
        last = max(int(values.max(initial=0)) for values in (end, call_end))
        end_ns = min(max(last, index.profile.wall_ns), MAX_NS)
        self.span_ns = end_ns - self._start
        of_host = threads.op_end[~index.cached(kernel_ops)]
        known = max(int(times.max(initial=0)) for times in (call_end, of_host))
        # If device work ends the profile, the host may have ended before.
        ends_with_work = int(end.max(initial=0, where=is_work != MISSING)) >= end_ns
        self._host_end = min(known, end_ns) if ends_with_work else end_ns

    def lengths(self, free: npt.NDArray[np.uint8], owners: Owners | None = None) -> IntArray:
        """Return the length of the path in `VARIANTS` variants, int64 nanoseconds.

        Parameters
        ----------
        free
            uint8 array, one value per op, then one per owner, and one for none: bit ``k`` is set if
            variant ``k`` is without the op or owner: it takes no time, and its calls wait for
            nothing.
        owners
            What activities and calls belong to; None for their ops.
        """
        changed = () if owners is None else self._owned(owners, self._calls)
        found = self._compute(free, _FREE, variants=VARIANTS, changed=changed)
        return np.frombuffer(found["length_ns"], np.int64)

    def length_with(self, host: npt.NDArray[np.float64], device: npt.NDArray[np.float64]) -> int:
        """Return the length of the path with factors of ops' host time and of activities.

        Ops with a factor of 0 do not exist, as in `lengths`.
        """
        values, code = np.unique(np.append(host, 1.0), return_inverse=True)
        exists = np.where(values > 0, 1.0, 0.0)
        start, end, *more = self._activities
        length = np.rint((end - start) * device).astype(np.int64)
        activities: Columns = (start, end, length, *more[1:])
        found = self._compute(
            code.astype(np.uint8),
            np.stack([values, exists, exists], axis=1),
            changed=(self._ops, self._calls, activities),
        )
        return int(np.frombuffer(found["length_ns"], np.int64)[0])

    def lengths_without(self, removals: Sequence[Removed]) -> list[int]:
        """Return the length of the path without calls, activities and time of the host.

        What waits for other work still does: the path is at least as long as what is left. The core
        computes `REMOVALS` lengths at once, unless a part of activities remains.
        """
        lengths = [0] * len(removals)
        shorter = [k for k, removed in enumerate(removals) if len(removed.remains)]
        whole = [k for k in range(len(removals)) if k not in shorter]
        groups = [whole[k : k + REMOVALS] for k in range(0, len(whole), REMOVALS)]
        for group in [*([k] for k in shorter), *groups]:
            found = self._lengths_without([removals[k] for k in group])
            for k, length in zip(group, found.tolist()[: len(group)], strict=True):
                lengths[k] = length
        return lengths

    def _lengths_without(self, removals: list[Removed]) -> IntArray:
        bits = np.array([1 << variant for variant in range(len(removals))], np.uint8)
        of_calls = np.zeros(len(self._calls[0]), np.uint8)
        of_activities = np.zeros(len(self.activity_op), np.uint8)
        activities = self._activities
        for variant, removed in enumerate(removals):
            of_calls[removed.calls] |= bits[variant]
            if len(removed.remains):
                start, end, _, *more = self._activities
                length = end - start
                rows = removed.activities
                length[rows] = (length[rows] * removed.remains).astype(np.int64)
                activities = (start, end, length, *more)
            else:
                of_activities[removed.activities] |= bits[variant]
        times = [(removed.start, removed.end, removed.thread) for removed in removals]
        start, end, thread = map(np.concatenate, zip(*times, strict=True))
        variants = np.repeat(bits, [len(removed.start) for removed in removals])
        start = np.clip(start, self._start, MAX_NS)
        end = np.maximum(start, np.clip(end, self._start, MAX_NS))
        left_out = (start, end, self._numbers(thread), variants, row_order(start))
        found = self._compute(
            variants=1 if len(removals) == 1 else REMOVALS,
            changed=(self._ops, self._calls, activities),
            removed=(of_calls, of_activities, *left_out),
        )
        return np.frombuffer(found["length_ns"], np.int64)

    @cached_property
    def idle_kinds(self) -> list[Idle]:
        """Ends that idle time of threads may have, besides a fixed time."""
        found: list[Idle] = []
        if len(self._timers.start):
            found.append("event loop")
        if len(self._exclusive.start):
            found.append("exclusive")
        if self.last_turns.rows.any():
            found.append("last turn")
        of_ops = self._ops[2]
        workers = of_ops[(of_ops != MISSING) & (of_ops != self._home)]
        workers = workers[self._own_until[workers] == NO_OWN_TIME]
        if len(workers) and (np.bincount(workers) > 1).any():
            found.append("queued")
        idle_ns = {
            number: int((end - start).sum()) for number, (start, end) in self._idle_times.items()
        }
        if idle_ns:
            found.append("until time")
        return [*found, *sorted(idle_ns, key=lambda number: -idle_ns[number])[:MAX_THREADS]]

    def _with_timers(self, calls: Columns) -> Columns:
        """Return the columns of calls with the waits of event loops for suspended ops."""
        if not len(self._timers.start):
            return calls
        return _ordered_calls(*_with_joins(calls[:6], self._timers, OP))

    def _calls_with(self, idle: Idle) -> Columns:
        """Return the columns of the calls and of the waits that do not depend on idle time."""
        if idle == "last turn":
            return self._calls_of_last_turns
        has_timers = idle != "event loop" and not isinstance(idle, int)
        return self._calls if has_timers else self._calls_without_timers

    def _with_idle(self, calls: Columns, idle: Idle) -> Columns:
        """Return the columns of calls with idle time of threads as further calls that wait."""
        if idle == "exclusive":
            joins, wait = self._exclusive, THREAD
        elif idle == "until time":
            joins, wait = waits_of(self._idle_times), TIME
        elif isinstance(idle, int):
            joins, wait = self._work_in[idle], THREAD
        else:
            return calls
        return _ordered_calls(*_with_joins(calls[:6], joins, wait))

    def changed_path(
        self, changes: Changes, owners: Owners, idle: Idle = "fixed"
    ) -> tuple[int, dict[str, npt.NDArray[Any]]]:
        """Return the length of the path with other durations, and its rows as in `path`.

        The rows have the durations in the profile. Time that is left out is in rows of API calls
        behind those of the profile.
        """
        # One more owner, of which nothing exists.
        gone, of_calls = owners.size, owners.of_calls
        if changes.without_waits:
            of_calls = np.where(self.waiting_calls, gone, of_calls).astype(np.int32)
        owners = Owners(owners.of_activities, of_calls, gone + 1)
        of_ops = np.insert(changes.of_ops, -1, np.uint8(len(changes.factors)))
        factors = np.append(changes.factors, [[0.0, 0.0, 0.0]], axis=0)
        ops, calls, activities = self._owned(owners, self._calls_with(idle))
        if len(changes.left_out.start):
            calls = self._with_calls_of(calls, changes.left_out, len(self._ops[0]) + gone)
        if len(changes.added_ns):
            added = np.zeros(len(ops[0]), np.int64)
            added[: len(changes.added_ns)] = changes.added_ns
            ops = (*ops[:-1], added)
        activities = (*activities[:2], changes.activity_ns, changes.freed_ns, *activities[4:])
        calls = self._with_idle(calls, idle)
        found = self._compute(
            of_ops,
            factors,
            rows=True,
            changed=(ops, calls, activities),
            follow_home=idle != "queued",
        )
        return int(np.frombuffer(found["length_ns"], np.int64)[0]), _rows(found)

    @staticmethod
    def _with_calls_of(calls: Columns, time: HostTime, op: int) -> Columns:
        """Return the columns of calls with further ones of an op that take the time of threads."""
        count = len(time.start)
        more: Columns = (
            time.start, time.end, time.thread.astype(np.int32), np.full(count, op, np.int32),
            np.zeros(count, np.int32), np.full(count, NO_WAIT, np.uint8),
        )  # fmt: skip
        return _ordered_calls(*(np.concatenate(pair) for pair in zip(calls[:6], more, strict=True)))

    @cached_property
    def last_turns(self) -> LastTurns:
        """Waits for locks of threads that came at once."""
        return last_turns(self._index, self._host_threads)

    @cached_property
    def shared_processor(self) -> SharedProcessor:
        """The processor time of the threads."""
        joins = self._joins.with_more(self._sampled)
        return SharedProcessor(self._index, self._host_threads, joins)

    @cached_property
    def python_kernels(self) -> PythonKernels:
        """Kernels that may need the GIL."""
        return PythonKernels(self._index, self._host_threads, self.waiting_calls)

    @cached_property
    def _idle_times(self) -> dict[int, tuple[IntArray, IntArray]]:
        return idle_times(self._index, self._host_threads)

    @cached_property
    def _exclusive(self) -> Joins:
        return exclusive_joins(self._index, self._host_threads)

    def _compute_work_in(self, number: int) -> Joins:
        return idle_joins(number, self._idle_times, self._index, self._host_threads)

    @cached_property
    def _calls_of_last_turns(self) -> Columns:
        return self._with_timers(self._with_waits(self.last_turns.rows))

    def _with_waits(self, left_out: BoolArray | None = None) -> Columns:
        """Return the columns of calls with the waits of threads, without those of `left_out`."""
        index, threads = self._index, self._host_threads
        recorded = recorded_joins(index, threads, self._own_until, left_out)
        waits = self._joins.with_more(recorded).with_more(self._sampled)
        return _ordered_calls(*_with_joins(self._recorded_calls, waits))

    @property
    def ops_on_path(self) -> BoolArray:
        """Boolean array: ops whose time is on the path; that of others is in ops around them."""
        listed: BoolArray = self._ops[2] != MISSING
        return listed

    @property
    def waiting_calls(self) -> BoolArray:
        """Boolean array: the API calls that wait for a device."""
        waiting: BoolArray = self._calls[5][: len(self.call_op)] != NO_WAIT
        return waiting

    @cached_property
    def ready(self) -> IntArray:
        """int64 array: when each activity was launched, and earlier work of its stream ended."""
        start, end, _, _, lane, call, *_ = self._activities
        launched = np.append(self._calls[0] + self._latency, -MAX_NS)
        ready = launched[np.where(call >= 0, call, -1)]
        order = np.lexsort((start, lane))
        begins = np.flatnonzero(np.diff(lane[order], prepend=MISSING - 1))
        for rows in np.split(order, begins[1:]):
            ready[rows[1:]] = np.maximum(ready[rows[1:]], np.maximum.accumulate(end[rows])[:-1])
        return ready

    def _numbers(self, thread_ids: IntArray) -> Rows:
        """Return the numbers of threads; of the home thread for one without ops and calls."""
        numbers = np.append(self._thread_numbers, self._home)
        at = np.searchsorted(self._thread_ids, thread_ids)
        is_known = np.append(self._thread_ids, 0)[at] == thread_ids
        return numbers[np.where(is_known, at, -1)].astype(np.int32)

    def path(self) -> dict[str, npt.NDArray[Any]]:
        """Return the rows of the path, from its start to its end.

        Returns
        -------
        columns
            ``step`` (uint8, see `epprof_nb.analysis.critical_path.chain.STEPS`), ``row`` (int32,
            of the op, the API call or the activity), ``start_ns`` and ``end_ns`` (int64).
        """
        return _rows(self._compute(rows=True))

    def length(self) -> int:
        """Return the length of the path, ns."""
        return int(np.frombuffer(self._compute()["length_ns"], np.int64)[0])

    def _compute(
        self,
        change: npt.NDArray[np.uint8] = _NO_CHANGE,
        factors: npt.NDArray[np.float64] = _NO_FACTORS,
        *,
        variants: int = 1,
        rows: bool = False,
        changed: tuple[Columns, ...] = (),
        removed: Columns = _NOTHING_REMOVED,
        follow_home: bool = True,
    ) -> dict[str, memoryview]:
        parts: tuple[Columns, ...] = changed or (self._ops, self._calls, self._activities)
        columns = (
            *(c for part in parts for c in part),
            *self._waits,
            self._contexts,
            self._own_until,
        )
        return _native.critical_path(
            tuple(map(np.ascontiguousarray, (*columns, change, factors, *removed))),
            threads=self._threads,
            home=self._home,
            start_ns=self._start,
            end_ns=self._host_end,
            latency_ns=self._latency,
            variants=variants,
            rows=rows,
            follow_home=follow_home,
            ends_with_home=self._ends_with_home,
        )

    def _owned(self, owners: Owners, calls: Columns) -> tuple[Columns, ...]:
        """Return the columns of ops, calls and activities with owners as further ops.

        These ops are on no thread, so they take no time of their own.
        """
        count, ops = len(self._ops[0]), self._with_ops(owners.size)
        of_calls, of_activities = (
            np.where(rows >= 0, rows + count, MISSING).astype(np.int32)
            for rows in (owners.of_calls, owners.of_activities)
        )
        calls = (*calls[:3], np.append(of_calls, calls[3][len(of_calls) :]), *calls[4:])
        return ops, calls, (*self._activities[:6], of_activities, *self._activities[7:])

    def _with_ops(self, more: int) -> Columns:
        """Return the columns of ops with further ones at the end, which are on no thread."""
        start, end, thread, parent, *orders = self._ops
        none = np.full(more, MISSING, np.int32)
        last = np.arange(len(start), len(start) + more, dtype=np.int32)
        return (
            *(np.append(time, np.full(more, time.max(initial=0))) for time in (start, end)),
            *(np.append(rows, none) for rows in (thread, parent)),
            *(np.append(order, last) if len(order) else order for order in orders),
        )


def _with_joins(calls: Columns, joins: Joins, wait: int = THREAD) -> Columns:
    """Return the columns of calls with joins as further calls that wait."""
    if not len(joins.op):
        return calls
    waits = np.full(len(joins.op), wait, np.uint8)
    more: Columns = joins.start, joins.end, joins.thread, joins.op, joins.other, waits
    return tuple(np.concatenate(columns) for columns in zip(calls, more, strict=True))


def _ordered_calls(start: IntArray, end: IntArray, *columns: npt.NDArray[Any]) -> Columns:
    return start, end, *columns, row_order(start)


def _rows(found: dict[str, memoryview]) -> dict[str, npt.NDArray[Any]]:
    dtypes = {"step": np.uint8, "row": np.int32, "start_ns": np.int64, "end_ns": np.int64}
    return {name: np.frombuffer(found[name], dtype)[::-1] for name, dtype in dtypes.items()}
