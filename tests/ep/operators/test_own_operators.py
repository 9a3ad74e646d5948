"""Operators without a schema, which their kernels declare."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.ep.sessions import CPU, OURS, model_of, options, placement, session

DOMAIN = "com.example"


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_an_operator_without_schema_has_the_types_of_its_kernel(ep, x, kind):
    seen = []

    @ep.kernel("Twice", domain=DOMAIN, types="float32 float64")
    def twice(ctx, x):
        seen.append((dict(ctx.attrs), x.dtype))
        np.multiply(x, 2, out=ctx.out(x.shape, x.dtype))

    feeds = {"x": x.astype(kind)}
    serialized = model_of("Twice", feeds, kind, domain=DOMAIN, names=["a", "b"], level=3, rate=0.5)
    made = session(serialized, ep.provider("host"))
    assert placement(made)["node"] == OURS
    got = made.run(None, feeds)[0]
    np.testing.assert_array_equal(got, feeds["x"] * 2)
    assert got.dtype == kind
    assert seen == [({"names": ("a", "b"), "level": 3, "rate": 0.5}, kind)]


def test_an_operator_without_schema_with_inputs_of_different_types(ep, x):
    @ep.kernel("Pick", domain=DOMAIN, inputs=["T", "int64", "T"], types="float32")
    def pick(ctx, x, rows, bias=None):
        y = ctx.out((len(rows), x.shape[1]), x.dtype)
        np.take(x, rows, axis=0, out=y)
        if bias is not None:
            y += bias

    feeds = {"x": x, "rows": np.array([1, 0, 1])}
    made = session(model_of("Pick", feeds, domain=DOMAIN), ep.provider("host"))
    np.testing.assert_array_equal(made.run(None, feeds)[0], x[[1, 0, 1]])
    feeds["bias"] = np.ones(4, np.float32)
    made = session(model_of("Pick", feeds, domain=DOMAIN), ep.provider("host"))
    np.testing.assert_array_equal(made.run(None, feeds)[0], x[[1, 0, 1]] + 1)


def test_an_operator_without_schema_runs_on_the_cpu_where_it_is_not_selected(ep, x):
    @ep.kernel("Twice", domain=DOMAIN)
    def twice(ctx, x):
        np.multiply(x, 2, out=ctx.out(x.shape))

    serialized = model_of("Twice", {"x": x}, domain=DOMAIN)
    made = session(serialized, ep.provider("host", only=["Relu"]))
    assert placement(made)["node"] == CPU
    np.testing.assert_array_equal(made.run(None, {"x": x})[0], x * 2)


def test_options_of_the_user_serve_several_sessions(ep, x):
    import onnxruntime

    @ep.kernel("Twice", domain=DOMAIN)
    def twice(ctx, x):
        np.multiply(x, 2, out=ctx.out(x.shape))

    shared = options()
    for _ in range(3):
        made = onnxruntime.InferenceSession(
            model_of("Twice", {"x": x}, domain=DOMAIN), shared, providers=[ep.provider("host"), CPU]
        )
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], x * 2)


def test_installing_and_uninstalling_keep_operators_without_schema(ep, x, installed):
    import epprof_nb

    @ep.kernel("Twice", domain=DOMAIN)
    def twice(ctx, x):
        np.multiply(x, 2, out=ctx.out(x.shape))

    serialized = model_of("Twice", {"x": x}, domain=DOMAIN)
    ep.session(serialized).run(None, {"x": x})
    epprof_nb.onnxruntime.uninstall()
    np.testing.assert_array_equal(ep.session(serialized).run(None, {"x": x})[0], x * 2)


def test_types_of_inputs_and_outputs_are_words_or_a_list(ep, x):
    @ep.kernel("Pick", domain=DOMAIN, inputs="T int64", outputs="T T")
    def pick(ctx, x, rows):
        ctx.out(x.shape).fill(1)
        ctx.out(x.shape).fill(2)

    feeds = {"x": x, "rows": np.array([1, 0, 1])}
    serialized = model_of("Pick", feeds, domain=DOMAIN, outputs=("y", "z"))
    one, two = session(serialized, ep.provider("host")).run(None, feeds)
    assert (one == 1).all()
    assert (two == 2).all()


def test_shapes_that_the_model_declares_are_checked(ep, x):
    ep.kernel("Flat", domain=DOMAIN)(lambda ctx, x: ctx.out(x.size).fill(0))
    loaded = onnx.load_model_from_string(model_of("Flat", {"x": x}, domain=DOMAIN))
    loaded.graph.node.append(onnx.helper.make_node("Abs", ["y"], ["z"]))
    loaded.graph.output[0].name = "z"
    undeclared = ep.session(loaded.SerializeToString())
    assert undeclared.run(None, {"x": x})[0].shape == (8,)
    loaded.graph.value_info.append(
        onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [None, 4])
    )
    declared = ep.session(loaded.SerializeToString())
    with pytest.raises(Exception, match=r"\(y\) has the shape \(\?, 4\) in the model, not \(8,\)"):
        declared.run(None, {"x": np.asarray(x)})
