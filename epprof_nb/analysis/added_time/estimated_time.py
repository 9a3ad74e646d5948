"""Time that profiling added, estimated from what recording took of the program's threads.

The threads time a sample of what the profiler does in them. Each op gets its part of the sums, and
the length of the critical path without this time of the host says what it cost: nobody waits for
launches that are queued. Waits for cores that other processes use are left out.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.devices import used_gpu
from epprof_nb.analysis.base.missing_records import lacks_records
from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.analysis.base.op_totals import self_host_ns
from epprof_nb.analysis.base.processes import has_several
from epprof_nb.analysis.base.processor_use import load_of
from epprof_nb.analysis.onnx.profiler_slowdown import call_durations
from epprof_nb.analysis.onnx.unprofiled_times import runs
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.core.recording_costs import BACKWARD, LAUNCHES, MODULES, NAMES, OPS, RUNS, STATEMENTS
from epprof_nb.data.schema import SLEEP

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table

    Costs = npt.NDArray[np.float64]

_MAX_EVENTS = 200_000
"""Maximum number of ops and API calls: the critical path of more takes long."""
MAX_PART = 0.95
"""Maximum part of the wall time: a larger estimate would leave the code itself no time."""
_STEPS = 200
"""Number of different factors of host time: the critical path takes at most 255."""
_OP_TYPES = {
    "line": STATEMENTS, "module": MODULES, "recompute": MODULES, "run": RUNS,
    "autograd": BACKWARD, "backward": BACKWARD,
}  # fmt: skip
"""Kinds of ops that are not `OPS`, by type."""
_WITHOUT_COSTS = frozenset({"cell", "gc", "hlo", "hlo_module"})
"""Types of ops that are written once per profile, or found after it."""
_ELSEWHERE = {OPS: 1.2, MODULES: 0.3, BACKWARD: 0.15, LAUNCHES: 0.65}
"""Cost of recording elsewhere, as a share of the time that it takes in place: in the interpreter
and the autograd engine, which call it, in caches that it leaves cold, and at the ends of ops."""
_COLD_NS = {100: 0, 600: 35, 3_000: 60, 12_000: 350, 30_000: 600}
"""The same of each statement, ns, by its mean duration: what runs in between evicts the profiler's
code and data from the caches, before the part that is timed."""
_MODULE_NS = 600
"""The same of each call of a module, ns."""
_PASS_NS, _HOOK_NS = 40_000, 2_500
"""The same of each backward pass on the host, and of each module in it, which has a hook."""
_LAUNCH_NS = 1_000
"""Time of CUPTI per launch, ns: its record, and to call the profiler. Fitted on 14 programs on a
host of an H200 after an earlier profile, which slows the launches of a process down for good."""
_NODE_NS = 250
"""Time of CUPTI per node of a graph, ns, between the nodes; fitted likewise."""


class EstimatedTime(NamedTuple):
    """Estimate of what profiling added, ns.

    ``parts`` is what recording took by `NAMES`, ``of_op`` by op, also where nobody waited for it.
    """

    total_ns: int
    parts: dict[str, int]
    of_op: Costs


def estimated_time(index: ProfileIndex) -> EstimatedTime | None:
    """Return an estimate of what profiling added; None if it is not known.

    Frameworks that record for the profiler take time that is not known. What ONNX Runtime's runs
    took longer is known without a GPU, if the process has run them unprofiled before.
    """
    sums = index.profile.info.get("recording_costs")
    ops = index.profile.tables["ops"]
    events = len(ops) + len(index.profile.tables["api_calls"])
    if not sums or events > _MAX_EVENTS or has_several(index) or index.cached(lacks_records):
        return None
    of_runs = _of_runs(index)
    if of_runs is None or ops.names("category").equals("operator").any():
        return None
    costs = {kind: _of_ops(index, kind, sums.get(name, 0)) for kind, name in enumerate(NAMES)}
    costs[RUNS] += of_runs
    of_op = np.sum([*costs.values()], axis=0)
    if used_gpu(index):
        added_ns = _saved_on_path(index, of_op)
    else:  # the threads of the host device take the interpreter from the thread of the cell
        of_cell = ops["thread_id"] == index.profile.info.get("thread_id", MISSING)
        of_others = costs[STATEMENTS].sum(where=~of_cell)  # one thread at a time runs Python
        added_ns = round(float(of_op.sum(where=of_cell) + of_others * _awake_part(index)))
    added_ns = min(added_ns, round(MAX_PART * index.profile.wall_ns))
    parts = {NAMES[kind]: round(float(values.sum())) for kind, values in costs.items()}
    return EstimatedTime(added_ns, {name: ns for name, ns in parts.items() if ns}, of_op)


def _of_ops(index: ProfileIndex, kind: int, timed_ns: int) -> Costs:
    """Return what recording events of a kind took, by op: each event took the same."""
    ops = index.profile.tables["ops"]
    if kind == LAUNCHES:
        calls = index.profile.tables["api_calls"]
        is_gpu = ~calls.names("domain").equals("host")
        events = sum_by_group(index.call_op, np.ones(len(calls), np.int64), len(ops))[:-1]
        untimed = _LAUNCH_NS * sum_by_group(index.call_op, is_gpu.astype(np.int64), len(ops))[:-1]
    else:
        known = _by_type(ops, _kind) == kind
        events = np.where(known & has_host_time(ops), ops["count"], 0)
        each = _by_type(ops, partial(_untimed_ns, on_host=not used_gpu(index)))
        if kind == STATEMENTS:
            each = _cold_ns(index)
        untimed = events * each
    costs: Costs = (
        events * timed_ns * (1 + _ELSEWHERE.get(kind, 0.0)) / max(int(events.sum()), 1) + untimed
    )
    return costs


def _awake_part(index: ProfileIndex) -> float:
    """Return the part of the wall time in which the thread of the cell did not sleep.

    While it sleeps, it does not wait for what other threads take longer.
    """
    waits, thread = index.profile.tables["thread_waits"], index.profile.info.get("thread_id")
    sleeps = waits.names("function").equals(SLEEP) & (waits["thread_id"] == thread)
    slept_ns = (waits["end_ns"] - waits["start_ns"]).sum(where=sleeps)
    return max(1 - float(slept_ns) / max(index.profile.wall_ns, 1), 0.0)


def _of_runs(index: ProfileIndex) -> Costs | None:
    """Return how much longer ONNX Runtime's runs took than unprofiled ones, by op; None if unknown.

    Other processes delay some runs, so those that were not recorded took the median of such runs.
    """
    ops = index.profile.tables["ops"]
    added = np.zeros(len(ops))
    if not ops.names("category").equals("node").any():
        return added
    found = index.cached(runs)
    call, unprofiled = call_durations(ops, found.row)
    if used_gpu(index) or not len(call) or MISSING in call or MISSING in unprofiled:
        return None
    of_run = np.maximum(call - unprofiled, 0).astype(np.float64)
    for inputs in np.unique(found.inputs[~found.is_recorded]).tolist():
        chosen = ~found.is_recorded & (found.inputs == inputs)
        of_run[chosen] = np.median(of_run[chosen])
    added[found.row] = of_run
    return added


def _cold_ns(index: ProfileIndex) -> IntArray:
    """Return the costs of cold caches at each execution of a statement.

    What ran before it is another execution of its own, or the header of the loop around it.
    """
    ops, parent = index.profile.tables["ops"], index.tree.parent
    own, count = self_host_ns(ops, parent), np.maximum(ops["count"], 1)
    executions_inside = sum_by_group(parent, count, len(ops))
    of_header = np.where(
        parent == MISSING, 0, own[parent] / np.maximum(executions_inside[parent], 1)
    )
    mean = own / count + of_header
    mean *= min(load_of(index.profile.info).get("own_cores", 1.0), 1.0)  # others ran meanwhile
    cold = np.interp(mean, list(_COLD_NS), list(_COLD_NS.values()))
    return np.asarray(np.rint(cold), np.int64)


def _by_type(ops: Table, value: Callable[[str | None], int]) -> IntArray:
    types = ops.names("op_type")
    return np.array([*map(value, types.categories), value(None)])[types.codes]


def _kind(op_type: str | None) -> int:
    return MISSING if op_type in _WITHOUT_COSTS else _OP_TYPES.get(op_type or "", OPS)


def _untimed_ns(op_type: str | None, *, on_host: bool) -> int:
    if _kind(op_type) == MODULES:
        return _MODULE_NS
    of_host = {"autograd": _PASS_NS, "backward": _HOOK_NS}
    return of_host.get(op_type or "", 0) if on_host else 0


def _saved_on_path(index: ProfileIndex, costs: Costs) -> int:
    """Return how much shorter the critical path is without the costs of ops, and those of nodes."""
    from epprof_nb.analysis.critical_path.chain import CriticalPath

    path = index.cached(CriticalPath, "launch")
    if not path.length_ns:
        return 0
    host = _host_factors(index, costs, path.input.waiting_calls)
    return max(path.length_ns - path.input.length_with(host, _node_factors(index)), 0)


def _host_factors(index: ProfileIndex, costs: Costs, is_wait: BoolArray) -> Costs:
    """Return the part of the host time of each op that is left without the costs."""
    ops, calls = index.profile.tables["ops"], index.profile.tables["api_calls"]
    waited = np.where(is_wait, calls["end_ns"] - calls["start_ns"], 0)
    own = self_host_ns(ops, index.tree.parent)
    own = np.maximum(own - sum_by_group(index.call_op, waited, len(ops))[:-1], 1)
    factors: Costs = np.maximum(np.rint(_STEPS * (1 - costs / own)), 1) / _STEPS
    return factors


def _node_factors(index: ProfileIndex) -> Costs:
    """Return the part of the time of each activity that is left without the costs of nodes."""
    activities = index.profile.tables["activities"]
    duration = np.maximum(activities["end_ns"] - activities["start_ns"], 1)
    is_node = activities["graph_node_id"] != MISSING
    factors: Costs = np.where(is_node, np.maximum(1 - _NODE_NS / duration, 0), 1.0)
    return factors
