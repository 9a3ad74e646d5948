"""Runs that fail, in profiles."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

import epprof_nb

pytestmark = pytest.mark.usefixtures("installed")


def session_with(ep, kernel):
    names = [("Relu", "x", "a", "pre"), ("Softplus", "a", "b", "act1"), ("Neg", "b", "y", "post")]
    nodes = [helper.make_node(of, [x], [y], name=name) for of, x, y, name in names]
    values = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["B", 4]) for n in "xy"]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    ep.kernel("Softplus")(kernel)
    return ep.session(made.SerializeToString(), only=["Softplus"])


def test_a_kernel_that_raises_fails_its_node_and_its_run(ep):
    def softplus(ctx, x):
        if (x < 0).any():
            raise ValueError("negative")
        np.logaddexp(x, 0, out=ctx.out(x.shape, x.dtype))

    made = session_with(ep, lambda ctx, x: softplus(ctx, x - 2))
    with epprof_nb.profile(ort_nodes="every") as prof:
        for value in (1, 1, 3):
            x = np.full((3, 4), value, "f4")
            if value == 1:
                with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.Fail):
                    made.run(None, {"x": x})
            else:
                made.run(None, {"x": x})
    assert prof.by_run()["status"].tolist() == ["failed", "failed", "complete"]
    nodes = prof.ops[prof.ops["category"] == "node"].groupby("name", observed=True)["status"]
    assert nodes.agg(list)["act1"] == ["failed", "failed", "complete"]
    assert set(nodes.agg(list)["pre"]) == {"complete"}
    assert prof.info["notes"][0] == (
        "2 of 3 runs failed, in node `act1`: their times end with the error."
    )
    assert "2 of 3 runs failed" in prof.summary()


def test_a_call_that_is_refused_before_its_run_leaves_the_next_run_complete(ep):
    made = session_with(ep, lambda ctx, x: ctx.out(x.shape, x.dtype).fill(0))
    with epprof_nb.profile(ort_nodes="every") as prof:
        with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument):
            made.run(None, {"x": np.zeros((3, 5), "f4")})
        made.run(None, {"x": np.zeros((3, 4), "f4")})
    assert prof.by_run()["status"].tolist()[-1] == "complete"
    assert not (prof.ops.loc[prof.ops["category"] == "node", "status"] == "failed").any()


@pytest.mark.parametrize("ort_nodes", ["every", "auto", "off"])
def test_a_node_of_onnx_runtime_fails_its_run(ort_nodes):
    node = helper.make_node("Gather", ["x", "i"], ["y"], name="pick")
    kinds = {"x": TensorProto.FLOAT, "i": TensorProto.INT64, "y": TensorProto.FLOAT}
    values = [helper.make_tensor_value_info(name, kinds[name], [None]) for name in kinds]
    graph = helper.make_graph([node], "g", values[:2], values[2:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = onnxruntime.InferenceSession(made.SerializeToString())
    feed = {"x": np.ones(3, "f4"), "i": np.array([0])}
    with epprof_nb.profile(ort_nodes=ort_nodes) as prof:
        session.run(None, feed)
        with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument):
            session.run(None, feed | {"i": np.array([9])})
        session.run(None, feed)
    assert prof.by_run()["status"].tolist() == ["complete", "failed", "complete"]
    in_node = "" if ort_nodes == "off" else ", in node `pick`"
    assert prof.info["notes"][0] == (
        f"1 of 3 runs failed{in_node}: their times end with the error."
    )
