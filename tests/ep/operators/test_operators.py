"""Each kernel of the package against ONNX Runtime's CPU provider."""

from __future__ import annotations

import math
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.ep.onnx_backend import PAGE
from tests.ep.sessions import OURS, on_cpu, one_node, placement, session
from tests.paths import ROOT

# The kernels are those of all releases, each of which runs ONNX's own cases of them.
pytestmark = pytest.mark.release_independent

CONTRIB = "com.microsoft"

rng = np.random.default_rng(0)


def floats(*shape, kind=np.float32):
    return rng.standard_normal(shape).astype(kind)


def ints(*values):
    return np.array(values, np.int64)


A, B = floats(3, 4), floats(3, 4)
IMAGE = floats(2, 4, 9, 8)
FLAGS = A > 0
GRAMS = {
    "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 1, "ngram_counts": [0, 2],
    "pool_int64s": [3, 9, 2, 3], "weights": [0.5, 2.0, 3.0],
}  # fmt: skip
BYTES = np.array([1, 200, 3, 4, 5, 0], np.uint8)
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
    "GlobalAveragePool": [(IMAGE,)], "GlobalMaxPool": [(IMAGE,)], "GlobalLpPool": [(IMAGE,)],
    "BitShift": [(BYTES, BYTES[::-1].copy(), {"direction": "LEFT"}),
                 (BYTES, np.uint8(9), {"direction": "RIGHT"})],
    "Celu": [(A, {"alpha": 0.5})], "Mod": [(ints(7, -7), ints(3, 3)), (A, B, {"fmod": 1})],
    "Compress": [(A, FLAGS[:, 0].copy(), {"axis": 0}), (A, FLAGS.reshape(-1).copy())],
    "DepthToSpace": [(floats(1, 8, 2, 3), {"blocksize": 2}),
                     (floats(1, 8, 2, 3), {"blocksize": 2, "mode": "CRD"})],
    "SpaceToDepth": [(floats(1, 2, 4, 6), {"blocksize": 2})],
    "QuantizeLinear": [(A, np.float32(0.02), np.uint8(100)),
                       (A, floats(4) ** 2 + 1, np.zeros(4, np.int8), {"axis": 1})],
    "DequantizeLinear": [(BYTES, np.float32(0.02), np.uint8(3)), (
        BYTES.reshape(2, 3), floats(2), np.array([1, 2], np.uint8), {"axis": 0})],
    "Einsum": [(A, B, {"equation": "ij, kj -> ik"}), (IMAGE, {"equation": "...ij->...ji"}),
               (floats(3, 3), {"equation": "ii"})],
    "OneHot": [(ints(0, -1, 9), np.int64(4), floats(2)),
               (ints(1, 0), np.int64(3), ints(5, 7), {"axis": 0})],
    "Range": [(np.float32(1), np.float32(2), np.float32(0.3)), (np.int64(9), np.int64(-1),
              np.int64(-3)), (np.int64(3), np.int64(1), np.int64(1))],
    "ReduceLogSum": [(np.abs(A), ints(1))], "ReduceLogSumExp": [(A * 100, ints(0))],
    "TfIdfVectorizer": [
        (np.array([[1, 2, 3, 2, 3], [3, 3, 1, 2, 9]], np.int64),
         {**GRAMS, "mode": mode, "ngram_indexes": indexes})
        # Older releases take the weights by the index of the output.
        for mode, indexes in (("TF", [2, 0, 1]), ("IDF", [0, 1, 2]), ("TFIDF", [0, 1, 2]))
    ],
    "ReverseSequence": [(floats(4, 3, 2), ints(1, 4, 2)),
                        (A, ints(4, 2, 1), {"batch_axis": 0, "time_axis": 1})],
    "SimplifiedLayerNormalization": [(A, floats(4), {"epsilon": 1e-3})],
    "Unique": [(ints(3, 1, 3, 2), 4), (ints(3, 1, 3, 2), {"sorted": 0}, 4),
               (np.array([[1, 2], [0, 1], [1, 2]], np.float32), {"axis": 0}, 4)],
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
def test_a_kernel_gives_what_the_cpu_provider_gives(provider, op_type, case):
    values = list(case)
    outputs = values.pop() if isinstance(values[-1], int) else 1
    attributes = values.pop() if isinstance(values[-1], dict) else {}
    compare(provider, op_type, values, attributes, outputs=outputs, opset=18)


def test_one_hot_drops_the_fraction_of_indices(provider):
    """As ONNX says; the CPU provider of ONNX Runtime 1.25 does not."""
    off_on = floats(2)
    with_fractions = np.float32([0, 1.5, -1.5, -0.5, 3.9, 9]), np.float32(4.7), off_on
    found = []
    for values in (with_fractions, (ints(0, 1, -1, 0, 3, 9), np.int64(4), off_on)):
        serialized, feeds = one_node("OneHot", values, {}, opset=18)
        found.append(session(serialized, provider()).run(None, feeds)[0])
    np.testing.assert_array_equal(*found)


def compare(provider, op_type, values, attributes, *, outputs=1, opset):
    serialized, feeds = one_node(op_type, values, attributes, outputs=outputs, opset=opset)
    ours = session(serialized, provider())
    assert placement(ours)["node"] == OURS
    for got, expected in zip(
        ours.run(None, feeds), on_cpu(serialized).run(None, feeds), strict=True
    ):
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        tolerance = 0 if op_type in EXACT else 2e-5
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance)


def test_every_kernel_of_the_package_is_tested():
    import epprof_nb.ep.provider  # noqa: F401 - defines them
    from epprof_nb.ep.kernel import NEWEST_OPSET, REGISTRY

    # ONNX's backend tests have the newest version of most operators.
    rows = re.findall(r"^\| (\w+) \| ([1-9]\d*) \| \d+ \|$", PAGE.read_text(), re.MULTILINE)
    newest = {row[0] for row in rows} | set(CASES) | RANDOM
    kernels = [k.declaration for k in REGISTRY._builtin if k.declaration.domain != CONTRIB]
    assert {d.op_type for d in kernels} - newest == {"Crop"}  # which ended with opset 9
    older = {(d.op_type, d.last_version) for d in kernels if d.last_version < NEWEST_OPSET[""]}
    tested = {(op_type, opset) for op_type, opset, *_ in OLDER}
    untested = {
        (op_type, last)
        for op_type, last in older
        if not any(name == op_type and opset <= last for name, opset in tested)
    }
    assert untested == set()


OLDER = [
    ("Clip", 10, (A,), {"min": -0.5, "max": 0.5}),
    ("BatchNormalization", 9, (IMAGE, *(np.abs(floats(4)) for _ in range(4))), {}),
    *((name, opset, (floats(2, 3, 4),), {"axis": 1})
      for name in ("Softmax", "LogSoftmax", "Hardmax") for opset in (7, 11)),
    ("Pad", 10, (A,), {"pads": [1, 0, -1, 2], "value": 3.0}),
    ("Pad", 10, (A,), {"pads": [1, 2, 1, 2], "mode": "reflect"}),
    ("Dropout", 10, (A,), {}), ("Dropout", 10, (A,), {}, 2), ("Dropout", 7, (A,), {}, 2),
    *((name, 13, (np.abs(IMAGE),), {"axes": [1, -1], "keepdims": keep})
      for name in ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
                   "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSumSquare")
      for keep in (0, 1)),
    ("ReduceSum", 11, (IMAGE,), {"axes": [2]}), ("ReduceSum", 11, (IMAGE,), {}),
    ("Resize", 10, (IMAGE, np.array([1, 1, 2, 0.5], np.float32)), {"mode": "nearest"}),
    ("Resize", 10, (IMAGE, np.array([1, 1, 2, 1.5], np.float32)), {"mode": "linear"}),
    ("Upsample", 9, (IMAGE, np.array([1, 1, 2, 3], np.float32)), {"mode": "nearest"}),
    ("Upsample", 7, (IMAGE,), {"mode": "linear", "scales": [1.0, 1.0, 2.0, 2.0]}),
    ("RoiAlign", 10, (IMAGE, np.array([[0, 0, 6, 6], [1, 2, 8, 4]], np.float32), ints(0, 1)),
     {"output_height": 3, "output_width": 2, "sampling_ratio": 2}),
    ("TopK", 9, (A,), {"k": 2}, 2),
    ("Squeeze", 11, (floats(1, 3, 1),), {"axes": [0]}), ("Squeeze", 11, (floats(1, 3, 1),), {}),
    ("Unsqueeze", 11, (A,), {"axes": [0, 2]}),
    ("Slice", 9, (IMAGE,), {"starts": [1, -3], "ends": [9, 100], "axes": [2, 3]}),
    ("Slice", 9, (A,), {"starts": [1], "ends": [2]}),
    ("Crop", 9, (IMAGE,), {"border": [1, 2, 3, 4]}),
    ("Crop", 9, (IMAGE,), {"border": [1, 2, 3, 4], "scale": [2, 3]}),
    ("DFT", 17, (floats(2, 8, 1),), {"axis": 1, "onesided": 1}),
    ("Split", 11, (IMAGE,), {"axis": 1, "split": [1, 3]}, 2),
    ("Split", 11, (IMAGE,), {"axis": 1}, 4),
    # The CPU provider expands it into other operators.
    ("GroupNormalization", 18, (IMAGE, floats(2), floats(2)), {"num_groups": 2}),
    ("Attention", 23, tuple(floats(2, 3, n, 8) for n in (4, 5, 5)), {"is_causal": 1}),
    ("Clip", 12, (A, np.float32(0), np.float32(1)), {}),
    ("Gemm", 7, (A, B, floats(3)), {"transB": 1}),
    ("Pow", 7, (np.abs(A), B), {}), ("Resize", 11, (IMAGE, np.zeros(0, np.float32), np.array(
        [1, 1, 2, 2], np.float32)), {"mode": "cubic"}),
]  # fmt: skip


@pytest.mark.parametrize("case", OLDER, ids=lambda case: f"{case[0]}-{case[1]}")
def test_an_older_version_gives_what_the_cpu_provider_gives(provider, case):
    op_type, opset, values, attributes, *outputs = case
    count = outputs[0] if outputs else 1
    compare(provider, op_type, values, attributes, outputs=count, opset=opset)


INVERTED = np.array([[6, 6, 2, 2], [7, 5, 1, 4], [5, 5, 5, 5], [1, 1, 6, 6]], np.float32)
REGIONS = (IMAGE, INVERTED, ints(0, 1, 0, 1))
POOLED = {"output_height": 2, "output_width": 2}
LARGE = np.array([3e38, -3e38, 2, -2, 0], np.float32)
ZEROS_AND_9 = np.zeros((1, 1, 4, 4), np.uint8)
ZEROS_AND_9[..., 3, 3] = 9
PADDED = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [1, 1, 1, 1]}
EDGES = [
    ("Gemm", 18, (A, floats(4, 2), np.full(2, np.nan, np.float32)), {"beta": 0.0}),
    ("Gemm", 18, (A, floats(4, 2), np.full((3, 2), np.inf, np.float32)), {"beta": 0.0}),
    # The product is above the largest number of float16, the result is not.
    ("Gemm", 18, (np.full((2, 4), 150, np.float16), np.full((4, 3), 150, np.float16),
                  np.full(3, -40000, np.float16)), {}),
    ("Gelu", 20, (LARGE,), {}), ("Gelu", 20, (LARGE,), {"approximate": "tanh"}),
    ("RoiAlign", 16, REGIONS, POOLED), ("RoiAlign", 16, REGIONS, {**POOLED, "mode": "max"}),
    ("RoiAlign", 16, REGIONS, {**POOLED, "sampling_ratio": 2}),
    ("ScatterND", 18, (A, np.zeros((2, 0), np.int64), floats(2, 3, 4)), {}),
    ("ScatterND", 18, (A, np.zeros((2, 0), np.int64), floats(2, 3, 4)), {"reduction": "add"}),
    ("GatherND", 18, (A.reshape(1, 3, 4)[:0], np.zeros((0, 2, 1), np.int64)), {"batch_dims": 1}),
    ("MaxPool", 18, (IMAGE[:0],), {"kernel_shape": [2, 2]}, 2),
    # Padding is never the maximum, even of the lowest numbers.
    ("MaxPool", 12, (ZEROS_AND_9,), PADDED, 2),
    ("MaxPool", 12, (np.where(ZEROS_AND_9 > 0, 1, -np.inf).astype(np.float32),), PADDED, 2),
    ("MaxPool", 12, (np.where(ZEROS_AND_9 > 0, 1, np.nan).astype(np.float32)[..., 3:, 3:],),
     PADDED, 2),
    # The mean of large numbers is rounded.
    *(("LayerNormalization", 17, (np.full((2, 768), v, np.float32), np.ones(768, np.float32)), {})
      for v in (100.1, 1e4, 1e6)),
    ("LayerNormalization", 17, (np.arange(100, dtype=np.float32)[None] + np.float32(1e6),
                                np.ones(100, np.float32)), {}),
    ("ConvTranspose", 18, (IMAGE[:0], floats(4, 1, 3, 3)), {"group": 2}),
    *((name, 13, (np.array([[1, np.nan, 3, 3], [np.nan, 1, 2, 3]], np.float32),),
       {"select_last_index": last, "axis": 1})
      for name in ("ArgMax", "ArgMin") for last in (0, 1)),
    ("Clip", 13, (LARGE, np.float32(np.nan), np.float32(1)), {}),
    ("Pad", 18, (A, ints(2, 3, 2, 3)), {"mode": "reflect"}),
]  # fmt: skip


@pytest.mark.parametrize("case", EDGES)
def test_an_extreme_or_empty_input_gives_what_the_cpu_provider_gives(provider, case):
    op_type, opset, values, attributes, *outputs = case
    count = outputs[0] if outputs else 1
    compare(provider, op_type, values, attributes, outputs=count, opset=opset)


def test_a_fused_gemm_without_beta_ignores_c(provider):
    c = np.full(2, np.nan, np.float32)
    attributes = {"activation": "Relu", "beta": 0.0}
    serialized, feeds = one_node("FusedGemm", (A, B[:2].T.copy(), c), attributes, domain=CONTRIB)
    made = session(serialized, provider())
    assert placement(made)["node"] == OURS
    np.testing.assert_allclose(made.run(None, feeds)[0], np.maximum(A @ B[:2].T, 0), rtol=1e-5)


INTEGERS = """
import sys
import numpy as np
from epprof_nb import ep
from tests.ep.sessions import one_node, session

device, *kinds = sys.argv[1:]
for kind in map(np.dtype, kinds):
    low = np.iinfo(kind).min
    a = np.array([low, low, 7, 0] * 20, kind)
    b = np.array([np.array(-1).astype(kind), 0, 0, 0] * 20, kind)
    for op_type, attributes in (("Div", {}), ("Mod", {}), ("Mod", {"fmod": 1})):
        model, feeds = one_node(op_type, (a, b), attributes)
        result, *_ = session(model, ep.provider(device)).run(None, feeds)
        print(kind, op_type, *result[:4].tolist(), flush=True)
"""


def test_integer_division_that_has_no_result_does_not_end_the_process(ep_device):
    kinds = ["int8", "int16", "int32", "int64", "uint8", "uint64"]
    command = [sys.executable, "-c", INTEGERS, ep_device, *kinds]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    # A division by zero gives 0; the lowest number by -1 gives itself, which is what NumPy gives.
    assert done.stdout.splitlines() == [
        f"{kind} {line}"
        for kind in kinds
        for line in (f"Div {np.iinfo(kind).min} 0 0 0", "Mod 0 0 0 0", "Mod 0 0 0 0")
    ]


RANDOM = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"}


@pytest.mark.parametrize("op_type", sorted(RANDOM))
def test_random_numbers_have_their_distribution_and_seed(provider, op_type):
    like = op_type.endswith("Like") or op_type == "Bernoulli"
    inputs = (np.full(20_000, 0.25, np.float32),) if like else ()
    shape = {} if like else {"shape": [20_000]}
    mean, scale, given = {
        "Bernoulli": (0.25, math.sqrt(0.1875), {}),
        "RandomNormal": (3, 2, {"mean": 3.0, "scale": 2.0}),
        "RandomUniform": (5, math.sqrt(4 / 12), {"low": 4.0, "high": 6.0}),
    }[op_type.removesuffix("Like")]
    drawn = []
    for _ in range(2):
        serialized, feeds = one_node(op_type, inputs, {**given, **shape, "seed": 7.0})
        ours = session(serialized, provider())
        assert placement(ours)["node"] == OURS
        drawn.append(ours.run(None, feeds)[0])
    np.testing.assert_array_equal(*drawn)
    # Six standard errors.
    assert abs(drawn[0].mean() - mean) < 6 * scale / math.sqrt(20_000)
    assert drawn[0].std() == pytest.approx(scale, rel=0.05)


def test_versions_that_the_package_does_not_know_are_left_to_others():
    from epprof_nb.ep import operator_schemas
    from epprof_nb.ep.kernel import NEWEST_OPSET, REGISTRY

    assert REGISTRY._builtin
    for kernel in REGISTRY._builtin:
        declared = kernel.declaration
        newest = NEWEST_OPSET.get(declared.domain)
        versions = operator_schemas._versions()[declared.domain, declared.op_type]
        later = [v.since_version for v in versions if newest and v.since_version > newest]
        assert all(declared.last_version < version for version in later)
