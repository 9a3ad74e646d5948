"""Findings on copies between kernels in Python and nodes on ONNX Runtime's CPU provider."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import epprof_nb
from epprof_nb.analysis.base.index import index_of
from epprof_nb.analysis.findings.rules.copies.small_copies import MANY_COPIES, small_copies
from epprof_nb.analysis.findings.rules.onnx import cpu_fallback

pytestmark = pytest.mark.usefixtures("installed")
RUNS = 20


def model():
    """`Relu` and `Exp` are beside three nodes that have kernels in Python."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="cpu1"),
        helper.make_node("Softplus", ["a"], ["b"], name="py1"),
        helper.make_node("Exp", ["b"], ["c"], name="cpu2"),
        helper.make_node("Burn", ["c"], ["d"], name="py2", domain="com.me"),
        helper.make_node("Softplus", ["d"], ["y"], name="py3"),
    ]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["B", 64]) for n in "xy"]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.me", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def profiled(ep):
    @ep.kernel("Burn", domain="com.me", types="float32")
    def burn(ctx, x):
        ctx.out(x.shape, x.dtype)[...] = x * 0

    session = ep.session(model(), only=["Softplus", "Burn"])
    x = np.ones((8, 64), "f4")
    with epprof_nb.profile(ort_nodes="every") as prof:
        for _ in range(RUNS):
            session.run(None, {"x": x})
    return prof


def found_in(prof, rule, monkeypatch):
    """Return the findings of a rule, however short their time is."""
    monkeypatch.setattr(cpu_fallback, "MIN_GAIN_SHARE", 0)
    return list(rule(index_of(prof)))


def test_copy_nodes_of_sessions_cannot_be_gathered(ep, monkeypatch):
    prof = profiled(ep)
    assert (prof.activities["kind"] == "memcpy").sum() == 3 * RUNS > MANY_COPIES
    assert not found_in(prof, small_copies, monkeypatch)


def test_copies_to_nodes_that_only_leaves_out_cost_what_their_nodes_take(ep, monkeypatch):
    prof = profiled(ep)
    (found,) = found_in(prof, cpu_fallback.fallbacks, monkeypatch)
    assert " and 1 other ran on the CPU, with 60 copies (123 kB) to and from it that" in found.text
    release = tuple(int(n) for n in onnxruntime.__version__.split(".")[:2])
    if release >= (1, 26):  # earlier ones do not show a session's options
        assert found.text.endswith("left out by `only=`.")
        assert found.remedy == "Add operators or nodes to `only=`, or leave it out."
    else:
        assert found.text.endswith("although its session has kernels in Python.")
    nodes = prof.by_node()
    of_copies = nodes.loc[nodes["op_type"].str.startswith("Memcpy"), "host_ns"].sum()
    assert 0 < found.gain_ns <= of_copies
