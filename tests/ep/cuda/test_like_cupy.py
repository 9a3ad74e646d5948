"""The package's kernels with arrays that behave like CuPy arrays, without a GPU.

The functions, parameters and dtypes of CuPy are in tests/data/cupy_api.json. Code in CUDA C++ is
compiled by the host's compiler.
"""

from __future__ import annotations

import collections

import numpy as np
import onnxruntime
import pytest

from epprof_nb.ep.kernel import REGISTRY
from epprof_nb.ep.kernels.cuda import attention as cuda_attention
from epprof_nb.ep.kernels.cuda import indexing as cuda_indexing
from epprof_nb.ep.kernels.cuda import rows as cuda_rows
from epprof_nb.ep.kernels.layers import scaled_dot_product
from tests.ep import onnx_backend
from tests.ep.fake_cuda.library import compiler
from tests.ep.like_cupy.arrays import Array
from tests.ep.like_cupy.compiled import C_TYPES
from tests.ep.like_cupy.kernels import MODULE, LikeCuPy
from tests.ep.operators import test_attention, test_contrib_operators, test_nhwc, test_operators
from tests.ep.sessions import on_cpu, one_node, options, session

pytestmark = [
    pytest.mark.release_independent,
    pytest.mark.skipif(compiler() is None, reason="needs a C++ compiler"),
]

MOST_CASES = 10  # of an operator
WAITING = {
    "Compress": "the shape of its output depends on the condition",
    "NonZero": "the shape of its output depends on the input",
    "Unique": "the shapes of its outputs depend on the input",
}
"""Operators whose kernels wait for the device, and why."""
COPYING = {
    "Bernoulli", "Dropout", "MelWeightMatrix", "RandomNormal", "RandomNormalLike", "RandomUniform",
    "RandomUniformLike", "Resize", "RoiAlign", "TfIdfVectorizer", "TreeEnsemble", "Upsample",
}  # fmt: skip
"""Operators whose kernels copy something that they have computed on the host."""

rng = np.random.default_rng(0)


@pytest.fixture(scope="module")
def backend():
    """Results of ONNX's backend cases, some of each operator, and the functions that waited."""
    from epprof_nb import ep

    entry = ep.provider("host")
    number = collections.Counter()
    chosen = []
    for case in onnx_backend.load_cases():
        op_type = case.model.graph.node[0].op_type
        number[op_type] += 1
        if number[op_type] <= MOST_CASES:
            chosen.append(case)
    with LikeCuPy(REGISTRY.kernels()) as like_cupy:
        results = [onnx_backend.run_case(case, entry, like_cupy) for case in chosen]
    return [result for result in results if result is not None], like_cupy.waits


def test_backend_cases_pass_with_what_cupy_has(backend):
    results, _ = backend
    known = onnx_backend.known_failures()
    assert [r for r in results if not r.passed and r.name not in known] == []
    assert sum(r.passed for r in results) > 400


def test_kernels_that_wait_for_the_device_are_known(backend):
    _, waits = backend
    copying = {op_type for op_type, found in waits.items() if found["copy from the host"]}
    assert copying <= COPYING
    others = {op_type for op_type, found in waits.items() if set(found) - {"copy from the host"}}
    assert others == set(WAITING)


def compare(op_type, inputs, attributes, outputs, **how):
    from epprof_nb import ep

    serialized, feeds = one_node(op_type, inputs, attributes, outputs=outputs, **how)
    expected = on_cpu(serialized).run(None, feeds)
    made = session(serialized, ep.provider("host"))
    with LikeCuPy(REGISTRY.kernels()) as like_cupy:
        got = made.run(None, feeds)
    assert like_cupy.calls == {(how.get("domain", ""), op_type): 1}
    waits = {reason for reason, count in like_cupy.waits[op_type].items() if count}
    assert op_type in WAITING or waits <= {"copy from the host"}
    return got, expected


@pytest.mark.parametrize("op_type", test_operators.CASES)
def test_operators_give_what_the_cpu_provider_gives(op_type):
    for case in test_operators.CASES[op_type]:
        values = list(case)
        outputs = values.pop() if isinstance(values[-1], int) else 1
        attributes = values.pop() if isinstance(values[-1], dict) else {}
        for got, expected in zip(*compare(op_type, values, attributes, outputs), strict=True):
            assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    "case", [*test_operators.OLDER, *test_operators.EDGES], ids=lambda case: f"{case[0]}-{case[1]}"
)
def test_older_versions_and_extreme_inputs_give_what_the_cpu_provider_gives(case):
    op_type, opset, values, attributes, *outputs = case
    outputs = outputs[0] if outputs else 1
    both = compare(op_type, values, attributes, outputs, opset=opset)
    for got, expected in zip(*both, strict=True):
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("op_type", test_nhwc.CASES)
def test_channels_as_the_last_axis_give_what_the_cpu_provider_gives(op_type):
    from epprof_nb import ep

    for inputs, attributes, outputs in test_nhwc.CASES[op_type]:
        serialized, feeds = one_node(op_type, inputs, attributes, outputs=outputs)
        expected = on_cpu(serialized).run(None, feeds)
        chosen = options()
        chosen.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        entry = ep.provider("host", prefer_nhwc=True)
        made = onnxruntime.InferenceSession(serialized, chosen, providers=[entry])
        with LikeCuPy(REGISTRY.kernels()) as like_cupy:
            got = made.run(None, feeds)
        assert like_cupy.calls[test_nhwc.DOMAIN, op_type] == 1
        assert not +like_cupy.waits[op_type]
        for value, wanted in zip(got, expected, strict=True):
            np.testing.assert_allclose(value, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("op_type", test_contrib_operators.CASES)
def test_contrib_operators_give_what_the_cpu_provider_gives(op_type):
    tolerance = test_contrib_operators.TOLERANCE.get(op_type, 2e-5)
    for inputs, attributes, outputs in test_contrib_operators.CASES[op_type]:
        defined = outputs if callable(outputs) else lambda *outs: outs
        got, expected = compare(
            op_type, inputs, attributes, 3 if callable(outputs) else outputs, opset=21,
            domain=test_contrib_operators.DOMAIN,
            fixed=True,
        )  # fmt: skip
        for value, wanted in zip(defined(*got), defined(*expected), strict=True):
            np.testing.assert_allclose(value, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("opset", test_attention.OPSETS)
@pytest.mark.parametrize("mode", range(4))
def test_the_stages_of_an_attention_are_those_of_the_cpu_provider(opset, mode):
    inputs, attributes = test_attention.decoder(3, 4, flat=True)
    attributes["qk_matmul_output_mode"] = mode
    for got, wanted in zip(*compare("Attention", inputs, attributes, 4, opset=opset), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-5)


def run_on_device(op_type, inputs, attributes=None, *, opset=18):
    from epprof_nb import ep

    serialized, feeds = one_node(op_type, inputs, attributes, opset=opset)
    with LikeCuPy(REGISTRY.kernels()):
        return session(serialized, ep.provider("host")).run(None, feeds)[0]


A = np.arange(1, 13, dtype=np.float32).reshape(3, 4)


def ints(*values):
    return np.array(values, np.int64)


def test_an_index_outside_of_its_axis_reads_0():
    got = run_on_device("Gather", (A, ints(2, 3, -3, -4)))
    np.testing.assert_array_equal(got, [A[2], 0 * A[0], A[0], 0 * A[0]])
    got = run_on_device("Gather", (A, ints(1, 4)), {"axis": 1})
    np.testing.assert_array_equal(got, np.stack([A[:, 1], 0 * A[:, 1]], axis=1))
    got = run_on_device("GatherElements", (A, ints(-1, 9, 0).reshape(3, 1)), {"axis": 1})
    np.testing.assert_array_equal(got, [[4], [0], [9]])
    got = run_on_device("GatherND", (A, ints(0, 4, 1, 1, 3, 0).reshape(3, 2)))
    np.testing.assert_array_equal(got, [0, 6, 0])
    # An index beyond the first batch does not reach the second.
    got = run_on_device("GatherND", (A, ints(4, 0, -5).reshape(3, 1)), {"batch_dims": 1})
    np.testing.assert_array_equal(got, [0, 5, 0])


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_an_update_outside_of_its_axis_is_left_out(reduction):
    attributes = {"reduction": reduction}
    updates = np.array([[2, 3]], np.float32)
    combine = {"none": lambda _, b: b, "add": np.add, "mul": np.multiply, "max": np.maximum,
               "min": np.minimum}[reduction]  # fmt: skip
    got = run_on_device("ScatterElements", (A, ints(3, -1).reshape(1, 2), updates), attributes)
    wanted = A.copy()
    wanted[2, 1] = combine(A[2, 1], 3)
    np.testing.assert_array_equal(got, wanted)
    rows = np.array([[2] * 4, [3] * 4], np.float32)
    got = run_on_device("ScatterND", (A, ints(-4, 1).reshape(2, 1), rows), attributes)
    wanted = A.copy()
    wanted[1] = combine(A[1], 3)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
@pytest.mark.parametrize("kind", C_TYPES)
def test_rows_are_combined_in_every_dtype(kind, reduction):
    out, updates = (rng.integers(0, 9, shape).astype(kind) for shape in ((5, 3), (4, 3)))
    rows = np.array([0, -1, 2, 0] if reduction != "none" else [0, -1, 2, 1])
    wanted = out.copy()
    function = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
    if reduction == "none":
        wanted[rows] = updates
    else:
        function[reduction].at(wanted, rows, updates)
    cuda_indexing.put_rows(MODULE, Array(out), Array(rows), Array(updates), reduction)
    np.testing.assert_array_equal(out, wanted)


def test_nan_wins_over_other_numbers():
    out = np.array([[1], [np.nan]], np.float32)
    updates = np.array([[np.nan], [1]], np.float32)
    cuda_indexing.put_rows(MODULE, Array(out), Array(ints(0, 1)), Array(updates), "max")
    assert np.isnan(out).all()


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "axis"), [((3, 5), 1), ((2, 3, 300), 2), ((4, 7, 9), 1), ((1,), 0)]
)
def test_a_softmax_of_rows(kind, shape, axis):
    x = (rng.standard_normal(shape) * 5).astype(kind)
    out = np.empty_like(x)
    cuda_rows.softmax(MODULE, Array(x), axis, Array(out))
    wanted = np.exp(x.astype(np.float64) - x.max(axis=axis, keepdims=True))
    wanted /= wanted.sum(axis=axis, keepdims=True)
    np.testing.assert_allclose(out, wanted, rtol=4 * np.finfo(kind).eps, atol=1e-6)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("has_bias", [False, True])
def test_a_normalization_of_rows(kind, has_bias):
    x = (rng.standard_normal((4, 3, 70)) + 3).astype(kind)
    scale, bias = (rng.standard_normal(70).astype(kind) for _ in range(2))
    out = np.empty_like(x)
    wide = np.float64 if kind == np.float64 else np.float32
    means, inverses = np.empty((4, 3, 1), wide), np.empty((4, 3, 1), wide)
    cuda_rows.normalize(
        MODULE, Array(x), Array(scale), Array(bias) if has_bias else None, 1e-5, Array(out),
        Array(means), Array(inverses),
    )  # fmt: skip
    exact = x.astype(np.float64)
    mean, variance = exact.mean(-1, keepdims=True), exact.var(-1, keepdims=True)
    wanted = (exact - mean) / np.sqrt(variance + 1e-5) * scale + (bias if has_bias else 0)
    precision = 20 * np.finfo(kind).eps
    np.testing.assert_allclose(out, wanted, rtol=precision, atol=precision)
    np.testing.assert_allclose(means, mean, rtol=1e-5)
    np.testing.assert_allclose(inverses, 1 / np.sqrt(variance + 1e-5), rtol=1e-5)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("bias", [None, (5,), (1, 3, 4, 5), (2, 1, 4, 1), (2, 3, 4, 5)])
@pytest.mark.parametrize("mask", [None, (4, 5), (2, 1, 1, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize("has_sink", [False, True])
def test_weights_of_an_attention(kind, bias, mask, has_sink):
    scores = (rng.standard_normal((2, 3, 4, 5)) * 5).astype(kind)
    scores[0, 0, 0, 1], scores[0, 0, 1, 2] = np.nan, np.inf
    scores[0, 1, 0], scores[1, 1, 1, 1] = -np.inf, -np.inf
    added = None if bias is None else rng.standard_normal(bias).astype(kind)
    shown = None if mask is None else rng.random(mask) < 0.6
    sink = rng.standard_normal(3).astype(kind) if has_sink else None
    with np.errstate(invalid="ignore"):
        wanted = scaled_dot_product._weights(
            np, scores, added, shown, sink, 0.0, scaled_dot_product.Stages()
        )
    given = [None if x is None else Array(x) for x in (added, shown, sink)]
    assert cuda_attention.write_weights(MODULE, Array(scores), *given)
    np.testing.assert_allclose(scores, wanted, rtol=20 * np.finfo(kind).eps, atol=1e-7)


def test_weights_of_an_attention_need_a_sink_per_head():
    scores = np.zeros((1, 2, 3, 4), np.float32)
    one = Array(np.ones(1, np.float32))
    assert not cuda_attention.write_weights(MODULE, Array(scores), None, None, one)
    with pytest.raises(ValueError, match="broadcast"):
        cuda_attention.write_weights(
            MODULE, Array(scores), Array(np.ones((3,), np.float32)), None, None
        )


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: MODULE.take(x, x, mode="wrap"), "unexpected keyword argument 'mode'"),
        (lambda x: MODULE.max(x, initial=0), "unexpected keyword argument 'initial'"),
        (lambda x: np.multiply.at(x, x, x), "not supported yet"),
        (lambda x: MODULE.exp(np.ones(3)), "Unsupported type"),
        (lambda x: x + np.ones(3), "Unsupported type"),
        (np.asarray, "Implicit conversion"),
        (lambda x: MODULE.bitwise_and(x * 1.5, x * 1.5), "Wrong type"),
        (lambda x: MODULE.copyto(x, np.ones(3)), "Unsupported type"),
        (lambda x: MODULE.busday_count, "no attribute"),
        (lambda x: MODULE.where(True, x, x), "'bool' object has no attribute 'astype'"),
    ],
)
def test_the_stand_in_refuses_what_cupy_refuses(call, error):
    with pytest.raises((TypeError, NotImplementedError, AttributeError), match=error):
        call(Array(np.ones(3, np.int64)))
