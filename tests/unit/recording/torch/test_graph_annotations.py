"""Annotations of PyTorch for nodes of CUDA graphs, in the format of torch 2.13."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

from epprof_nb.core.options import Options
from epprof_nb.data.schema import MISSING
from epprof_nb.recording.session.framework_recorder import FrameworkRecorder
from epprof_nb.recording.session.graph_node_registry import GraphNodeRegistry


@pytest.fixture
def annotations(monkeypatch):
    """Kept annotations: lists of dicts by graph id (upper 32 bits) and node id."""
    kept = {}
    module = types.ModuleType("torch.cuda._graph_annotations")
    module.get_kernel_annotations = lambda: kept
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return kept


def node(graph, number):
    return graph << 32 | number


@pytest.fixture
def recorder():
    made = FrameworkRecorder()
    made.start(Options(frameworks=("torch",)))
    yield made
    made.stop()


def names_of(output):
    ops = output.graphs.capture_ops
    return ops.names("name").to_list() if ops is not None else []


def test_nodes_have_an_op_for_each_annotation(recorder, annotations):
    annotations[node(7, 1)] = [{"str": "attention"}]
    annotations[node(7, 2)] = [{"str": "attention"}]
    annotations[node(7, 3)] = [{"str": "mlp", "stream": 60, "layer": 3}]
    annotations[node(7, 4)] = [{"layer": 3}]
    output = recorder.drain()
    assert names_of(output) == ["attention", "mlp", '{"layer": 3}']
    assert output.graphs.capture_ops.names("args").to_list() == [
        None, '{"stream": 60, "layer": 3}', '{"layer": 3}',
    ]  # fmt: skip
    nodes = GraphNodeRegistry()
    nodes.add(output.graphs.nodes)
    nodes.remember_ops(output.graphs.capture_ops)
    of_node = nodes.capture_op(output.graphs.nodes["node"])
    assert of_node.tolist()[:2] == [output.graphs.capture_ops["op_id"][0]] * 2
    assert len(nodes.earlier_ops(of_node)) == 3
    assert nodes.capture_op(output.graphs.nodes["node"] + 100).tolist() == [MISSING] * 4


def test_annotations_are_taken_once(recorder, annotations):
    annotations[node(7, 1)] = [{"str": "attention"}]
    recorder.drain()
    assert recorder.drain().graphs.nodes == {}
    annotations[node(8, 1)] = [{"str": "attention"}]  # another graph
    annotations[node(7, 1)].append({"str": "again"})  # captured anew
    output = recorder.drain()
    assert output.graphs.nodes["node"].tolist() == [node(7, 1), node(8, 1)]
    assert names_of(output) == ["again"]


def test_a_recorded_capture_is_preferred(recorder, annotations):
    annotations[node(9, 2)] = [{"str": "attention"}]
    output = recorder.drain()
    nodes = GraphNodeRegistry()
    nodes.add(output.graphs.nodes)
    ids = [node(1, 2), node(9, 2)]
    captured = {"node": ids, "original": [0, ids[0]], "op_id": [5, 0], "stack_id": [-1, -1]}
    nodes.add({name: np.array(values, np.int64) for name, values in captured.items()})
    assert nodes.capture_op(output.graphs.nodes["node"]).tolist() == [5]


def test_without_annotations(recorder):
    assert recorder.drain().graphs.nodes == {}
