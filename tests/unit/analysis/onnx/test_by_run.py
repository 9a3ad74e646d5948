"""by_run: one row per run of an ONNX Runtime session."""

from __future__ import annotations

import numpy as np

from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, API_CALLS, OPS
from epprof_nb.data.table import Table
from epprof_nb.profiles import Profile


def replayed(*, captured=True) -> Profile:
    """A run that replays a graph, and the run of an earlier profile that captured it."""
    ops = Table(
        OPS,
        {
            "op_id": np.array([1, 2, 3]),
            "parent_op_id": np.array([-1, 1, -1]),
            "name": CategoryColumn.of(["model_run", "node", "model_run"]),
            "op_type": CategoryColumn.of(["run", "Relu", "run"]),
            "category": CategoryColumn.of(["session", "node", "session"]),
            "run_id": np.array([-1, -1, 0]),
            "start_ns": np.array([-90, -80, 10]),
            "end_ns": np.array([-10, -20, 50]),
            "duration_ns": np.array([80, 60, 40]),
            "count": np.ones(3, np.int64),
            "status": CategoryColumn.of(["earlier", "earlier", "complete"]),
        },
    )
    activities = Table(
        ACTIVITIES,
        {
            "kind": CategoryColumn.of(["kernel"]),
            "name": CategoryColumn.of(["relu"]),
            "start_ns": np.array([20]),
            "end_ns": np.array([27]),
            "duration_ns": np.array([7]),
            "op_id": np.array([3]),
            "graph_id": np.array([4]),
            "capture_op_id": np.array([2 if captured else -1]),
        },
    )
    tables = {"ops": ops, "activities": activities, "api_calls": Table(API_CALLS, {})}
    return Profile(tables, {"wall_ns": 100}, {})


def test_runs_of_an_earlier_profile_are_left_out():
    runs = replayed().by_run()
    assert runs["run_id"].tolist() == [0]
    assert runs["device_ns"].tolist() == [7]


def test_the_nodes_of_a_replay_are_those_that_the_graph_captured():
    runs = replayed().by_run()
    assert runs[["graph_id", "nodes", "node_events"]].iloc[0].tolist() == [4, 1, "captured"]


def test_a_replay_of_a_graph_captured_before_the_profile_has_unknown_nodes():
    runs = replayed(captured=False).by_run()
    assert runs[["graph_id", "node_events"]].iloc[0].tolist() == [4, "not recorded"]
    assert runs["nodes"].isna().tolist()[0]


def test_capture_attribution_counts_for_the_capturing_run():
    runs = replayed().by_run(attribution="capture")
    assert runs["device_ns"].tolist() == [7, 0]
