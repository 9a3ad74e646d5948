"""Kernels of the package on CUDA devices, with a stand-in for NVIDIA's driver and for CuPy."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from tests.ep import models
from tests.ep.sessions import OURS, model, on_cpu, one_node, placement, session

IMAGE = np.arange(216, dtype=np.float32).reshape(2, 3, 6, 6)
WEIGHT = np.linspace(-1, 1, 108, dtype=np.float32).reshape(4, 3, 3, 3)


@pytest.mark.parametrize("prefer_nhwc", [False, True], ids=["nchw", "nhwc"])
@pytest.mark.parametrize(
    ("op_type", "weights", "attributes"),
    [
        ("MaxPool", {}, {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("AveragePool", {}, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
        ("Conv", {"w": WEIGHT}, {"pads": [1, 1, 1, 1], "strides": [2, 1]}),
    ],
    ids=["max", "average", "convolution"],
)
def test_windows_are_views_of_device_memory(
    ep, fake_cuda, op_type, weights, attributes, prefer_nhwc
):
    feeds = {"x": IMAGE, **weights}
    node = helper.make_node(op_type, list(feeds), ["y"], name="node", **attributes)
    serialized = model([node], feeds, {"y": np.float32})
    made = session(serialized, ep.provider("cuda:0", prefer_nhwc=prefer_nhwc))
    assert set(placement(made).values()) == {OURS}
    (result,), (right,) = made.run(None, feeds), on_cpu(serialized).run(None, feeds)
    np.testing.assert_allclose(result, right, rtol=1e-4)


def floats(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


HEADS = floats(1, 2, 3, 4)
MASK = np.array([[True, True, True], [False, True, True], [True, False, False]])
CACHE = floats(2, 1, 4, 8)
LAST, TOTAL = np.array([4, 4], np.int32), np.array(5, np.int32)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "how"),
    [
        ("Attention", (HEADS, HEADS, HEADS, MASK), {"is_causal": 1}, {"opset": 23}),
        ("ReduceProd", (IMAGE[:1, :1, :2], np.array([-1])), {}, {}),
        (
            "GroupQueryAttention",
            (floats(2, 1, 16), floats(2, 1, 8), floats(2, 1, 8), CACHE, CACHE, LAST, TOTAL),
            {"num_heads": 2, "kv_num_heads": 1},
            {"outputs": 3, "domain": "com.microsoft"},
        ),
    ],
    ids=["attention", "product", "groups"],
)
def test_masks_products_and_indices_stay_on_the_device(
    ep, fake_cuda, op_type, inputs, attributes, how
):
    serialized, feeds = one_node(op_type, inputs, attributes, **how)
    made = session(serialized, ep.provider("cuda:0"))
    assert set(placement(made).values()) == {OURS}
    results, wanted = made.run(None, feeds), on_cpu(serialized).run(None, feeds)
    for got, right in zip(results, wanted, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "kind"), [("bert", np.float16), ("gpt2", np.float32)])
def test_models_have_the_same_results_in_every_run(ep, fake_cuda, name, kind):
    serialized = models.load(name, kind)
    made, wanted = ep.session(serialized, device="cuda:0"), {}
    for length, seed in ((6, 1), (6, 2), (4, 1), (4, 2), (6, 1), (6, 2), (6, 1), (6, 2)):
        feeds = models.feeds(name, kind, length=length, seed=seed)
        if (length, seed) not in wanted:
            first = ep.session(serialized, device="cuda:0")  # which calls Python for each node
            wanted[length, seed] = first.run(None, feeds)
        for result, right in zip(made.run(None, feeds), wanted[length, seed], strict=True):
            np.testing.assert_array_equal(result, right)
