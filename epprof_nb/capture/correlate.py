"""The join: from a slice of raw logs to tables in which every activity knows its op.

An activity's API call is found by correlation id; the call's op is the one that was open on the
launching thread at the call. Nothing is matched by name or by time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.ids import IdIndex, contains, mask_as_slice
from epprof_nb.capture.op_log import ops_table
from epprof_nb.capture.service import Batch, Slice, column
from epprof_nb.core.native_columns import names_of
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, API_CALLS, GRAPHS, MEMORY, MISSING, OVERHEAD
from epprof_nb.data.table import Table, concat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.recorders.base import Recorded

I64 = npt.NDArray[np.int64]

# Launch flags and the op column's top bit: native/threads.h.
_CAPTURED, _OUR_OWN, _STILL_IN_CALL, _CELL_WAITED, _CELL_RAN = 1, 2, 4, 8, 16
_NO_OP = np.uint64(1 << 63)
# What the profiler calls to wait for a context, and how far off a calibrated clock may be.
_OWN_CALLS = ("cuCtxPushCurrent_v2", "cuCtxSynchronize", "cuCtxPopCurrent_v2", "cuCtxGetCurrent")
_SLACK = 100_000
_DOMAINS = ("driver", "runtime", "host")


@dataclass(slots=True)
class Joined:
    """The tables of a slice, times absolute, and what could not be joined."""

    tables: dict[str, Table]
    ops_lost: int
    calls_lost: int
    activities_dropped: int
    orphans: int
    """Activities whose op was recorded as open but found no room in the op log."""


def join(part: Slice) -> Joined:
    """Join a slice: see the module."""
    ops, ops_lost = ops_table(part.batches)
    launches = _launches(part.batches)
    recorded = [r for batch in part.batches for r in batch.recorded]
    launches = _with_external(launches, recorded)
    activities = _activities_of(part, recorded, launches)
    call = IdIndex(launches.correlation).rows(activities["correlation_id"])
    op, attribution, orphans = _attribute(launches, call, ops["op_id"])
    capture_op = np.full(len(activities), MISSING, np.int64)
    in_graph = activities["graph_node_id"] != MISSING
    if in_graph.any():
        capture_op[in_graph] = part.graph_nodes.capture_op(activities["graph_node_id"][in_graph])
        part.graph_nodes.remember_ops(ops)
        ops, capture_op = _with_earlier_ops(part, ops, capture_op)
    elif any(r.graph_nodes for r in recorded):
        part.graph_nodes.remember_ops(ops)
    activities = activities.replace(
        op_id=op,
        capture_op_id=capture_op,
        attribution=CategoryColumn(attribution, ("stack", "cell", "none")),
        thread_id=_take(launches.thread, call),
    )
    memory = concat([r.memory for r in recorded]) if recorded else Table(MEMORY)
    memory_call = IdIndex(launches.correlation).rows(memory["correlation_id"])
    memory_op, _, _ = _attribute(launches, memory_call, ops["op_id"])
    tables = {
        "ops": ops,
        "activities": activities,
        "api_calls": _api_calls(launches, ops["op_id"]),
        "graphs": _graphs(activities),
        "memory": memory.replace(op_id=memory_op),
        "overhead": concat([r.overhead for r in recorded]) if recorded else Table(OVERHEAD),
    }
    return Joined(
        tables,
        ops_lost,
        sum(batch.launches["lost"] for batch in part.batches),
        sum(r.dropped for r in recorded),
        orphans,
    )


@dataclass(slots=True)
class _Launches:
    """The launch log, one row an API call, the profiler's own calls among them (``own``)."""

    correlation: I64
    op: npt.NDArray[np.uint64]
    start: I64
    end: I64
    thread: I64
    result: I64
    flags: npt.NDArray[np.uint16]
    names: CategoryColumn
    domains: CategoryColumn

    def take(self, rows: npt.NDArray[Any] | slice) -> _Launches:
        return _Launches(
            self.correlation[rows],
            self.op[rows],
            self.start[rows],
            self.end[rows],
            self.thread[rows],
            self.result[rows],
            self.flags[rows],
            self.names.take(rows),
            self.domains.take(rows),
        )

    @property
    def own(self) -> npt.NDArray[np.bool_]:
        own: npt.NDArray[np.bool_] = (self.flags & _OUR_OWN) != 0
        return own


def _launches(batches: list[Batch]) -> _Launches:
    def get(name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        return column(batches, "launches", name, dtype)

    name_ids = get("name_id", np.uint32)
    launches = _Launches(
        get("correlation_id", np.uint64).astype(np.int64),
        get("op_id", np.uint64),
        get("start_ns", np.int64),
        get("end_ns", np.int64),
        get("thread_id", np.uint64).astype(np.int64),
        get("return_value", np.int32).astype(np.int64),
        get("flags", np.uint16),
        CategoryColumn.from_ids(name_ids, names_of(name_ids)),
        CategoryColumn.from_ids(get("domain", np.uint16), _DOMAINS),
    )
    waiting = (launches.flags & _STILL_IN_CALL) != 0
    if waiting.any():
        # A call that was in progress at one cut and ended by a later one is there twice or more.
        done = contains(launches.correlation[~waiting], launches.correlation)
        last = np.zeros(len(waiting), np.bool_)
        _, first_from_end = np.unique(launches.correlation[::-1], return_index=True)
        last[len(waiting) - 1 - first_from_end] = True
        launches = launches.take(~waiting | (~done & last))
    return launches


def _with_external(launches: _Launches, recorded: Sequence[Recorded]) -> _Launches:
    """Add the calls of a recorder that could not log launches: their op is the id pushed."""
    parts = [r for r in recorded if r.api_calls is not None]
    if not parts:
        return launches
    calls = concat([r.api_calls for r in parts if r.api_calls is not None])
    pairs = [r.op_of_correlation for r in parts if r.op_of_correlation is not None]
    correlation = np.concatenate([p[0] for p in pairs])
    pushed = np.concatenate([p[1] for p in pairs])
    # CUPTI gives each call one record a kind of id: the innermost that was pushed.
    row = IdIndex(correlation).rows(calls["correlation_id"])
    op = np.where(row >= 0, pushed[row] if len(pushed) else 0, 0).astype(np.uint64)
    own = np.zeros(len(calls), np.bool_)
    name = calls.names("name")
    ours = np.logical_or.reduce([name.equals(n) for n in _OWN_CALLS])
    for r in parts:
        for begin, end in r.own_waits:
            own |= ours & (calls["start_ns"] >= begin - _SLACK) & (calls["end_ns"] <= end + _SLACK)
    added = _Launches(
        calls["correlation_id"],
        np.where(op == 0, _NO_OP, op),
        calls["start_ns"],
        calls["end_ns"],
        calls["thread_id"],
        calls["return_value"],
        np.where(own, _OUR_OWN, 0).astype(np.uint16),
        calls.names("name"),
        calls.names("domain"),
    )
    return _Launches(
        np.concatenate([launches.correlation, added.correlation]),
        np.concatenate([launches.op, added.op]),
        np.concatenate([launches.start, added.start]),
        np.concatenate([launches.end, added.end]),
        np.concatenate([launches.thread, added.thread]),
        np.concatenate([launches.result, added.result]),
        np.concatenate([launches.flags, added.flags]),
        _append(launches.names, added.names),
        _append(launches.domains, added.domains),
    )


def _append(a: CategoryColumn, b: CategoryColumn) -> CategoryColumn:
    return CategoryColumn.of(a.to_list() + b.to_list())


def _take(values: I64, rows: I64) -> I64:
    """`values` at `rows`; missing where the row is -1."""
    if not len(values):
        return np.full(len(rows), MISSING, np.int64)
    return np.where(rows >= 0, values[rows], MISSING)


def _activities_of(part: Slice, recorded: Sequence[Recorded], launches: _Launches) -> Table:
    """The slice's activities: those of its own launches, and those no launch is known for."""
    tables = [r.activities for r in recorded if len(r.activities)]
    if not tables:
        return Table(ACTIVITIES)
    activities = tables[0] if len(tables) == 1 else concat(tables)
    correlation = activities["correlation_id"]
    row = IdIndex(launches.correlation).rows(correlation)
    keep = row >= 0
    if len(launches.own):
        keep &= ~launches.own[row]
    unknown = row < 0
    if unknown.any():
        late = activities["start_ns"] >= part.opened_ns
        if part.earlier:
            known_before = column(part.earlier, "launches", "correlation_id", np.uint64)
            late &= ~contains(known_before.astype(np.int64), correlation)
        keep |= unknown & late
    return _by_time(activities if keep.all() else activities.take(mask_as_slice(keep)))


def _by_time(table: Table) -> Table:
    """The rows in the order of their starts: streams and threads are recorded one by one."""
    start = table["start_ns"]
    if (start[1:] >= start[:-1]).all():
        return table
    return table.take(np.argsort(start, kind="stable"))


def _attribute(
    launches: _Launches, call: I64, known_ops: I64
) -> tuple[I64, npt.NDArray[np.int32], int]:
    """Op and attribution code (0 stack, 1 cell, 2 none) of what each call launched."""
    if not len(launches.op):
        return np.full(len(call), MISSING, np.int64), np.full(len(call), 2, np.int32), 0
    by_stack = (launches.op & _NO_OP) == 0
    waited_for = _waited_for(launches)
    op_of_call = np.where(by_stack | waited_for, (launches.op & ~_NO_OP).astype(np.int64), MISSING)
    op_of_call[op_of_call == 0] = MISSING
    exists = contains(known_ops, op_of_call)
    op = np.where(call >= 0, op_of_call[call], MISSING)
    orphan = (op != MISSING) & ~exists[call]
    op[orphan] = MISSING
    code = np.where(op == MISSING, 2, np.where(by_stack[call], 0, 1)).astype(np.int32)
    return op, code, int(orphan.sum())


def _waited_for(launches: _Launches) -> npt.NDArray[np.bool_]:
    """Calls by threads without ops for whose work the cell's statement waited.

    The launch log says of each such call whether the cell's thread, since this thread's call
    before, used CPU time or none with its op stack unmoved. A thread whose calls were all made
    while the cell's thread waited works for the statement that waits; one that was ever seen to
    call while the cell's thread ran is on its own, and its work is nobody's.
    """
    candidate: npt.NDArray[np.bool_] = launches.op > _NO_OP  # no op here, one on the cell's thread
    if not candidate.any():
        return candidate
    waited = candidate & ((launches.flags & _CELL_WAITED) != 0)
    ran = candidate & ((launches.flags & _CELL_RAN) != 0)
    workers = np.setdiff1d(np.unique(launches.thread[waited]), np.unique(launches.thread[ran]))
    result: npt.NDArray[np.bool_] = candidate & np.isin(launches.thread, workers)
    return result


def _with_earlier_ops(part: Slice, ops: Table, capture_op: I64) -> tuple[Table, I64]:
    """Add rows for ops of earlier sessions that captured nodes replayed in this one."""
    wanted = np.unique(capture_op[capture_op != MISSING])
    absent = np.setdiff1d(wanted, ops["op_id"])
    earlier = part.graph_nodes.earlier_ops(absent)
    if earlier is not None:
        fresh = earlier.take(~contains(ops["op_id"], earlier["op_id"]))
        # Runs are counted within a profile: the earlier one's numbers mean nothing here.
        fresh = fresh.replace(
            status=CategoryColumn.constant("earlier", len(fresh)),
            run_id=np.full(len(fresh), MISSING, np.int64),
        )
        ops = concat([ops, fresh])
    # An op that captured but left no row (it found no room) cannot be shown.
    capture_op[~contains(ops["op_id"], capture_op)] = MISSING
    return ops, capture_op


def _api_calls(launches: _Launches, known_ops: I64) -> Table:
    shown = launches.take(mask_as_slice(~launches.own)) if launches.own.any() else launches
    op, _, _ = _attribute(shown, np.arange(len(shown.op)), known_ops)
    table = Table(
        API_CALLS,
        {
            "domain": shown.domains,
            "name": shown.names,
            "thread_id": shown.thread,
            "start_ns": shown.start,
            "end_ns": shown.end,
            "duration_ns": shown.end - shown.start,
            "correlation_id": shown.correlation,
            "op_id": op,
            "return_value": shown.result,
            "captured": (shown.flags & _CAPTURED) != 0,
        },
    )
    return _by_time(table)


def _graphs(activities: Table) -> Table:
    rows = np.flatnonzero(activities["graph_id"] != MISSING)
    if not len(rows):
        return Table(GRAPHS)
    graph = activities["graph_id"][rows]
    found, inverse = np.unique(graph, return_inverse=True)
    device_ns = np.zeros(len(found), np.int64)
    np.add.at(device_ns, inverse, activities["duration_ns"][rows])
    correlation = activities["correlation_id"][rows]
    node = activities["graph_node_id"][rows]
    capture = activities["capture_op_id"][rows]
    replays = np.empty(len(found), np.int64)
    nodes = np.empty(len(found), np.int64)
    captured_by = np.full(len(found), MISSING, np.int64)
    for i in range(len(found)):
        mine = inverse == i
        replays[i] = len(np.unique(correlation[mine]))
        nodes[i] = len(np.unique(node[mine & (node != MISSING)]))
        by, times = np.unique(capture[mine & (capture != MISSING)], return_counts=True)
        if len(by):
            captured_by[i] = by[times.argmax()]
    return Table(
        GRAPHS,
        {
            "graph_id": found,
            "capture_op_id": captured_by,
            "nodes": nodes,
            "replays": replays,
            "device_ns": device_ns,
            "device_ns_per_replay": device_ns // replays,
        },
    )
