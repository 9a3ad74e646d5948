"""Time of the host that recording took, by op, and what is left of the ops without it.

The threads time a sample of what the profiler does in them. Each op gets its part of the sums.
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
from epprof_nb.analysis.base.processor_use import (
    NOTABLE_SHARE,
    load_of,
    possible_share_kept_from_cores,
    waits,
)
from epprof_nb.analysis.critical_path.interleaved_ops import suspended_ops
from epprof_nb.analysis.onnx.profiler_slowdown import call_durations
from epprof_nb.analysis.onnx.unprofiled_times import runs
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.core.recording_costs import BACKWARD, LAUNCHES, MODULES, NAMES, OPS, RUNS, STATEMENTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table

    Costs = npt.NDArray[np.float64]
    Error = Literal["low", "none", "high"]

ERRORS: tuple[Error, Error] = ("low", "high")
NOT_TIMED = "what recording takes was not timed"
_OPERATORS = "frameworks recorded their operators, which takes an unknown time"
_NO_UNPROFILED_RUNS = "the process had not run its ONNX Runtime sessions like this before"
_MOST_OF_OP = 0.99
"""Maximum part of an op that recording took: a larger one would leave the code no time."""
_ERROR, _ERROR_OF_RUNS = 0.35, 0.6
"""Errors that the time which recording took of an op may have: as a share of it, and in a run of
ONNX Runtime, of what the op takes itself: recording may take more of some nodes than of others."""
_PART_OF_NODES = 0.75
"""Part of an unprofiled run in its nodes: of runs of 20 and 40 short ones, 0.7 and 0.85."""
_OWN_COUNT = 32
"""Number of executions of a statement in one row from which the row has a sample of its own."""
_OP_TYPES = {
    "line": STATEMENTS, "module": MODULES, "recompute": MODULES, "run": RUNS,
    "autograd": BACKWARD, "backward": BACKWARD,
}  # fmt: skip
"""Kinds of ops that are not `OPS`, by type."""
_WITHOUT_COSTS = frozenset({"cell", "gc", "hlo", "hlo_module"})
"""Types of ops that are written once per profile, or found after it."""
_ELSEWHERE = {OPS: 1.2, MODULES: 0.3, BACKWARD: 0.15, LAUNCHES: 0.65}
"""Cost of recording elsewhere, as a share of the time that it takes in place: in the interpreter
and the autograd engine, which call it, in caches that it leaves cold, and at the ends of ops. Of
launches, those of the host device; `_LAUNCH_NS` is for those of a GPU."""
_COLD_NS = {100: 0, 600: 35, 3_000: 60, 12_000: 350, 30_000: 900}
"""The same of each statement, ns, by its mean duration: what runs in between evicts the profiler's
code and data from the caches, before the part that is timed."""
_MODULE_NS = 600
"""The same of each call of a module, ns."""
_PASS_NS, _HOOK_NS = 25_000, 2_500
"""The same of each backward pass on the host, and of each module in it, which has a hook."""
_LAUNCH_NS = {10_000: 560, 20_000: 1_130, 35_000: 1_970}
"""Time of CUPTI per call, and of the profiler before and after what it times, ns, by the time from
one call to the next: what runs in between evicts their code and data from the caches. Fitted on 34
programs on a host of an H200. With values that were fitted on 11 of them, the estimates of the 23
others were right, too."""
_NODE_NS = {1_000: 700, 2_000: 90, 4_000: 50}
"""Time of CUPTI per node of a graph, ns, by the duration of the node; fitted on two programs."""


class ProfilerCosts(NamedTuple):
    """Time that recording took of the threads of the program, ns, or why it is not known.

    Attributes
    ----------
    by_kind
        One value per op by kind of `epprof_nb.core.recording_costs`.
    of_code
        One value per op: time of ONNX Runtime's runs without recording.
    usual
        One value per op: costs of runs that are those of the median run, which nobody delayed.
    stretch
        How many times longer threads took because they waited for cores that others used.
    """

    by_kind: dict[int, Costs]
    of_code: Costs = np.empty(0)
    usual: Costs = np.empty(0)
    stretch: float = 1.0
    reason: str = ""

    def of_ops(self, error: Error = "none") -> Costs:
        """Return the wall time of all kinds, one value per op, or a bound of it.

        If others delayed only the code itself, the times of threads are not stretched. Those of
        runs are what they took longer.
        """
        sign = {"low": -1, "none": 0, "high": 1}[error]
        of_threads = np.sum([ns for kind, ns in self.by_kind.items() if kind != RUNS], axis=0)
        stretch = 1.0 if error == "low" else self.stretch
        of_runs = (
            self.by_kind[RUNS] + (stretch - 1) * self.usual + sign * _ERROR_OF_RUNS * self.of_code
        )
        total: Costs = (1 + sign * _ERROR) * stretch * of_threads + np.maximum(of_runs, 0)
        return total


def profiler_costs(index: ProfileIndex) -> ProfilerCosts:
    """Return what recording took of the program's threads.

    Frameworks that record for the profiler take time that is not known. What ONNX Runtime's runs
    took longer is known without a GPU, if the process has run them unprofiled before.
    """
    sums = index.profile.info.get("recording_costs")
    if not sums or has_several(index):
        return ProfilerCosts({}, reason=NOT_TIMED)
    if index.cached(lacks_records):
        return ProfilerCosts({}, reason="records are missing")
    if index.profile.tables["ops"].names("category").equals("operator").any():
        return ProfilerCosts({}, reason=_OPERATORS)
    of_runs = _of_runs(index)
    if isinstance(of_runs, str):
        return ProfilerCosts({}, reason=of_runs)
    costs = {kind: _of_ops(index, kind, sums.get(name, 0)) for kind, name in enumerate(NAMES)}
    added, of_code, usual = of_runs
    costs[RUNS] += added
    load = load_of(index.profile.info)
    own_cores = load.get("own_cores", 0.0)
    stretch = 1 + waits(load)[1] / own_cores if own_cores else 1.0
    return ProfilerCosts(costs, of_code, usual, stretch)


def _of_ops(index: ProfileIndex, kind: int, timed_ns: int) -> Costs:
    """Return what recording events of a kind took, by op: each event took the same."""
    ops = index.profile.tables["ops"]
    if kind == LAUNCHES:
        return _of_calls(index, timed_ns)
    known = (_by_type(ops, _kind) == kind) & has_host_time(ops)
    count = np.where(known, ops["count"], 0)
    events = _statement_weights(index, count) if kind == STATEMENTS else count * 1.0
    each = _by_type(ops, partial(_untimed_ns, on_host=not used_gpu(index)))
    if kind == STATEMENTS:
        each = _cold_ns(index)
    untimed = count * each
    costs: Costs = (
        events * timed_ns * (1 + _ELSEWHERE.get(kind, 0.0)) / max(events.sum(), 1) + untimed
    )
    return costs


def _of_calls(index: ProfileIndex, timed_ns: int) -> Costs:
    """Return what recording API calls took, by op."""
    ops, calls = index.profile.tables["ops"], index.profile.tables["api_calls"]
    of_host = calls.names("domain").equals("host").astype(np.int64)
    on_host, on_gpu = (
        sum_by_group(index.call_op, chosen, len(ops))[:-1] for chosen in (of_host, 1 - of_host)
    )
    interval = index.profile.wall_ns / max(len(calls), 1)
    untimed = np.interp(interval, list(_LAUNCH_NS), list(_LAUNCH_NS.values()))
    each = timed_ns / max(len(calls), 1)
    costs: Costs = on_host * each * (1 + _ELSEWHERE[LAUNCHES]) + on_gpu * (each + untimed)
    return costs


def _statement_weights(index: ProfileIndex, count: IntArray) -> Costs:
    """Return what statements took at each op, in proportion.

    Begins and ends of functions and generators, and recursive calls, have no rows. A sample says
    where they took time; rows of one line that ran once share theirs, because the sample is small.
    """
    ops, timed = index.profile.tables["ops"], index.profile.info.get("statement_costs") or {}
    rows = index.tree.rows(np.array([*map(int, timed)], np.int64))
    ns = np.array([*timed.values()], np.float64)
    found = np.bincount(rows[rows >= 0], ns[rows >= 0], len(ops))
    if not found.any():
        return count.astype(np.float64)
    names, cells = ops.names("name").codes, ops.names("cell").codes
    alone = np.where(ops["count"] >= _OWN_COUNT, np.arange(len(ops)), MISSING)
    group, _ = group_codes(names, cells, ops["line"], alone)
    own = np.maximum(self_host_ns(ops, index.tree.parent), 1)
    weights: Costs = own * (np.bincount(group, found) / np.bincount(group, own))[group]
    return weights


def _of_runs(index: ProfileIndex) -> tuple[Costs, Costs, Costs] | str:
    """Return the times of runs by op, as in `ProfilerCosts`: added, of code and usual; or why not.

    Other processes delay some runs, so those that were not recorded took the median of such runs.
    Each node of a run took as much longer, because recording it takes a fixed time, and the rest of
    the run most of it, because the next event begins late.
    """
    ops = index.profile.tables["ops"]
    if not ops.names("category").equals("node").any():
        return (np.zeros(len(ops)),) * 3
    found = index.cached(runs)
    call, unprofiled = call_durations(ops, found.row)
    if used_gpu(index):
        return "what ONNX Runtime's runs on a GPU took longer is not known"
    if possible_share_kept_from_cores(index.profile.info) >= NOTABLE_SHARE:
        return "other processes took cores from ONNX Runtime's runs, which took longer, too"
    if not len(call) or MISSING in call or MISSING in unprofiled:
        return _NO_UNPROFILED_RUNS
    of_run = np.maximum(call - unprofiled, 0).astype(np.float64)
    for inputs in np.unique(found.inputs[~found.is_recorded]).tolist():
        chosen = ~found.is_recorded & (found.inputs == inputs)
        of_run[chosen] = np.median(of_run[chosen])
    number = np.full(len(ops) + 1, MISSING)
    number[found.row] = np.arange(len(found.row))
    run = number[index.tree.nearest_ancestor(number[:-1] >= 0)]
    own = np.where(run >= 0, self_host_ns(ops, index.tree.parent), 0)
    total = np.maximum(sum_by_group(run, own, len(of_run))[:-1], 1)
    in_run = np.minimum(of_run, np.maximum(total - unprofiled, 0))
    left = total - in_run
    is_node = ops.names("category").equals("node") & np.append(found.is_recorded, False)[run]
    of_nodes = sum_by_group(np.where(is_node, run, MISSING), own, len(of_run))[:-1]
    count = sum_by_group(np.where(is_node, run, MISSING), np.ones_like(own), len(of_run))[:-1]
    left_of_nodes = np.minimum(
        of_nodes, np.maximum(_PART_OF_NODES * left, left - (total - of_nodes))
    )
    each = (of_nodes - left_of_nodes) / np.maximum(count, 1)
    of_rest = (left - left_of_nodes) / np.maximum(total - of_nodes, 1)
    of_code = own * np.append(of_rest, 0.0)[run]
    nodes, of_node = np.flatnonzero(is_node), run[is_node]
    more = np.maximum(own[nodes] - each[of_node], 0)  # others may have delayed a node: they sum up
    whole = np.maximum(np.bincount(of_node, more, len(of_run)), 1)
    of_code[nodes] = np.minimum(more * (left_of_nodes / whole)[of_node], own[nodes])
    added = own - of_code
    around = index.tree.parent[found.row]  # recording begins and ends in the call, around the run
    recorded = np.append(found.is_recorded, True)
    usual = np.where(recorded[run], 0.0, added)
    for values, chosen in ((added, around >= 0), (usual, (around >= 0) & ~found.is_recorded)):
        np.add.at(values, around[chosen], (of_run - in_run)[chosen])
    return added, of_code, usual


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


def own_host_ns(index: ProfileIndex, is_wait: BoolArray) -> IntArray:
    """Return the host time of each op, ns, without the ops below it and calls that wait."""
    ops, calls = index.profile.tables["ops"], index.profile.tables["api_calls"]
    waited = np.where(is_wait, calls["end_ns"] - calls["start_ns"], 0)
    waited = sum_by_group(index.call_op, waited, len(ops))[:-1]
    own: IntArray = np.maximum(self_host_ns(ops, index.tree.parent) - waited, 0)
    return own


def host_left(index: ProfileIndex, own: IntArray, costs: Costs) -> Costs:
    """Return the part of the own host time of each op that is left without costs, ns.

    Markers take time before an op begins, too. So costs beyond the time of an op are in that of the
    op around it, or anywhere. Where ops were suspended, nothing says when, so all below the op
    around them have the same part.
    """
    tree, suspended = index.tree, suspended_ops(index)
    costs, room, beyond = costs.copy(), _MOST_OF_OP * own, 0.0
    order = np.argsort(-tree.depth, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(tree.depth[order])) + 1):
        more = np.maximum(costs[rows] - room[rows], 0)
        if more.any():
            costs[rows] -= more
            inside = tree.parent[rows] >= 0
            np.add.at(costs, tree.parent[rows[inside]], more[inside])
            beyond += more[~inside].sum()
    room -= costs
    costs += room * min(beyond / max(room.sum(), 1.0), 1.0)
    left: Costs = 1 - costs / np.maximum(own, 1)
    if suspended.any():
        around = np.zeros(len(own) + 1, np.bool_)
        around[tree.nearest_ancestor(~suspended)[suspended]] = True
        outermost = tree.is_outermost(np.where(around[:-1], 0, MISSING))
        pool = tree.nearest_ancestor(outermost)
        total = sum_by_group(pool, own, len(own))[:-1]
        kept = sum_by_group(pool, np.rint(own * left).astype(np.int64), len(own))[:-1]
        mean = kept / np.maximum(total, 1)
        left = np.where(pool >= 0, mean[pool], left)
    return left


def nodes_left(index: ProfileIndex) -> Costs:
    """Return the part of the time of each activity that is left without the costs of nodes."""
    activities = index.profile.tables["activities"]
    duration = np.maximum(activities["end_ns"] - activities["start_ns"], 1)
    is_node = activities["graph_node_id"] != MISSING
    added = np.interp(duration, list(_NODE_NS), list(_NODE_NS.values()))
    left: Costs = np.where(is_node, np.maximum(1 - added / duration, 0), 1.0)
    return left


def grouped(factors: Costs, groups: int) -> Costs:
    """Return factors with at most a number of different values: means of neighbouring ones."""
    values, code = few_values(factors, groups, np.ones(len(factors)))
    return values[code]


def few_values(factors: Costs, groups: int, ns: Costs) -> tuple[Costs, IntArray]:
    """Return at most a number of values for factors, and the one of each, by number.

    They are means of neighbouring factors. `ns` are the times to which the factors apply, whose sum
    they do not change.
    """
    values, code = np.unique(factors, return_inverse=True)
    if len(values) <= groups:
        return values, code
    weights = 1 + np.bincount(code, ns)
    group = np.repeat(np.arange(groups), _sizes(len(values), groups))
    means: Costs = np.bincount(group, values * weights) / np.bincount(group, weights)
    return means, group[code]


def _sizes(count: int, groups: int) -> IntArray:
    """Return the sizes of the parts of `numpy.array_split`."""
    return np.full(groups, count // groups) + (np.arange(groups) < count % groups)
