"""Input of the critical path: ops, calls and activities as columns for the native core.

The rules by which one event waits for another are here and in
``native/analysis/critical_path.cpp``:

* A host thread works through its ops and API calls in order. A thread without an open op starts
  when the thread of the cell has reached that time.
* An activity waits for its launch and for earlier work on its stream. The nodes of a graph replay
  are on the stream of its first node.
* After a stream waits for an event, its next activity waits for the last-ending work of another
  stream that was launched before, because records do not name the event.
* A synchronization, and a copy of pageable memory, waits for the stream or context.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epprof_nb import _native
from epprof_nb.analysis.base.attribution import attributed_op_rows
from epprof_nb.analysis.base.device_work import MEMCPY
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.ids import factorize
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.names import CategoryColumn
    from epprof_nb.data.table import Table

    Rows = npt.NDArray[np.int32]
    Columns = tuple[npt.NDArray[Any], ...]

_NO_WAIT, _LANE, _CONTEXT, _ALL = range(4)
_MAX_NS = 2**61
"""Bound of times: sums of two of them fit in 64 bits."""
_SAMPLE = 100_000
"""Maximum number of launch delays to estimate the usual one from."""
_DEFAULT_LATENCY_NS = 5_000
_NONE = np.empty(0, np.int64)
VARIANTS = 8
"""Number of variants that the core computes at once."""


class Owners(NamedTuple):
    """Owners of activities and API calls, instead of ops.

    Attributes
    ----------
    of_activities, of_calls
        int32 arrays: the owner of each, from 0; `MISSING` for none.
    size
        Number of owners.
    """

    of_activities: Rows
    of_calls: Rows
    size: int


class Removed(NamedTuple):
    """Work that a change of the code would remove.

    ``calls`` and ``activities`` are rows, int64 arrays. From each ``start`` to ``end``, in ns, the
    thread of the operating-system id ``thread`` would do nothing: int64 arrays of one length.
    """

    calls: IntArray = _NONE
    activities: IntArray = _NONE
    thread: IntArray = _NONE
    start: IntArray = _NONE
    end: IntArray = _NONE


class CriticalPathEvents:
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
    """

    def __init__(self, index: ProfileIndex, attribution: Attribution = "launch") -> None:
        tables = index.profile.tables
        self.activity_op = index.activity_op
        if attribution != "launch":
            rows = attributed_op_rows(tables["activities"], index.tree, attribution)
            self.activity_op = rows.astype(np.int32)
        call = _calls_of(index)
        self.call_op = _call_ops(index.call_op, call, self.activity_op)
        start, end = _spans(tables["activities"])
        call_start, call_end = _spans(tables["api_calls"])
        self._latency = _usual_latency(start, call, call_start)
        start = _after_launch(start, call, call_start)
        end = end if (end >= start).all() else np.maximum(start, end)
        lane, self._contexts = _lanes(index, call, start)
        is_work = np.where(index.is_device_work, lane, np.int32(MISSING))
        self._activities = (start, end, is_work, call, self.activity_op, _order(start))
        call_wait, call_lane = _waiting_calls(index, call, lane, end)
        self._waits = _event_waits(index, call, lane)
        threads = _Threads(tables["ops"], tables["api_calls"], call_start)
        self._threads, self._home = threads.count, threads.home
        self._thread_ids, self._thread_numbers = threads.ids, threads.numbers
        self._calls = (
            call_start, call_end, threads.of_calls, self.call_op, call_lane, call_wait,
            _order(call_start), _order(call_end),
        )  # fmt: skip
        parent = index.tree.parent.astype(np.int32)
        op_order = (_order(threads.op_start), _order(threads.op_end))
        self._ops = (threads.op_start, threads.op_end, threads.of_ops, parent, *op_order)
        self._start = min(0, *(int(values.min(initial=0)) for values in (start, call_start)))
        last = max(int(values.max(initial=0)) for values in (end, call_end))
        self.span_ns = min(max(last, index.profile.wall_ns), _MAX_NS) - self._start

    def lengths(self, free: npt.NDArray[np.uint8], owners: Owners | None = None) -> IntArray:
        """Return the length of the path in `VARIANTS` variants, int64 nanoseconds.

        Parameters
        ----------
        free
            uint8 array, one value per op, then one per owner, and one for none: bit ``k`` is set if
            the op or owner costs nothing in variant ``k``.
        owners
            What activities and calls belong to; None for their ops.
        """
        changed = () if owners is None else self._owned(owners)
        found = self._compute(free, rows=False, changed=changed)
        return np.frombuffer(found["length_ns"], np.int64)

    def length_without(self, removed: Removed) -> int:
        """Return the length of the path if calls, activities and time of the host cost nothing.

        What waits for other work still does: the path is at least as long as what is left.
        """
        start, end, thread, op, lane, wait, *_ = self._calls
        free_op, more = len(self._ops[0]), len(removed.start)
        op, wait, activity_op = op.copy(), wait.copy(), self.activity_op.copy()
        op[removed.calls], wait[removed.calls] = free_op, _NO_WAIT
        activity_op[removed.activities] = free_op
        # A call of a free op makes the time of the host free that it covers.
        start = np.append(start, np.clip(removed.start, self._start, _MAX_NS))
        end = np.append(end, np.clip(removed.end, self._start, _MAX_NS))
        end = np.maximum(start, end)
        calls = (
            start, end, np.append(thread, self._numbers(removed.thread)),
            np.append(op, np.full(more, free_op, np.int32)),
            np.append(lane, np.zeros(more, np.int32)),
            np.append(wait, np.full(more, _NO_WAIT, np.uint8)),
            _order(start), _order(end),
        )  # fmt: skip
        # The free op is open on no thread.
        op_start, op_end, op_thread, parent, *_ = self._ops
        times = [np.append(times, np.int64(0)) for times in (op_start, op_end)]
        ops = (
            *times, np.append(op_thread, np.int32(MISSING)), np.append(parent, np.int32(MISSING)),
            *map(_order, times),
        )  # fmt: skip
        activities = (*self._activities[:4], activity_op, self._activities[5])
        free = np.zeros(free_op + 2, np.uint8)
        free[free_op] = 1
        found = self._compute(free, rows=False, changed=(ops, calls, activities))
        return int(np.frombuffer(found["length_ns"], np.int64)[0])

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
        found = self._compute(np.zeros(len(self._ops[0]) + 1, np.uint8), rows=True)
        dtypes = {"step": np.uint8, "row": np.int32, "start_ns": np.int64, "end_ns": np.int64}
        return {name: np.frombuffer(found[name], dtype)[::-1] for name, dtype in dtypes.items()}

    def _compute(
        self, free: npt.NDArray[np.uint8], *, rows: bool, changed: tuple[Columns, ...] = ()
    ) -> dict[str, bytes]:
        parts: tuple[Columns, ...] = changed or (self._ops, self._calls, self._activities)
        columns = (*(c for part in parts for c in part), *self._waits, self._contexts, free)
        return _native.critical_path(
            tuple(map(np.ascontiguousarray, columns)),
            threads=self._threads,
            home=self._home,
            start_ns=self._start,
            end_ns=self._start + self.span_ns,
            latency_ns=self._latency,
            rows=rows,
        )

    def _owned(self, owners: Owners) -> tuple[Columns, ...]:
        """Return the columns of ops, calls and activities with owners as further ops.

        These ops are on no thread, so they take no time of their own.
        """
        start, end, thread, parent, *orders = self._ops
        count, last = len(start), np.arange(owners.size, dtype=np.int32)
        none = np.full(owners.size, MISSING, np.int32)
        ops = (
            *(np.append(time, np.full(owners.size, time.max(initial=0))) for time in (start, end)),
            *(np.append(rows, none) for rows in (thread, parent)),
            *(np.append(order, last + count) if len(order) else order for order in orders),
        )
        of_calls, of_activities = (
            np.where(rows >= 0, rows + count, MISSING).astype(np.int32)
            for rows in (owners.of_calls, owners.of_activities)
        )
        calls = (*self._calls[:3], of_calls, *self._calls[4:])
        return ops, calls, (*self._activities[:4], of_activities, *self._activities[5:])


class _Threads:
    """Numbers of the threads, the home thread, and the ops that are a part of a thread's time."""

    def __init__(self, ops: Table, calls: Table, call_start: IntArray) -> None:
        ids = np.append(ops["thread_id"], calls["thread_id"])
        number, count = factorize(ids)
        self.count = max(count, 1)
        self.ids, first = np.unique(ids, return_index=True)
        self.numbers = number[first]
        self.of_calls = number[len(ops) :].astype(np.int32)
        start, end = _spans(ops)
        self.op_start, self.op_end = np.maximum(start, 0), np.maximum(end, 0)
        # A row of many executions says nothing about the time between them.
        listed = (ops["count"] <= 1) & (self.op_end > self.op_start)
        listed &= ~ops.names("status").equals("earlier")
        self.of_ops = np.where(listed, number[: len(ops)], MISSING).astype(np.int32)
        self.home = 0
        rows = np.flatnonzero(listed)
        cells = rows[ops.names("op_type").take(rows).equals("cell")]
        rows = cells if len(cells) else rows
        if len(rows):  # the cell's thread starts the others, else the first op's
            self.home = int(self.of_ops[rows[self.op_start[rows].argmin()]])
        elif len(call_start):
            self.home = int(self.of_calls[call_start.argmin()])


def _spans(table: Table) -> tuple[IntArray, IntArray]:
    """Return starts and ends within bounds: a damaged file may have times that overflow."""
    start, end = (
        times
        if times.min(initial=0) >= -_MAX_NS and times.max(initial=0) <= _MAX_NS
        else np.clip(times, -_MAX_NS, _MAX_NS)
        for times in (table["start_ns"], table["end_ns"])
    )
    return start, end if (end >= start).all() else np.maximum(start, end)


def _calls_of(index: ProfileIndex) -> Rows:
    """Return the row of the API call of each activity; `MISSING` for none."""
    correlation = index.profile.tables["activities"]["correlation_id"]
    call = np.empty(len(correlation), np.int32)
    for chunk in chunks(len(correlation)):
        call[chunk] = index.calls.rows(correlation[chunk])
    return call


def _call_ops(op: Rows, call: Rows, activity_op: Rows) -> Rows:
    """Return the op of each call; if its thread has no ops, the op of the activity it launched."""
    if (op != MISSING).all():
        return op
    op = op.copy()
    for chunk in chunks(len(call)):
        launched = np.flatnonzero(call[chunk] >= 0)
        rows = call[chunk][launched]
        without = op[rows] == MISSING
        op[rows[without]] = activity_op[chunk][launched[without]]
    return op


def _after_launch(start: IntArray, call: Rows, call_start: IntArray) -> IntArray:
    """Return when activities started, but not before their call.

    Device times are interpolated: a kernel can seem to start before its launch.
    """
    result = start
    for chunk in chunks(len(call)):
        known = np.flatnonzero(call[chunk] >= 0)
        called = call_start[call[chunk][known]]
        early = called > start[chunk][known]
        if early.any():
            result = start.copy() if result is start else result
            result[chunk][known[early]] = called[early]
    return result


def _lanes(index: ProfileIndex, call: Rows, start: IntArray) -> tuple[Rows, Rows]:
    """Return the lane of each activity, its stream, and the context of each lane.

    All nodes of a graph replay are on the lane of the first of them.
    """
    activities = index.profile.tables["activities"]
    keys = [activities[name] for name in ("device_id", "context_id", "stream_id")]
    codes, first = group_codes(*keys)
    lane = codes.astype(np.int32)
    contexts = group_codes(*(key[first] for key in keys[:2]))[0].astype(np.int32)
    graphs = activities["graph_id"]
    if graphs.max(initial=MISSING) != MISSING:
        nodes = np.flatnonzero((graphs != MISSING) & (call >= 0) & index.is_device_work)
        order = nodes[np.lexsort((start[nodes], call[nodes]))]
        is_first = np.diff(call[order], prepend=-2) != 0
        lane[order] = lane[order[is_first]][np.cumsum(is_first) - 1]
    return lane, contexts


def _waiting_calls(
    index: ProfileIndex, call: Rows, lane: Rows, end: IntArray
) -> tuple[npt.NDArray[np.uint8], Rows]:
    """Return how each API call waits, and the lane that it waits for or a lane of its context."""
    activities, calls = (index.profile.tables[name] for name in ("activities", "api_calls"))
    names = calls.names("name")
    # A synchronization without a record waits for everything.
    wait = np.where(_named(names, "Synchronize"), _ALL, _NO_WAIT).astype(np.uint8)
    call_lane = np.zeros(len(calls), np.int32)

    rows = _blocking_copies(index, call, end)
    wait[call[rows]], call_lane[call[rows]] = _LANE, lane[rows]

    rows = np.flatnonzero(activities.names("kind").equals("synchronization") & (call >= 0))
    name = activities.names("name").take(rows)
    of_stream = _named(name, "stream", "event") & (activities["stream_id"][rows] != MISSING)
    how = np.where(of_stream, _LANE, _CONTEXT)
    # The call that makes a stream wait returns at once.
    how[_named(name, "wait")] = _NO_WAIT
    wait[call[rows]], call_lane[call[rows]] = how, lane[rows]
    return wait, call_lane


def _blocking_copies(index: ProfileIndex, call: Rows, end: IntArray) -> IntArray:
    """Return the rows of the copies whose call returned after they ended."""
    activities, calls = (index.profile.tables[name] for name in ("activities", "api_calls"))
    rows = np.flatnonzero((index.kinds == MEMCPY) & (call >= 0))
    may_block = ~_named(calls.names("name").take(call[rows]), "Async")
    for column in ("src_kind", "dst_kind"):
        may_block |= activities.names(column).take(rows).equals("pageable")
    return rows[may_block & (end[rows] <= calls["end_ns"][call[rows]])]


def _event_waits(index: ProfileIndex, call: Rows, lane: Rows) -> tuple[IntArray, Rows]:
    """Return when calls made streams wait for an event, ascending, and the lanes."""
    activities, calls = (index.profile.tables[name] for name in ("activities", "api_calls"))
    rows = np.flatnonzero(activities.names("kind").equals("synchronization"))
    rows = rows[_named(activities.names("name").take(rows), "wait")]
    rows = rows[activities["stream_id"][rows] != MISSING]
    called = np.append(calls["start_ns"], 0)[call[rows]]
    time = np.where(call[rows] >= 0, called, activities["start_ns"][rows])
    time = np.clip(time, -_MAX_NS, _MAX_NS)
    order = np.argsort(time, kind="stable")
    return time[order], lane[rows[order]]


def _order(times: IntArray) -> Rows:
    """Return the rows by ascending time; an empty array if they are in this order."""
    if (times[1:] >= times[:-1]).all():
        return np.empty(0, np.int32)
    return np.argsort(times, kind="stable").astype(np.int32)


def _named(names: CategoryColumn, *words: str) -> BoolArray:
    """Return which names contain one of `words`, in any case."""
    found = [any(w.lower() in text.lower() for w in words) for text in names.categories]
    result: BoolArray = np.array([*found, False], np.bool_)[names.codes]
    return result


def _usual_latency(start: IntArray, call: Rows, called: IntArray) -> int:
    """Return the 10th percentile of the launch delays: the delay of a launch without a queue."""
    rows = slice(None, None, max(len(call) // _SAMPLE, 1))
    start, call = start[rows], call[rows]
    delays = start[call >= 0] - called[call[call >= 0]]
    delays = delays[delays > 0]
    return int(np.percentile(delays, 10)) if len(delays) else _DEFAULT_LATENCY_NS
