"""Channels as the last axis, as ONNX Runtime converts models for ``prefer_nhwc``."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from epprof_nb.core.errors import KernelError
from tests.ep import models
from tests.ep.sessions import CPU, OURS, CallCounter, on_cpu, one_node, options, placement, session

DOMAIN = "com.ms.internal.nhwc"
rng = np.random.default_rng(0)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


X = floats(2, 4, 9, 8)
CASES = {
    "Conv": [
        ((X, floats(6, 4, 3, 3), floats(6)), {"pads": [1, 0, 1, 2]}, 1),
        ((X, floats(4, 1, 3, 3)), {"group": 4, "strides": [2, 2], "auto_pad": "SAME_UPPER"}, 1),
    ],
    "ConvTranspose": [((X, floats(4, 3, 2, 2), floats(3)), {"strides": [2, 1]}, 1)],
    "MaxPool": [((X,), {"kernel_shape": [3, 2], "strides": [2, 2]}, 1),
                ((X,), {"kernel_shape": [2, 2]}, 2)],
    "AveragePool": [((X,), {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]}, 1)],
    "LpPool": [((X,), {"kernel_shape": [3, 2]}, 1)],
    "GlobalAveragePool": [((X,), {}, 1)], "GlobalMaxPool": [((X,), {}, 1)],
    "GlobalLpPool": [((X,), {}, 1)],
    "BatchNormalization": [((X, *(np.abs(floats(4)) for _ in range(4))), {}, 1)],
    "InstanceNormalization": [((X, floats(4), floats(4)), {}, 1)],
    "GridSample": [((X, floats(2, 3, 5, 2)), {}, 1)],
    "LRN": [((X,), {"size": 3, "alpha": 0.1}, 1)],
    "DepthToSpace": [((X,), {"blocksize": 2}, 1), ((X,), {"blocksize": 2, "mode": "CRD"}, 1)],
    "SpaceToDepth": [((X[:, :, :8],), {"blocksize": 2}, 1)],
}  # fmt: skip


def run(serialized, entry, feeds):
    """Outputs, and calls of kernels by domain and type of operator.

    Older releases do not report where converted nodes run.
    """
    from epprof_nb.ep.kernel import REGISTRY

    chosen = options()
    chosen.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    with CallCounter(REGISTRY.kernels()) as counter:
        session = onnxruntime.InferenceSession(serialized, chosen, providers=[entry, CPU])
        outputs = session.run(None, feeds)
    assert set(placement(session).values()) <= {OURS}
    return outputs, counter.calls


@pytest.mark.parametrize(
    ("op_type", "case"),
    [pytest.param(op, case, id=f"{op}-{i}") for op, cases in CASES.items()
     for i, case in enumerate(cases)],
)  # fmt: skip
def test_a_converted_operator_gives_what_the_cpu_provider_gives(provider, op_type, case):
    inputs, attributes, outputs = case
    serialized, feeds = one_node(op_type, inputs, attributes, outputs=outputs)
    got, calls = run(serialized, provider(prefer_nhwc=True), feeds)
    assert calls[DOMAIN, op_type] == 1
    expected = on_cpu(serialized).run(None, feeds)
    for value, wanted in zip(got, expected, strict=True):
        assert (value.shape, value.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-5)


def test_every_converted_operator_is_tested():
    from epprof_nb.ep.kernel import REGISTRY

    kernels = [k.declaration for k in REGISTRY._builtin]
    assert {d.op_type for d in kernels if d.domain == DOMAIN} == set(CASES)


@pytest.mark.parametrize("name", ["resnet50", "mobilenet"])
def test_a_converted_model_transposes_at_its_ends_only(provider, name):
    serialized = models.load(name)
    feeds = models.feeds(name)
    (got,), calls = run(serialized, provider(prefer_nhwc=True), feeds)
    assert {domain for domain, op_type in calls if op_type == "Conv"} == {DOMAIN}
    assert calls["", "Transpose"] <= 2
    wanted = on_cpu(serialized).run(None, feeds)[0]
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max())


def test_a_model_keeps_its_layout_by_default(provider):
    serialized, feeds = one_node("Conv", (X, floats(6, 4, 3, 3)))
    assert run(serialized, provider(), feeds)[1] == {("", "Conv"): 1}


def test_another_value_of_the_option_is_refused(provider):
    name, chosen = provider(prefer_nhwc=True)
    serialized, _ = one_node("Conv", (X, floats(6, 4, 3, 3)))
    with pytest.raises(KernelError, match="prefer_nhwc='yes' is neither 0 nor 1"):
        session(serialized, (name, {**chosen, "prefer_nhwc": "yes"}))
