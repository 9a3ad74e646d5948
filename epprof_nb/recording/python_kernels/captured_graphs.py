"""Graphs of the provider of Python kernels: their nodes, and the ops that captured them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.core.ort_binding import PROVIDER
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import GRAPHS, MISSING, OPS
from epprof_nb.data.table import Table
from epprof_nb.recording.recorder import captured_nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.core.python_kernel_log import CapturedGraph

CAPTURE_NAME = "graph_capture"
"""Name of the op around a capture, as in native/ep/graphs/captured_graph.cpp."""


def nodes(graphs: Sequence[CapturedGraph]) -> dict[str, IntArray]:
    """Return the nodes in the form of `epprof_nb.recording.recorder.RecordedGraphs.nodes`."""
    return captured_nodes({n.graph_node_id: n.op_id for graph in graphs for n in graph.nodes})


def capture_ops(graphs: Sequence[CapturedGraph]) -> Table | None:
    """Return rows of the captures and their nodes, with absolute times."""
    if not graphs:
        return None
    rows: list[tuple[Any, ...]] = []
    for graph in graphs:
        common = (graph.session, graph.op_id)
        rows.append((
            graph.op_id, graph.parent_op_id or MISSING, CAPTURE_NAME, "event", "session", None,
            MISSING, graph.start_ns, graph.end_ns, graph.session,
        ))  # fmt: skip
        rows += [
            (node.op_id, common[1], node.name, node.op_type, "node", PROVIDER, node.node_index,
             node.start_ns, node.end_ns, common[0])
            for node in graph.nodes
        ]  # fmt: skip
    op_id, parent, name, op_type, category, provider, index, start, end, session = zip(
        *rows, strict=True
    )
    starts, ends = np.array(start, np.int64), np.array(end, np.int64)
    return Table(
        OPS,
        {
            "op_id": np.array(op_id, np.int64),
            "parent_op_id": np.array(parent, np.int64),
            "name": CategoryColumn.of(name),
            "op_type": CategoryColumn.of(op_type),
            "category": CategoryColumn.of(category),
            "source": CategoryColumn.constant("onnxruntime", len(rows)),
            "provider": CategoryColumn.of(provider),
            "node_index": np.array(index, np.int64),
            "session": np.array(session, np.int64),
            "start_ns": starts,
            "end_ns": ends,
            "duration_ns": ends - starts,
            "count": np.ones(len(rows), np.int64),
            "status": CategoryColumn.constant("complete", len(rows)),
        },
    )


def table(graphs: Sequence[CapturedGraph]) -> Table | None:
    """Return the graphs with their session, id and capture."""
    if not graphs:
        return None
    return Table(
        GRAPHS,
        {
            "graph_id": np.array([graph.graph_id for graph in graphs], np.int64),
            "session": np.array([graph.session for graph in graphs], np.int64),
            "gpu_graph_id": np.array([graph.gpu_graph_id for graph in graphs], np.int64),
            "capture_op_id": np.array([graph.op_id for graph in graphs], np.int64),
            "captured_in": CategoryColumn.of([graph.captured_in for graph in graphs]),
            "nodes": np.array([sum(n.launches for n in graph.nodes) for graph in graphs], np.int64),
        },
    )
