"""Each kernel of the package against ONNX Runtime's CPU provider."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from tests.ep.sessions import OURS, model, on_cpu, placement, session

rng = np.random.default_rng(0)


def floats(*shape, kind=np.float32):
    return rng.standard_normal(shape).astype(kind)


def ints(*values):
    return np.array(values, np.int64)


A, B = floats(3, 4), floats(3, 4)
IMAGE = floats(2, 4, 9, 8)
FLAGS = A > 0
CASES = {
    "Abs": [(A,)], "Ceil": [(A,)], "Cos": [(A,)], "Exp": [(A,)], "Floor": [(A,)],
    "Log": [(np.abs(A),)], "Neg": [(A,), (ints(1, -2),)], "Not": [(FLAGS,)], "Sin": [(A,)],
    "Sqrt": [(np.abs(A),)], "Tanh": [(A,), (A.astype(np.float64),)],
    "Add": [(A, B), (A, floats(4)), (floats(), A), (ints(1, 2), ints(3, 4)), (A[:0], B[:0])],
    "Sub": [(A, B)], "Mul": [(A, floats(3, 1))], "Div": [(A, B)],
    "And": [(FLAGS, ~FLAGS)], "Or": [(FLAGS, ~FLAGS)],
    "Equal": [(A, A.copy())], "Greater": [(A, B)], "Less": [(A, B)],
    "Max": [(A, B), (A,), (A, B, floats(4))], "Min": [(A, B)],
    "Relu": [(A,), (floats(),), (A[:0],), (A.astype(np.float64),)],
    "LeakyRelu": [(A,), (A, {"alpha": 0.25})],
    "Sigmoid": [(A,), (A * 100,)], "Softplus": [(A,)],
    "Clip": [(A, np.float32(-0.5), np.float32(0.5)), (A, np.float32(0)), (A, None, np.float32(0))],
    "Pow": [(np.abs(A), B), (A, np.array(2, np.int64))],
    "Where": [(FLAGS, A, B), (FLAGS, A, np.float32(0))],
    "Cast": [(A, {"to": 7}), (A, {"to": 9}), (FLAGS, {"to": 1}), (ints(1, 2), {"to": 11})],
    "MatMul": [(A, B.T.copy()), (floats(2, 3, 4), floats(4, 5)), (floats(4), floats(4)),
               (floats(2, 1, 3, 4), floats(5, 4, 2)), (floats(4), floats(4, 2)),
               (floats(0, 4), floats(4, 3))],
    "Gemm": [(A, B, {"transB": 1}), (A, floats(4, 2), floats(2)),
             (A, floats(3, 2), floats(1), {"transA": 1, "alpha": 0.5, "beta": 2.0})],
    "Softmax": [(A,), (floats(2, 3, 4), {"axis": 1}), (A[:0],)],
    "LayerNormalization": [(A, floats(4), floats(4)), (A, floats(4)),
                           (floats(2, 3, 4), floats(3, 4), {"axis": 1, "epsilon": 0.1})],
    "BatchNormalization": [(IMAGE, floats(4), floats(4), floats(4), np.abs(floats(4)))],
    "ReduceMean": [(A, ints(1)), (A, ints(-1), {"keepdims": 0}), (A,),
                   (A, {"noop_with_empty_axes": 1})],
    "ReduceSum": [(A, ints(0)), (ints(1, 2, 3), ints(0))],
    "ReduceMax": [(A, ints(0, 1))], "ReduceMin": [(A, ints(1), {"keepdims": 0})],
    "Identity": [(A,), (ints(3),)],
    "Reshape": [(A, ints(2, 6)), (A, ints(0, 2, -1)), (A, ints(-1))],
    "Flatten": [(IMAGE,), (IMAGE, {"axis": 0}), (IMAGE, {"axis": -1})],
    "Squeeze": [(floats(1, 3, 1), ints(0)), (floats(1, 3, 1),)],
    "Unsqueeze": [(A, ints(0, 3)), (A, ints(-1))],
    "Transpose": [(IMAGE, {"perm": [0, 2, 3, 1]}), (A,)],
    "Expand": [(floats(3, 1), ints(2, 3, 4)), (floats(3, 1), ints(1))],
    "Shape": [(IMAGE,), (IMAGE, {"start": 1, "end": -1})],
    "Concat": [(A, B, {"axis": 0}), (A, {"axis": -1})],
    "Split": [(IMAGE, ints(1, 3), {"axis": 1}, 2), (A, {"axis": 0, "num_outputs": 3}, 3)],
    "Slice": [(IMAGE, ints(1, -3), ints(9, 100), ints(2, 3)), (A, ints(-1), ints(-9), ints(1),
              ints(-2)), (A, ints(5), ints(9))],
    "Gather": [(A, ints(2, -1)), (A, np.array(1), {"axis": 1}), (A, ints(1, 0).reshape(2, 1))],
    "Conv": [
        (IMAGE, floats(6, 4, 3, 3), floats(6), {"pads": [1, 1, 1, 1]}),
        (IMAGE, floats(6, 2, 3, 2), {"group": 2, "strides": [2, 1], "dilations": [2, 3]}),
        (IMAGE, floats(4, 1, 3, 3), {"group": 4, "auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        (floats(1, 2, 7), floats(3, 2, 3), floats(3), {"auto_pad": "SAME_LOWER"}),
    ],
    "MaxPool": [
        (IMAGE, {"kernel_shape": [2, 2], "strides": [2, 2]}),
        (IMAGE, {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 1, 1], "ceil_mode": 1}),
        (IMAGE, {"kernel_shape": [2, 2], "dilations": [2, 1]}),
    ],
    "GlobalAveragePool": [(IMAGE,)], "GlobalMaxPool": [(IMAGE,)],
}  # fmt: skip
EXACT = {"Cast", "Shape", "Transpose", "Reshape", "Slice", "Gather", "Concat", "Split"}


@pytest.mark.parametrize(
    ("op_type", "case"),
    [
        pytest.param(op_type, variant, id=f"{op_type}-{i}")
        for op_type, variants in CASES.items()
        for i, variant in enumerate(variants)
    ],
)
def test_a_kernel_gives_what_the_cpu_provider_gives(ep, op_type, case):
    values = list(case)
    outputs = values.pop() if isinstance(values[-1], int) else 1
    attributes = values.pop() if isinstance(values[-1], dict) else {}
    feeds = {f"i{n}": np.asarray(v) for n, v in enumerate(values) if v is not None}
    names = ["" if v is None else f"i{n}" for n, v in enumerate(values)]
    node = helper.make_node(
        op_type, names, [f"o{n}" for n in range(outputs)], name="node", **attributes
    )
    kinds = {
        "Cast": {7: np.int64, 9: np.bool_, 1: np.float32, 11: np.float64}.get(attributes.get("to")),
        "Shape": np.int64, "Equal": np.bool_, "Greater": np.bool_, "Less": np.bool_,
    }  # fmt: skip
    kind = kinds.get(op_type) or next(iter(feeds.values())).dtype
    if op_type == "Where":
        kind = np.float32
    serialized = model([node], feeds, {f"o{n}": kind for n in range(outputs)})
    ours = session(serialized, ep.provider("host"))
    assert placement(ours)["node"] == OURS
    for got, expected in zip(
        ours.run(None, feeds), on_cpu(serialized).run(None, feeds), strict=True
    ):
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        tolerance = 0 if op_type in EXACT else 2e-5
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def test_every_kernel_of_the_package_is_tested():
    from epprof_nb.ep import provider as _  # noqa: F401 - defines them
    from epprof_nb.ep.kernel import REGISTRY

    assert {k.declaration.op_type for k in REGISTRY._builtin} == set(CASES)


def test_older_opsets_have_the_kernels_that_fit_them(ep):
    node = helper.make_node("ReduceMean", ["i0"], ["o0"], name="node", axes=[1])
    serialized = model([node], {"i0": A}, {"o0": np.float32}, opset=13)
    ours = session(serialized, ep.provider("host"))
    assert placement(ours)["node"] == OURS
    np.testing.assert_allclose(
        ours.run(None, {"i0": A})[0], on_cpu(serialized).run(None, {"i0": A})[0], rtol=1e-6
    )


def test_a_version_with_another_meaning_is_left_to_the_cpu(ep):
    # Before version 13, Softmax flattens the axes from `axis` on.
    node = helper.make_node("Softmax", ["i0"], ["o0"], name="node")
    serialized = model([node], {"i0": A}, {"o0": np.float32}, opset=11)
    assert placement(session(serialized, ep.provider("host")))["node"] != OURS
