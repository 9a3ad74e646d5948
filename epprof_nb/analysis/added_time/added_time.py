"""Time that profiling added, from the costs of recording, where the critical path pays them.

What a queued launch costs nobody waits for. A cost counts where the path leads through the code of
its thread, so the sum is what the code would save without the profiler, unless other work becomes
the limit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.analysis.base.processes import has_several
from epprof_nb.analysis.critical_path.chain import API_CALL, HOST, CriticalPath
from epprof_nb.analysis.onnx.overhead import call_durations
from epprof_nb.arrays.ancestors import nearest_ancestor
from epprof_nb.arrays.ids import factorize
from epprof_nb.arrays.intervals import covered_between, union
from epprof_nb.arrays.types import MISSING
from epprof_nb.data import ort_runs
from epprof_nb.data.recording_costs import (
    GRAPH_NODE,
    HOST_LAUNCH,
    KINDS,
    LAUNCH,
    MODULE,
    OP,
    OPERATOR,
    STACK_FRAME,
    STATEMENT,
    costs_of,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

    Costs = npt.NDArray[np.float64]

_RUNS = "runs"
_PARTS = {
    LAUNCH: "launches", HOST_LAUNCH: "launches", GRAPH_NODE: "graph_nodes", OP: "ops",
    STATEMENT: "statements", MODULE: "modules", OPERATOR: "operators",
}  # fmt: skip
"""Parts of the sum by kind of event."""
_OP_KINDS = {
    "line": STATEMENT, "module": MODULE, "recompute": MODULE, "backward": MODULE,
    "operator": OPERATOR, "autograd_node": OPERATOR,
}  # fmt: skip
_FREE_TYPES = frozenset({"cell", "gc", "hlo", "hlo_module", "event"})
"""Types of ops that are written once per profile, or found after it."""
_ERROR = 0.3
"""Error of an estimate, as a share of it."""
_MAX_EVENTS = 2_000_000
"""Maximum number of events of a profile that is estimated before anybody asks."""


@dataclass(frozen=True, slots=True)
class AddedTime:
    """Time that profiling added to the wall time.

    Attributes
    ----------
    total_ns, error_ns
        Its sum, and what it may be wrong by.
    parts
        The sum by what was recorded: ``launches``, ``graph_nodes``, ``ops``, ``statements``,
        ``modules``, ``operators`` and ``runs`` of ONNX Runtime, ns. Empty if the costs on this
        machine are not known.
    is_measured
        Whether unprofiled runs of the same code were measured.
    """

    total_ns: int
    error_ns: int
    parts: dict[str, int]
    is_measured: bool
    _time: IntArray = field(repr=False, compare=False)
    _until: Costs = field(repr=False, compare=False)
    _wall_ns: int = 0

    def share(self) -> float | None:
        """Return it as a share of the unprofiled wall time; None if it is all of the wall time."""
        unprofiled = self._wall_ns - self.total_ns
        return self.total_ns / unprofiled if unprofiled > 0 else None

    def between(self, start: IntArray, end: IntArray) -> IntArray:
        """Return what was added in intervals (int64 arrays of one length, ns)."""
        until, since = (np.interp(time, self._time, self._until) for time in (end, start))
        added: IntArray = np.rint(until - since).astype(np.int64)
        return added

    def as_info(self) -> dict[str, int]:
        """Return the entry ``added_ns`` of a profile's info."""
        known = {"total": self.total_ns, "error": self.error_ns, **self.parts}
        return known if self.is_measured else {**known, "estimated": 1}


def added_time(index: ProfileIndex) -> AddedTime | None:
    """Return what profiling added to a profile; None if it is not known.

    For `ProfileIndex.cached`. It is measured if the info has a sum, else estimated from the costs
    that were learned on the machine of the recording. Of several processes, it is not known.
    """
    info, wall_ns = index.profile.info, index.profile.wall_ns
    stated = info.get("added_ns") or {}
    total = stated.get("total")
    found = None if has_several(index) else _estimate(index, costs_of(info))
    if total is None or (found is not None and stated.get("estimated")):
        return found
    whole = np.array([0, max(wall_ns, 1)]), np.array([0.0, total])
    parts, (time, until) = {}, whole
    if found is not None and found.total_ns:
        factor = total / found.total_ns
        parts = {name: round(part * factor) for name, part in found.parts.items()}
        time, until = found._time, found._until * factor  # noqa: SLF001 - of the same class
    return AddedTime(
        total, stated.get("error", 0), parts, not stated.get("estimated"), time, until, wall_ns
    )


def soon_added_time(index: ProfileIndex) -> AddedTime | None:
    """Return the same, but None if the profile is large and it is only an estimate."""
    tables, info = index.profile.tables, index.profile.info
    is_small = len(tables["ops"]) + len(tables["api_calls"]) <= _MAX_EVENTS
    is_stated = (info.get("added_ns") or {}).get("total") is not None
    return index.cached(added_time) if is_small or is_stated else None


class _Events(NamedTuple):
    """Recorded events: their kind, thread and times, and what recording them took, ns."""

    kind: str
    thread: IntArray
    start: IntArray
    end: IntArray
    cost: Costs


def _estimate(index: ProfileIndex, costs: dict[str, float]) -> AddedTime | None:
    if not costs:
        return None
    path = index.cached(CriticalPath, "launch")
    if not path.length_ns:
        return None
    threads = _path_by_thread(index, path)
    parts: dict[str, float] = {}
    found: list[tuple[IntArray, IntArray, Costs]] = []
    for events in _events(index, costs):
        cost = _paid(events, threads)
        if not cost.any():
            continue
        if np.isnan(cost).any():  # of a kind whose cost is not known
            return None
        name = _PARTS.get(events.kind, _RUNS)
        parts[name] = parts.get(name, 0.0) + float(cost.sum())
        reached = cost > 0
        found.append((events.start[reached], events.end[reached], cost[reached]))
    time, until = _running_sum(found)
    # Costs are those of other code, so that their sum can be larger than a short profile.
    part = min(index.profile.wall_ns / max(sum(parts.values()), 1), 1)
    total = sum(parts.values()) * part
    return AddedTime(
        round(total),
        round(_ERROR * total),
        {name: round(value * part) for name, value in parts.items()},
        False,  # noqa: FBT003
        time,
        until * part,
        index.profile.wall_ns,
    )


def _running_sum(found: list[tuple[IntArray, IntArray, Costs]]) -> tuple[IntArray, Costs]:
    """Return times, and the sum of the costs until each: a cost is spread over its event."""
    if not found:
        return np.zeros(1, np.int64), np.zeros(1)
    start, end, cost = (np.concatenate(columns) for columns in zip(*found, strict=True))
    end = np.maximum(end, start + 1)
    slope = cost / (end - start)
    time, change = np.append(start, end), np.append(slope, -slope)
    order = np.argsort(time, kind="stable")
    time = time[order]
    per_ns = np.cumsum(change[order])[:-1]
    return time, np.append(0.0, np.cumsum(per_ns * np.diff(time)))


def _path_by_thread(
    index: ProfileIndex, path: CriticalPath
) -> dict[int, tuple[IntArray, IntArray]]:
    """Return when the path leads through the code of each thread."""
    ops, calls = (index.profile.tables[name]["thread_id"] for name in ("ops", "api_calls"))
    of_op, of_call = path.step == HOST, path.step == API_CALL
    thread = np.full(len(path.step), MISSING, np.int64)
    home = path.input.home_thread
    thread[of_op] = np.append(ops, home)[path.row[of_op]]
    thread[of_call] = calls[path.row[of_call]]
    found = {}
    for number in np.unique(thread[of_op | of_call]).tolist():
        rows = thread == number
        found[number] = union(path.start_ns[rows], path.end_ns[rows])
    return found


def _paid(events: _Events, threads: dict[int, tuple[IntArray, IntArray]]) -> Costs:
    """Return the cost of each event as far as the path leads through its time."""
    paid = np.zeros(len(events.cost))
    number, count = factorize(events.thread)
    for i in range(count):
        rows = np.flatnonzero(number == i)
        intervals = threads.get(int(events.thread[rows[0]]))
        if intervals is None:
            continue
        start, end = events.start[rows], np.maximum(events.end[rows], events.start[rows] + 1)
        paid[rows] = covered_between(*intervals, start, end) / (end - start)
    reached = paid > 0
    paid[reached] *= events.cost[reached]
    return paid


def _events(index: ProfileIndex, costs: dict[str, float]) -> Iterator[_Events]:
    unknown = dict.fromkeys(KINDS, np.nan)
    costs = {**unknown, **costs}
    runs, inside = _runs(index)
    yield runs
    yield from _ops(index, costs, inside)
    yield from _calls(index, costs, inside)


def _runs(index: ProfileIndex) -> tuple[_Events, BoolArray]:
    """Return the runs of ONNX Runtime that are compared with unprofiled ones, and ops in them."""
    ops = index.profile.tables["ops"]
    rows = np.flatnonzero(ort_runs.is_run(ops) & has_host_time(ops))
    call_ns, unprofiled_ns = call_durations(ops, rows)
    is_known = (call_ns != MISSING) & (unprofiled_ns != MISSING)
    rows, more = rows[is_known], (call_ns - unprofiled_ns)[is_known]
    events = _Events(
        _RUNS, ops["thread_id"][rows], ops["start_ns"][rows], ops["end_ns"][rows],
        np.maximum(more, 0).astype(np.float64),
    )  # fmt: skip
    is_run = np.zeros(len(ops), np.bool_)
    is_run[rows] = True
    inside = nearest_ancestor(index.tree.parent, is_run) != MISSING if len(rows) else is_run
    return events, inside


def _ops(index: ProfileIndex, costs: dict[str, float], inside: BoolArray) -> Iterator[_Events]:
    """Yield the ops: half of the cost is at the begin, half at the end."""
    ops = index.profile.tables["ops"]
    types = ops.names("op_type")
    is_node = ops.names("category").equals("node")
    counted = has_host_time(ops) & ~inside
    kind_of_type = [_kind(text) for text in types.categories]
    for kind in dict.fromkeys(kind for kind in kind_of_type if kind):
        of_kind = np.array([one == kind for one in kind_of_type] + [False])[types.codes]
        # What nodes cost is known by runs alone.
        rows = np.flatnonzero(of_kind & counted & ~is_node)
        yield from _halves(index, kind, costs[kind], rows)
    yield from _halves(index, _RUNS, np.nan, np.flatnonzero(counted & is_node))


def _kind(op_type: str) -> str | None:
    return None if op_type in _FREE_TYPES else _OP_KINDS.get(op_type, OP)


def _halves(index: ProfileIndex, kind: str, cost: float, rows: IntArray) -> Iterator[_Events]:
    ops = index.profile.tables["ops"]
    thread, start, end = (ops[name][rows] for name in ("thread_id", "start_ns", "end_ns"))
    count = ops["count"][rows]
    # The executions of one row have no times of their own.
    many = count > 1
    yield _Events(kind, thread[many], start[many], end[many], cost * count[many])
    once = ~many
    half = np.full(int(once.sum()), cost / 2)
    yield _Events(kind, thread[once], start[once], start[once], half)
    yield _Events(kind, thread[once], end[once] - 1, end[once] - 1, half)


def _calls(index: ProfileIndex, costs: dict[str, float], inside: BoolArray) -> Iterator[_Events]:
    """Yield the API calls, with the frames of their stacks and the nodes of graphs."""
    calls = index.profile.tables["api_calls"]
    inside = np.append(inside, False)[index.call_op]
    of_host = calls.names("domain").equals("host")
    depth = np.append(_depths(index), 0)[calls["stack_id"]]
    nodes = _nodes_by_call(index)
    start = calls["start_ns"]
    for kind, frame, of_kind in (
        (HOST_LAUNCH, 0.0, of_host), (LAUNCH, costs[STACK_FRAME], ~of_host),
    ):  # fmt: skip
        rows = np.flatnonzero(of_kind & ~inside)
        cost = (costs[kind] + frame * depth[rows]).astype(np.float64)
        yield _Events(kind, calls["thread_id"][rows], start[rows], start[rows], cost)
    rows = np.flatnonzero((nodes > 0) & ~inside)
    cost = (costs[GRAPH_NODE] * nodes[rows]).astype(np.float64)
    yield _Events(GRAPH_NODE, calls["thread_id"][rows], start[rows], start[rows], cost)


def _depths(index: ProfileIndex) -> IntArray:
    """Return the number of frames of each stack."""
    parent = index.profile.tables["stacks"]["parent_id"]
    depth = np.ones(len(parent), np.int64)
    above = parent.copy()
    while (above != MISSING).any():
        depth[above != MISSING] += 1
        above = np.where(above != MISSING, parent[above], MISSING)
    return depth


def _nodes_by_call(index: ProfileIndex) -> IntArray:
    """Return how many nodes of graphs each API call launched."""
    activities = index.profile.tables["activities"]
    calls = index.profile.tables["api_calls"]
    rows = np.flatnonzero((activities["graph_node_id"] != MISSING) & index.is_device_work)
    call = index.calls.rows(activities["correlation_id"][rows])
    counts: IntArray = np.bincount(call[call >= 0], minlength=len(calls))
    return counts
