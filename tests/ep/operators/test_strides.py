"""Windows with strides beyond their size, padded by ``auto_pad``."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from tests.ep.sessions import OURS, on_cpu, one_node, placement, session

pytestmark = pytest.mark.release_independent  # older CPU providers refuse some of them

MODES = ["SAME_UPPER", "SAME_LOWER", "VALID"]
WINDOWS = [
    (size, stride, length)
    for size, stride, length in itertools.product((1, 2, 3), (2, 3, 4, 5), (5, 6, 7, 8, 10))
    if stride > size
]
rng = np.random.default_rng(0)


def floats(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def results(provider, op_type, inputs, attributes, opset, outputs=1):
    """Result of our kernel, the serialized model and its feeds."""
    model, feeds = one_node(op_type, inputs, attributes, opset=opset, outputs=outputs)
    made = session(model, provider())
    assert placement(made) == {"node": OURS}
    return made.run(None, feeds), model, feeds


def compare(got, expected):
    for value, wanted in zip(got, expected, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("op_type", "opset", "outputs", "more"),
    [
        ("MaxPool", 12, 2, {}),
        ("AveragePool", 19, 1, {}),
        ("AveragePool", 19, 1, {"count_include_pad": 1, "ceil_mode": 1}),
        ("LpPool", 18, 1, {"p": 2}),
    ],
)
def test_pooling_leaves_out_what_the_cpu_provider_leaves_out(
    provider, op_type, opset, outputs, more, mode
):
    for size, stride, length in WINDOWS:
        attributes = {"kernel_shape": [size, 1], "strides": [stride, 1], "auto_pad": mode, **more}
        got, model, feeds = results(
            provider, op_type, [floats(1, 2, length, 3)], attributes, opset, outputs
        )
        compare(got, on_cpu(model).run(None, feeds))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", [0, 1])
def test_a_transposed_convolution_has_the_size_that_the_cpu_provider_gives(provider, mode, padding):
    for size, stride, length in WINDOWS:
        attributes = {"strides": [stride], "auto_pad": mode, "output_padding": [padding]}
        inputs = [floats(1, 2, length), floats(2, 3, size)]
        got, model, feeds = results(provider, "ConvTranspose", inputs, attributes, 18)
        compare(got, on_cpu(model).run(None, feeds))


@pytest.mark.parametrize("mode", MODES)
def test_a_convolution_begins_with_the_first_element(provider, mode):
    # Unlike the CPU provider, which leaves out the elements from the fourth on, and unlike pooling.
    for size, stride, length in WINDOWS:
        attributes = {"strides": [stride], "auto_pad": mode}
        inputs = [floats(1, 2, length), floats(3, 2, size)]
        got, model, feeds = results(provider, "Conv", inputs, attributes, 18)
        compare(got, ReferenceEvaluator(onnx.load_from_string(model)).run(None, feeds))
