"""bfloat16 and the floats of 8 bits, which NumPy has from ml_dtypes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnx import TensorProto, helper

from epprof_nb.ep import types
from epprof_nb.ep.kernel import REGISTRY
from tests.ep.onnx_backend import run_bound
from tests.ep.sessions import OURS, model, on_cpu, placement, session

ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")

BFLOAT16 = ml_dtypes.bfloat16
X = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
EXTREME = np.array([0, 1, -2.5, 0.3, 1e-9, 240, 248, 448, 449, 464, 465, 479, 480, -495, 496, 500,
                    57344, 6e4, 61440, -65535, 65536, 1e6, -1e6, np.inf, -np.inf, np.nan,
                    -0.0], np.float32)  # fmt: skip
FLOATS8 = [number for name, number in types.SMALL_FLOATS.items() if "8" in name]
ROUNDING = 2**-8
"""Half of the distance of two neighbours of bfloat16, relative to them."""


def cast(source, target, to, **attributes):
    return helper.make_node("Cast", [source], [target], to=to, name=target, **attributes)


def in_bfloat16(nodes, feeds, *, kind=np.float32, opset=20):
    """A model that converts its inputs to bfloat16, and the output ``y`` of the nodes back."""
    before = [cast(name, f"{name}16", TensorProto.BFLOAT16) for name in feeds]
    after = [cast("y", "z", helper.np_dtype_to_tensor_dtype(np.dtype(kind)))]
    return model([*before, *nodes, *after], feeds, {"z": kind}, opset=opset)


def results(provider, serialized, feeds):
    made = session(serialized, provider())
    assert set(placement(made).values()) == {OURS}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return made.run(None, feeds)


CASES = {
    "Add": (lambda x: x + x, ["x16", "x16"], {}),
    "Concat": (lambda x: np.concatenate([x, x], 1), ["x16", "x16"], {"axis": 1}),
    "Exp": (np.exp, ["x16"], {}),
    "Gelu": (lambda x: x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
             ["x16"], {"approximate": "tanh"}),
    "MatMul": (lambda x: x @ x[:, :3].T, ["x16", "w16"], {}),
    "Neg": (np.negative, ["x16"], {}),
    "ReduceSum": (lambda x: x.sum(keepdims=True), ["x16"], {}),
    "Softmax": (lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True), ["x16"], {"axis": 1}),
    "Transpose": (np.transpose, ["x16"], {}),
}  # fmt: skip


@pytest.mark.parametrize("op_type", [name for name in CASES if name != "MatMul"])
def test_a_result_in_bfloat16_is_rounded_once(provider, op_type):
    function, inputs, attributes = CASES[op_type]
    nodes = [helper.make_node(op_type, inputs, ["y"], name="node", **attributes)]
    (got,) = results(provider, in_bfloat16(nodes, {"x": X}), {"x": X})
    exact = function(X.astype(BFLOAT16).astype(np.float64))
    np.testing.assert_allclose(got, exact, rtol=1.01 * ROUNDING, atol=1e-6)
    assert np.array_equal(got, got.astype(BFLOAT16).astype(np.float32))


def test_a_product_in_bfloat16_is_summed_in_float32(provider):
    ones = np.ones((2, 4096), np.float32)
    nodes = [
        helper.make_node("Transpose", ["x16"], ["t"], name="t"),
        helper.make_node("MatMul", ["x16", "t"], ["y"], name="node"),
    ]
    (got,) = results(provider, in_bfloat16(nodes, {"x": ones}), {"x": ones})
    assert (got == 4096).all()  # in bfloat16, a sum of ones ends at 256


def test_a_comparison_of_bfloat16_gives_booleans(provider):
    nodes = [helper.make_node("Greater", ["x16", "w16"], ["y"], name="node")]
    w = np.zeros_like(X)
    (got,) = results(provider, in_bfloat16(nodes, {"x": X, "w": w}, kind=bool), {"x": X, "w": w})
    np.testing.assert_array_equal(got, X > 0)


def test_inputs_and_outputs_may_be_bfloat16(provider, ep_device):
    if ep_device != "host":
        pytest.skip("ONNX Runtime's Python binding has no such values in device memory")
    value = helper.make_tensor_value_info
    node = helper.make_node("Mul", ["x", "x"], ["y"], name="node")
    graph = helper.make_graph(
        [node], "graph",
        [value("x", TensorProto.BFLOAT16, [3, 4])], [value("y", TensorProto.BFLOAT16, [3, 4])],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    ours = session(made.SerializeToString(), provider())
    assert placement(ours) == {"node": OURS}
    x = X.astype(BFLOAT16)
    (got,) = run_bound(ours, {"x": x}, [x])
    np.testing.assert_array_equal(got, x * x)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("number", FLOATS8)
@pytest.mark.parametrize("op_type", ["Cast", "QuantizeLinear"])
def test_floats_of_8_bits_are_those_of_the_cpu_provider(ep, op_type, number, saturate):
    one, zero = (
        helper.make_node("Constant", [], [name], value=helper.make_tensor(name, kind, [], [value]))
        for name, kind, value in (("one", TensorProto.FLOAT, 1), ("zero", number, 0))
    )
    scaled = helper.make_node(op_type, ["x", "one", "zero"], ["y"], name="y", saturate=saturate)
    first = (
        [one, zero, scaled] if op_type != "Cast" else [cast("x", "y", number, saturate=saturate)]
    )
    nodes = [*first, cast("y", "z", TensorProto.FLOAT)]
    serialized = model(nodes, {"x": EXTREME}, {"z": np.float32}, opset=20)
    (got,) = results(lambda: ep.provider("host"), serialized, {"x": EXTREME})
    (expected,) = on_cpu(serialized).run(None, {"x": EXTREME})
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(expected))


def test_a_kernel_may_take_bfloat16_by_name(ep):
    seen = []

    @ep.kernel("Softplus", types="bfloat16")
    def softplus(ctx, x):
        seen.append(x.dtype)
        ctx.out(x.shape, x.dtype)[...] = x

    nodes = [helper.make_node("Softplus", ["x16"], ["y"], name="node")]
    serialized = in_bfloat16(nodes, {"x": X}, opset=22)
    (got,) = results(lambda: ep.provider("host"), serialized, {"x": X})
    assert seen == [BFLOAT16]
    np.testing.assert_array_equal(got, X.astype(BFLOAT16).astype(np.float32))


def test_a_kernel_takes_no_bfloat16_unless_it_says_so(ep):
    @ep.kernel("Softplus", since=22)
    def softplus(ctx, x):
        raise AssertionError

    (declared,) = (k.declaration for k in REGISTRY._defined if k.function is softplus)
    allowed = {dtype for r in declared.ranges for _, dtypes in r.constraints for dtype in dtypes}
    assert allowed == {"float16", "float32", "float64"}
