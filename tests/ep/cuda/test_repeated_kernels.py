"""Kernels of the package that make only raw launches and products, which nodes repeat."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.ep.kernel import REGISTRY
from tests.ep.cuda.test_cublaslt import lt  # noqa: F401 - a fixture
from tests.ep.sessions import CallCounter, on_cpu, one_node, session


def floats(*shape, kind=np.float32):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(kind)


IMAGE = floats(2, 4, 7, 5)
CASES = {
    "depthwise": (
        "Conv", (IMAGE, floats(4, 1, 3, 3), floats(4)), {"group": 4, "pads": [1, 1, 1, 1]},
    ),
    "depthwise with two results per channel": (
        "Conv", (IMAGE, floats(8, 1, 3, 2)), {"group": 4, "strides": [2, 1], "pads": [2, 0, 1, 1]},
    ),
    "dilated groups": (
        "Conv", (IMAGE, floats(6, 2, 2, 2), floats(6)), {"group": 2, "dilations": [2, 3]},
    ),
    "few channels": ("Conv", (IMAGE[:, :3], floats(5, 3, 3, 3), floats(5)), {"strides": [2, 2]}),
    "windows of one element": ("Conv", (IMAGE, floats(6, 4, 1, 1), floats(6)), {}),
    "windows as columns": (
        "Conv", (IMAGE, floats(6, 4, 5, 5), floats(6)), {"pads": [2, 2, 2, 2]},
    ),
    "no bias": ("Conv", (IMAGE, floats(6, 4, 5, 5)), {"auto_pad": "SAME_UPPER"}),
    "maximum of windows": (
        "MaxPool", (IMAGE,), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]},
    ),
    "maximum of dilated windows": (
        "MaxPool", (IMAGE,), {"kernel_shape": [2, 2], "dilations": [2, 1], "ceil_mode": 1},
    ),
    "mean of windows": (
        "AveragePool", (IMAGE,), {"kernel_shape": [3, 2], "pads": [1, 0, 2, 1], "strides": [2, 2]},
    ),
    "mean of windows with padding": (
        "AveragePool", (IMAGE,),
        {"kernel_shape": [3, 2], "pads": [1, 0, 2, 1], "count_include_pad": 1, "ceil_mode": 1},
    ),
    "mean of images": ("GlobalAveragePool", (IMAGE,), {}),
    "maximum of images": ("GlobalMaxPool", (IMAGE,), {}),
    "mean of the last axes": ("ReduceMean", (IMAGE, np.array([-1, -2])), {}),
    "sum over middle axes": ("ReduceSum", (floats(3, 4, 5, 40), np.array([1, 2])), {"keepdims": 0}),
    "maximum of everything": ("ReduceMax", (IMAGE,), {"keepdims": 0}),
    "minimum": ("ReduceMin", (IMAGE, np.array([0])), {}),
    "norm": ("ReduceL2", (IMAGE, np.array([3])), {}),
    "power": ("Pow", (np.abs(IMAGE), np.float32(1.5)), {}),
    "square": ("Pow", (IMAGE, np.float32(2)), {}),
    "limits": ("Clip", (IMAGE, np.float32(-0.5), np.float32(0.25)), {}),
    "lower limit": ("Clip", (IMAGE, np.float32(0)), {}),
}  # fmt: skip


def compare(ep, name, kind, rtol, prefer_nhwc=False):
    op_type, inputs, attributes = CASES[name]
    given = [x.astype(kind) if np.asarray(x).dtype == np.float32 else x for x in inputs]
    serialized, feeds = one_node(op_type, given, attributes)
    single, _ = one_node(op_type, inputs, attributes)
    made = session(serialized, ep.provider("cuda:0", prefer_nhwc=prefer_nhwc))
    right = on_cpu(single)
    with CallCounter(REGISTRY.of_package([op_type])) as counter:
        for run in range(3):
            # Axes and limits stay: the first input changes.
            values = {**feeds, "i0": feeds["i0"] + kind(run / 4)}
            wide = {n: x.astype(np.float32) if x.dtype == kind else x for n, x in values.items()}
            got, expected = made.run(None, values)[0], right.run(None, wide)[0]
            assert (got.shape, got.dtype) == (expected.shape, kind)
            np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol)
    return sum(counter.calls.values())


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("name", CASES)
def test_a_kernel_is_repeated_without_python(ep, lt, name, kind):  # noqa: F811
    rtol = 1e-5 if kind is np.float32 else 2e-2
    assert compare(ep, name, kind, rtol) == 1


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name][0] in {"Conv", "MaxPool"}])
def test_channels_as_the_last_axis_are_not_taken_for_contiguous_images(ep, lt, name):  # noqa: F811
    compare(ep, name, np.float32, 1e-5, prefer_nhwc=True)


def test_one_channel_as_the_last_axis_fills_the_whole_output(ep, lt):  # noqa: F811
    serialized, feeds = one_node(
        "Conv", (IMAGE[:, :1], floats(3, 1, 3, 3), floats(3)), {"pads": [1, 1, 1, 1]}
    )
    made = session(serialized, ep.provider("cuda:0", prefer_nhwc=True))
    expected = on_cpu(serialized).run(None, feeds)[0]
    np.testing.assert_allclose(made.run(None, feeds)[0], expected, rtol=1e-5, atol=1e-5)


def test_repeats_have_scratch_memory_of_their_own_and_give_it_back(ep, lt, fake_cuda):  # noqa: F811
    op_type, inputs, attributes = CASES["windows as columns"]
    serialized, feeds = one_node(op_type, inputs, attributes)
    made = ep.session(serialized, device="cuda:0")
    for _ in range(3):
        made.run(None, feeds)
    allocations = fake_cuda.calls("cuMemAlloc")
    assert allocations
    for _ in range(20):
        made.run(None, feeds)
    assert fake_cuda.calls("cuMemAlloc") == allocations
