"""Every kernel of the package in a graph: a replay gives the results of an eager run."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from epprof_nb import _native
from epprof_nb.core.errors import KernelError
from tests.ep.operators.test_contrib_operators import DOMAIN, LIMITS
from tests.ep.operators.test_operators import CASES
from tests.ep.sessions import model, on_cpu, one_node

NOT_CAPTURED = {
    "Shape": "its only output is in host memory, so it launches nothing that a graph could hold",
}
"""Operators whose own model does not get a graph, and the reasons."""


def of_case(op_type, case):
    """The model of one node, and the values of its inputs."""
    *values, attributes, outputs = [*case, 1] if not isinstance(case[-1], int) else case
    if not isinstance(attributes, dict):
        values, attributes = [*values, attributes], {}
    return one_node(op_type, values, attributes, outputs=outputs)


def changed(feeds, host_inputs):
    """Other inputs of the same shapes, except for inputs that contain shapes."""
    return {
        name: value[..., ::-1].copy() if value.ndim and name not in host_inputs else value
        for name, value in feeds.items()
    }


@pytest.mark.parametrize(
    ("op_type", "case"),
    [
        pytest.param(op_type, variant, id=f"{op_type}-{i}")
        for op_type, variants in CASES.items()
        for i, variant in enumerate(variants)
    ],
)
def test_a_replay_gives_what_an_eager_run_gives(ep, op_type, case):
    serialized, feeds = of_case(op_type, case)
    eager = ep.session(serialized)
    made = ep.session(serialized, enable_cuda_graph=True)
    host_inputs = made._epprof_graphs.host_inputs(made)
    others = changed(feeds, host_inputs)
    for given in (feeds, others, feeds, others):
        results = made.run(None, given)
        for got, want in zip(results, eager.run(None, given), strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_array_equal(got, want)
    (slot,) = made._epprof_graphs._threads.slots.by_key.values()
    assert slot.graph is not None
    nodes = _native.ep_describe_graph(slot.graph)[-1]
    assert [node[3] for node in nodes] == ([] if op_type in NOT_CAPTURED else [op_type])


def test_each_node_is_right_after_100_replays(ep):
    """All values of a small model, against the CPU provider."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="project"),
        helper.make_node("Relu", ["a"], ["b"], name="relu"),
        helper.make_node("Softmax", ["b"], ["c"], name="softmax"),
        helper.make_node("Add", ["c", "x"], ["d"], name="residual"),
        helper.make_node("ReduceMean", ["d"], ["e"], name="mean"),
    ]
    rng = np.random.default_rng(1)
    feeds = {name: rng.normal(size=(4, 4)).astype(np.float32) for name in "xw"}
    serialized = model(nodes, feeds, dict.fromkeys("abcde", np.float32))
    made, cpu = ep.session(serialized, enable_cuda_graph=True), on_cpu(serialized)
    for _ in range(100):
        made.run(None, feeds)
    others = {name: rng.normal(size=(4, 4)).astype(np.float32) for name in "xw"}
    for got, want in zip(made.run(None, others), cpu.run(None, others), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_number_of_elements_is_a_constant_of_the_graph(ep):
    nodes = [
        helper.make_node("Neg", ["x"], ["y"], name="neg"),
        helper.make_node("Size", ["x"], ["n"], name="size"),
    ]
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    serialized = model(nodes, {"x": x}, {"y": np.float32, "n": np.int64})
    made = ep.session(serialized, enable_cuda_graph=True)
    for given in (x, x + 1, x[:2], x + 2):
        y, n = made.run(None, {"x": given})
        np.testing.assert_array_equal(y, -given)
        assert n == given.size
    for slot in made._epprof_graphs._threads.slots.by_key.values():
        assert [node[3] for node in _native.ep_describe_graph(slot.graph)[-1]] == ["Neg"]


def test_other_values_in_host_memory_have_a_graph_of_their_own(ep):
    feeds = {"x": np.arange(12, dtype=np.float32).reshape(3, 4), "shape": np.array([2, 6])}
    node = helper.make_node("Reshape", ["x", "shape"], ["y"], name="reshape")
    made = ep.session(model([node], feeds, {"y": np.float32}), enable_cuda_graph=True)
    for shape in [(2, 6), (4, 3), (2, 6), (12, 1), (4, 3)]:
        x = feeds["x"] + shape[0]
        (result,) = made.run(None, {"x": x, "shape": np.array(shape)})
        np.testing.assert_array_equal(result, x.reshape(shape))


def test_a_graph_names_the_limit_that_a_node_is_beyond(ep):
    op_type, inputs, attributes, reason = LIMITS[2]
    serialized, _ = one_node(op_type, inputs, attributes, domain=DOMAIN)
    with pytest.raises(KernelError, match=f"These do not: node .Attention.: {reason}"):
        ep.session(serialized, enable_cuda_graph=True)
