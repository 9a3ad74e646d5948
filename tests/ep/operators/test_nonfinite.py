"""NaN, infinities and the largest numbers, against ONNX Runtime's CPU provider."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidGraph
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NotImplemented_

from tests.ep.sessions import OURS, on_cpu, one_node, placement, session

# Releases differ in what their CPU providers give, and in the opsets that they know.
pytestmark = pytest.mark.release_independent

INF, NAN = np.inf, np.nan
VALUES = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5, -0.5, 1e30, -1e30, 1e-30, 100.0,
          -100.0, 3e38, -3e38]  # fmt: skip
ROWS = [[1, 2, 3, 4], [INF, INF, 1, 0], [-INF, -INF, -INF, -INF], [-INF, INF, 0, 0],
        [3e38, 3e38, 1, 1], [INF, 1, 2, 3], [NAN, 1, 2, 3], [NAN] * 4]  # fmt: skip
LATE = [[1, NAN, 3, 2], [3, 1, 2, NAN], [INF, 1, NAN, 2], [-INF, NAN, -1, INF],
        [-INF, NAN, -INF, 0], [2, NAN, 2, 1]]  # fmt: skip
"""NaN after other elements, where the CPU provider's maximum depends on the position."""
UNARY = [
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh", "Elu",
    "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Log",
    "Mish", "Neg", "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin",
    "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "ThresholdedRelu",
]  # fmt: skip
BINARY = [
    "Add", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min",
    "Mul", "PRelu", "Pow", "Sub", "Sum",
]  # fmt: skip
REDUCTIONS = [
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
]  # fmt: skip
KINDS = [np.float32, np.float64, np.float16]


def array(values, kind):
    with np.errstate(over="ignore"):
        return np.array(values, kind)


def compare(provider, op_type, values, attributes=None, *, opset=20):
    """Compare the results; return False if the CPU provider has no kernel for the type."""
    serialized, feeds = one_node(op_type, values, attributes, opset=opset)
    try:
        on_cpu_provider = on_cpu(serialized)
    except (NotImplemented_, InvalidGraph):
        return False
    ours = session(serialized, provider())
    assert placement(ours)["node"] == OURS
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = ours.run(None, feeds)
    for got, wanted in zip(results, on_cpu_provider.run(None, feeds), strict=True):
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        tolerance = 2e-3 if got.dtype == np.float16 else 3e-5
        np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)
    return True


def compare_types(provider, op_type, make, attributes=None, *, kinds=KINDS):
    """Compare the results of the inputs that `make` returns for a dtype, for several dtypes."""
    compared = [kind for kind in kinds if compare(provider, op_type, make(kind), attributes)]
    assert np.float32 in compared


@pytest.mark.parametrize("op_type", UNARY)
def test_functions_of_elements(provider, op_type):
    # The CPU provider's Sign of NaN is 0 in float16, and NaN in the other types.
    kinds = KINDS[:2] if op_type == "Sign" else KINDS
    compare_types(provider, op_type, lambda kind: (array(VALUES, kind),), kinds=kinds)


@pytest.mark.parametrize("op_type", BINARY)
def test_functions_of_two_elements(provider, op_type):
    def pairs(kind):
        values = array(VALUES, kind)
        return np.repeat(values, len(values)), np.tile(values, len(values))

    compare_types(provider, op_type, pairs)


@pytest.mark.parametrize("op_type", REDUCTIONS)
def test_reductions(provider, op_type):
    compare_types(provider, op_type, lambda kind: (array(ROWS, kind), np.array([1])))
    compare_types(provider, op_type, lambda kind: (array(ROWS, kind).T.copy(), np.array([0])))


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("op_type", ["ArgMax", "ArgMin"])
def test_places_of_extremes(provider, op_type, last):
    rows = ROWS + LATE
    attributes = {"axis": 1, "select_last_index": last}
    compare_types(provider, op_type, lambda kind: (array(rows, kind),), attributes)
    compare_types(
        provider, op_type, lambda kind: (np.tile(array(rows, kind), (1, 300)),), attributes
    )
    across = {**attributes, "axis": 0}
    compare_types(provider, op_type, lambda kind: (array(rows, kind).T.copy(),), across)


@pytest.mark.parametrize("op_type", ["Hardmax", "LogSoftmax", "Softmax"])
def test_softmax_and_its_relatives(provider, op_type):
    rows = array(ROWS[:-2], np.float32)
    assert compare(provider, op_type, (rows,), {"axis": 1})
    assert compare(provider, op_type, (rows.T.copy(),), {"axis": 0})


@pytest.mark.parametrize(
    ("low", "high"),
    [(-1, 1), (1, -1), (NAN, 1), (-1, NAN), (NAN, NAN), (-INF, INF), (None, 1), (0, None)],
)
def test_limits(provider, low, high):
    def inputs(kind):
        return array(VALUES, kind), *(None if x is None else kind(x) for x in (low, high))

    compare_types(provider, "Clip", inputs)


def test_limits_that_are_attributes(provider):
    x = array(VALUES, np.float32)
    assert compare(provider, "Clip", (x,), opset=10)
    assert compare(provider, "Clip", (x,), {"min": -1.0, "max": 1.0}, opset=10)
