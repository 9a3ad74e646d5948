"""Nodes that ONNX Runtime leaves or inserts where it has no fusion or kernel are named."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import epprof_nb
from tests.ort import models

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16


def quantized():
    """An operator without a quantized variant between QuantizeLinear and DequantizeLinear."""
    params = ("scale", "zero")
    values = [
        numpy_helper.from_array(np.float32(0.02), "scale"),
        numpy_helper.from_array(np.int8(0), "zero"),
    ]
    nodes, last = [], "x"
    for i in range(8):
        nodes += [
            helper.make_node("QuantizeLinear", [last, *params], [f"q{i}"], name=f"Q{i}"),
            helper.make_node("DequantizeLinear", [f"q{i}", *params], [f"d{i}"], name=f"D{i}"),
            helper.make_node("Erf", [f"d{i}"], [f"e{i}"], name=f"erf{i}"),
        ]
        last = f"e{i}"
    ends = [models.value("x", ("N", 64))], [models.value(last, ("N", 64))]
    return models.serialized(helper.make_graph(nodes, "quantized", *ends, values))


def half():
    """Operators of float16, for which the CPU provider has few kernels."""
    nodes = [
        helper.make_node("Erf", ["x"], ["a"], name="erf"),
        helper.make_node("Softplus", ["a"], ["y"], name="softplus"),
    ]
    ends = [models.value("x", ("N", 64), HALF)], [models.value("y", ("N", 64), HALF)]
    return models.serialized(helper.make_graph(nodes, "half", *ends))


@pytest.mark.parametrize(
    ("make", "dtype", "text"),
    [(quantized, np.float32, "quantize or dequantize account for"),
     (half, np.float16, "inserted by ONNX Runtime account for")],
)  # fmt: skip
def test_the_findings_name_them(installed, make, dtype, text):
    session = installed.InferenceSession(make())
    x = np.ones((512, 64), dtype)
    with epprof_nb.profile() as prof:
        for _ in range(3):
            session.run(None, {"x": x})
    from epprof_nb.analysis.findings import findings
    from epprof_nb.analysis.index import ProfileIndex

    found = [finding.text for finding in findings(ProfileIndex(prof), limit=9)]
    assert any(text in sentence for sentence in found), (found, prof.by_node())
