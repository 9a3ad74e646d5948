"""by_run: the runs of ONNX Runtime sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.op_totals import totals
from epprof_nb.analysis.base.result_table import OptionalColumn, ResultTable, categorical, optional
from epprof_nb.analysis.base.unknown_device_times import missing_if_unknown
from epprof_nb.analysis.onnx.profiler_slowdown import call_durations
from epprof_nb.analysis.onnx.recorded_runs import (
    CAPTURED,
    MISMATCHED,
    NOT_RECORDED,
    RECORDED,
    node_events,
)
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.data import ort_runs

if TYPE_CHECKING:
    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray


@missing_if_unknown
def run_table(index: ProfileIndex, *, attribution: Attribution = "launch") -> ResultTable:
    """Return the columns of `Profile.by_run`."""
    ops, tree = index.profile.tables["ops"], index.tree
    is_run = ort_runs.is_run(ops)
    if attribution == "launch":  # a run of an earlier profile has only captured a graph
        is_run &= ~ops.names("status").equals("earlier")
    rows = np.flatnonzero(is_run)
    groups = np.full(len(ops), MISSING, np.int64)
    groups[rows] = np.arange(len(rows))
    sums = totals(index, groups, tree.nearest_ancestor(is_run), attribution=attribution)
    is_node = ops.names("category").equals("node")
    own_nodes = tree.subtree_sum(is_node.astype(np.int64))[rows]
    graph_id, replayed_nodes = _replays(index, groups, is_run, is_node, len(rows))
    measures = ("device_ns", "kernels", "memcpys", "bytes")
    call, unprofiled = call_durations(ops, rows)
    is_known = (call != MISSING) & (unprofiled != MISSING)
    states = _known_by(node_events(ops, rows), graph_id, own_nodes, replayed_nodes)
    nodes = own_nodes + replayed_nodes
    has_unknown = np.array([state in (NOT_RECORDED, MISMATCHED) for state in states], np.bool_)
    return ResultTable(
        {
            "run_id": optional(ops["run_id"][rows]),
            "session": optional(ops["session"][rows]),
            "repeat": optional(ops["repeat"][rows]),
            "thread_id": ops["thread_id"][rows],
            "start_ns": ops["start_ns"][rows],
            "host_ns": ops["duration_ns"][rows],
            "graph_id": optional(graph_id),
            "nodes": OptionalColumn(nodes, has_unknown & (nodes == 0)),
            "status": ops.names("status").take(rows),
            "node_events": categorical(states),
            **{name: sums.measures[name] for name in measures},
            "call_ns": optional(call),
            "unprofiled_ns": optional(unprofiled),
            "stretch": np.where(is_known, call / np.where(is_known, unprofiled, 1), np.nan),
        }
    )


def _replays(
    index: ProfileIndex, groups: IntArray, is_run: BoolArray, is_node: BoolArray, runs: int
) -> tuple[IntArray, IntArray]:
    """Return the graph that each run replayed or captured, and the nodes of replays.

    Parameters
    ----------
    index
        Index of the profile.
    groups
        Number of the run of each op, `MISSING` for other ops.
    is_run, is_node
        Which ops are runs and nodes.
    runs
        Number of runs.

    Returns
    -------
    graph_id, nodes
        int64 arrays, one value per run: the last graph replayed, else captured, `MISSING` for none,
        and executions of known nodes by replays.
    """
    activities, tree = index.profile.tables["activities"], index.tree
    graph_id, nodes = np.full(runs, MISSING, np.int64), np.zeros(runs, np.int64)
    run_of_op = np.append(groups, MISSING)[tree.nearest_ancestor(is_run)]
    graphs = index.profile.tables["graphs"]
    run_of_graph = np.append(run_of_op, MISSING)[tree.rows(graphs["capture_op_id"])]
    graph_id[run_of_graph[run_of_graph >= 0]] = graphs["graph_id"][run_of_graph >= 0]
    replayed = (activities["graph_id"] != MISSING) | (activities["capture_op_id"] != MISSING)
    rows = np.flatnonzero(index.is_device_work & replayed & (index.activity_op >= 0))
    run = run_of_op[index.activity_op[rows]]
    rows, run = rows[run >= 0], run[run >= 0]
    graph_id[run] = activities["graph_id"][rows]
    captured = tree.rows(activities["capture_op_id"][rows])
    node = np.append(tree.nearest_ancestor(is_node), MISSING)[captured]
    known = node >= 0
    if known.any():
        _, first = group_codes(run[known], node[known], activities["correlation_id"][rows][known])
        nodes = sum_by_group(run[known][first], np.ones(len(first), np.int64), runs)[:-1]
    return graph_id, nodes


def _known_by(
    states: list[str | None], graph_id: IntArray, own_nodes: IntArray, replayed_nodes: IntArray
) -> list[str | None]:
    """Return how the nodes of runs are known; ONNX Runtime does not report events of replays."""
    of_replay = (own_nodes == 0) & ((graph_id != MISSING) | (replayed_nodes > 0))
    return [
        (CAPTURED if nodes else NOT_RECORDED) if replays and state == RECORDED else state
        for state, replays, nodes in zip(
            states, of_replay.tolist(), replayed_nodes.tolist(), strict=True
        )
    ]
