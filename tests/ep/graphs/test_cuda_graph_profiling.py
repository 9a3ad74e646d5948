"""Replays on CUDA devices in profiles, with a stand-in for the driver and for CUPTI's records."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import epprof_nb
from epprof_nb.core.python_kernel_log import KERNELS, CapturedGraph, GraphNode
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, MISSING
from epprof_nb.data.table import Table
from epprof_nb.recording.python_kernels import replayed_nodes
from tests.ort import models


@pytest.fixture
def taken(monkeypatch):
    """The replays that the recorder takes."""
    seen = []
    original = KERNELS.take_replays

    def take():
        replays = original()
        seen.extend(replays)
        return replays

    monkeypatch.setattr(KERNELS, "take_replays", take)
    return seen


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("captured", ["before the profile", "in the profile"])
def test_each_replay_has_the_run_and_the_nodes_of_its_graph(ep, fake_cuda, x, taken, captured):
    @ep.kernel("Sigmoid", types="float32")
    def sigmoid(ctx, x):
        y = ctx.out(x.shape)
        ctx.xp.exp(-x, out=y)
        y += 1
        ctx.xp.divide(1, y, out=y)

    made = ep.session(models.chain(), device="cuda:0", enable_cuda_graph=True)
    if captured == "before the profile":
        made.run(None, {"x": x})
    with epprof_nb.profile() as prof:
        for _ in range(3):
            made.run(None, {"x": x})
    assert len(taken) == 3
    assert (prof.ops.loc[[op for op, _ in taken], "name"] == "model_run").all()
    assert len({op for op, _ in taken}) == 3
    (graph,) = {graph for _, graph in taken}
    assert [(n.name, n.op_type) for n in graph.nodes] == [
        ("first", "Relu"), ("second", "MatMul"), ("third", "Sigmoid"),
    ]  # fmt: skip
    assert [n.launches for n in graph.nodes[:2]] == [1, 1]
    assert graph.nodes[2].launches >= 4
    if captured == "in the profile":
        recorded = prof.ops.loc[[node.op_id for node in graph.nodes]]
        assert list(recorded["name"]) == ["first", "second", "third"]
    made.run(None, {"x": x})
    with epprof_nb.profile():
        pass
    assert len(taken) == 3  # what ran outside of the profiles is not in them


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("captured", ["before the profile", "in the profile"])
def test_a_graph_may_be_released_before_the_profile_ends(ep, fake_cuda, x, taken, captured):
    made = ep.session(models.chain(), device="cuda:0", enable_cuda_graph=True)
    if captured == "before the profile":
        made.run(None, {"x": x})
    with epprof_nb.profile():
        for _ in range(2):
            made.run(None, {"x": x})
        made.release_captured_graph(0)
        gc.collect()
    assert len(taken) == 2
    assert all(len(graph.nodes) == 3 for _, graph in taken)


def test_nothing_is_kept_of_graphs_that_are_released(ep, fake_cuda, x):
    made = ep.session(models.chain(), device="cuda:0", enable_cuda_graph=True)
    before = len(KERNELS._cuda_graphs)
    for _ in range(5):
        made.run(None, {"x": x})
        assert len(KERNELS._cuda_graphs) == before + 1
        made.release_captured_graph(0)
        gc.collect()
        assert len(KERNELS._cuda_graphs) == before
    with epprof_nb.profile():
        made.run(None, {"x": x})
    del made
    gc.collect()
    assert len(KERNELS._cuda_graphs) == before


GRAPH = CapturedGraph(
    7, 1, 0, 100, 0, "line", 10, 20,
    (GraphNode(1, 101, "a", "Abs", 0, 11, 12, 1), GraphNode(2, 102, "b", "Neg", 1, 13, 14, 2)),
)  # fmt: skip


def records(*replays, graph_id=50):
    """Records of replays: for each, its op, correlation id and node ids in the order of time."""
    rows = [(op, correlation, node) for op, correlation, nodes in replays for node in nodes]
    op, correlation, node = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    start = np.arange(len(rows), dtype=np.int64) * 10
    return op, Table(
        ACTIVITIES,
        {
            "kind": CategoryColumn.constant("kernel", len(rows)),
            "start_ns": start,
            "end_ns": start + 5,
            "correlation_id": correlation,
            "graph_id": np.where(node == MISSING, MISSING, graph_id),
            "graph_node_id": node,
        },
    )


def identify(*replays, of=((1, GRAPH),)):
    op, table = records(*replays)
    return replayed_nodes.identify(table, op, list(of))


def test_the_records_of_a_replay_are_those_of_its_nodes_in_order():
    found = identify((1, 5, [33, 31, 32]), (2, 6, [33, 31, 32]), of=((1, GRAPH), (2, GRAPH)))
    nodes = dict(zip(found.nodes["node"], found.nodes["op_id"], strict=True))
    assert nodes == {33: 101, 31: 102, 32: 102}
    assert list(found.capture_ops["op_id"]) == [100, 101, 102]
    assert found.facts["graph_id"].tolist() == [50]
    assert (found.facts["session"][0], found.facts["nodes"][0]) == (1, 3)


@pytest.mark.parametrize("nodes", [[31, 32], [31, 32, 33, 34]], ids=["lost", "too many"])
def test_a_replay_with_another_number_of_records_is_left_out(nodes):
    assert identify((1, 5, nodes)) is None
    found = identify((1, 5, nodes), (1, 6, [41, 42, 43]))
    assert sorted(found.nodes["node"]) == [41, 42, 43]


def test_replays_of_others_are_left_out():
    assert identify((2, 5, [31, 32, 33])) is None
    assert identify((1, 5, [MISSING, MISSING, MISSING])) is None
