"""Names of the nodes that ONNX Runtime keeps or inserts for lack of a fusion or kernel."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import epprof_nb
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.findings.rules.onnx import onnx_nodes as ort_node_findings
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


def conversions(make, dtype, find):
    import onnxruntime

    session = onnxruntime.InferenceSession(make())
    with epprof_nb.profile() as prof:
        for _ in range(3):
            session.run(None, {"x": np.ones((8, 64), dtype)})
    index = ProfileIndex(prof)
    (finding,) = find(index)
    names = prof.ops.iloc[finding.rows()]["name"].astype(str)
    assert set(names.value_counts()) == {3}
    return names.unique().tolist()


@pytest.fixture(autouse=True)
def any_share(installed, monkeypatch):
    monkeypatch.setattr(ort_node_findings, "CONVERSION_SHARE", 0.0)


def test_quantization_that_was_not_fused_is_found():
    names = conversions(quantized, np.float32, ort_node_findings.quantization)
    assert sorted(names) == sorted(f"{kind}{i}" for kind in "QD" for i in range(8))


def test_casts_that_were_inserted_are_found():
    names = conversions(half, np.float16, ort_node_findings.inserted_casts)
    assert len(names) >= 2
    assert all(name.startswith("Inserted") for name in names)
