"""Ops of earlier sessions that captured the nodes of a graph."""

from types import SimpleNamespace

import numpy as np

from epprof_nb.data.schema import MISSING
from epprof_nb.recording.session.correlate import _with_earlier_ops
from epprof_nb.recording.session.graph_node_registry import GraphNodeRegistry
from tests.helpers.tiny import op, profile


def ops(*rows):
    return profile(list(rows)).tables["ops"]


def test_ops_of_earlier_sessions_keep_their_parents_but_not_their_runs():
    nodes = GraphNodeRegistry()
    nodes.add(
        {
            name: np.array([n])
            for name, n in (("node", 5), ("original", 0), ("op_id", 2), ("stack_id", -1))
        }
    )
    nodes.remember_ops(ops(op(1, "run", 0, 9, run_id=0), op(2, "node", 1, 5, 1, run_id=0)))
    now = ops(op(7, "replay", 10, 20, run_id=0))
    recording = SimpleNamespace(graph_nodes=nodes)
    found, capture_op = _with_earlier_ops(recording, now, np.array([2, MISSING, 99]))
    assert capture_op.tolist() == [2, MISSING, MISSING]
    rows = zip(
        found["op_id"].tolist(), found["parent_op_id"].tolist(), found["run_id"].tolist(),
        found.names("status").to_list(), strict=True,
    )  # fmt: skip
    # Run 0 of this session is another one.
    assert sorted(rows) == [
        (1, MISSING, MISSING, "earlier"), (2, 1, MISSING, "earlier"), (7, MISSING, 0, "complete"),
    ]  # fmt: skip
