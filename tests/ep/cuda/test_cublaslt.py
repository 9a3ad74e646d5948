"""Products with a bias or a matrix added in the same launch, with a stand-in for cuBLASLt."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import OrderedDict
from functools import partial

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import InferenceSession

from epprof_nb import _native
from epprof_nb.core.errors import KernelError
from epprof_nb.ep import kernel_sets
from epprof_nb.ep.products import cublas, cublaslt, products
from tests.ep.fake_cuda.cublas import Cublas
from tests.ep.fake_cuda.cublaslt import CublasLt, Product
from tests.ep.sessions import call_in_kernel, model, on_cpu
from tests.helpers.threads import run_all

COMPUTE_TYPES = {"float16": 68, "float32": 68, "float64": 70}
"""cuBLAS's numbers of the types in which products are computed."""


@pytest.fixture
def lt(fake_cuda, monkeypatch):
    """The stand-in for cuBLASLt, beside the one for cuBLAS."""
    _native.ep_open_cublaslt(fake_cuda.path)
    made = CublasLt(fake_cuda)
    made.blas = Cublas(fake_cuda.module)
    monkeypatch.setattr(cublas, "library", lambda: made.blas)
    monkeypatch.setattr(cublaslt, "is_available", lambda: True)
    cublas._is_hopper.cache_clear()
    cublaslt._prepare.cache_clear()
    return made


def values(shape, dtype, seed):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def matrices(dtype, shape):
    """Inputs of a Gemm whose result has the shape (3, 5), with a third input of some shape."""
    shapes = {"a": (3, 4), "b": (4, 5), "c": shape}
    return {name: values(s, dtype, i) for i, (name, s) in enumerate(shapes.items())}


def other_launches(lt):
    """Launches in runs, other than those of cuBLASLt."""
    return [stream for _, stream in lt.blas.module.launches if stream is not None]


@pytest.fixture
def in_kernel(lt, ep):
    """Run a function of arrays on a device, inside a kernel; return its result on the host."""
    return partial(call_in_kernel, ep)


def gemm(feeds, **attributes):
    """A session's model of one Gemm of inputs a, b and perhaps c."""
    node = helper.make_node("Gemm", list(feeds), ["y"], **attributes)
    return model([node], feeds, {"y": feeds["a"].dtype})


def run_gemm(ep, feeds, **attributes):
    serialized = gemm(feeds, **attributes)
    got = ep.session(serialized, device="cuda:0").run(None, feeds)[0]
    expected = on_cpu(serialized).run(None, feeds)[0]
    np.testing.assert_allclose(got, expected, rtol=1e-3)
    assert got.dtype == expected.dtype


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(5,), (1, 5)])
@pytest.mark.parametrize(("trans_a", "trans_b"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_a_bias_is_added_in_the_launch_of_a_gemm(ep, lt, dtype, shape, trans_a, trans_b):
    a, b = values((3, 4), dtype, 0), values((4, 5), dtype, 1)
    feeds = {
        "a": np.ascontiguousarray(a.T) if trans_a else a,
        "b": np.ascontiguousarray(b.T) if trans_b else b,
        "c": values(shape, dtype, 2),
    }
    run_gemm(ep, feeds, transA=trans_a, transB=trans_b, alpha=0.5)
    compute = COMPUTE_TYPES[dtype]
    assert lt.products == [Product(1, 3, 5, 4, has_bias=True, has_matrix=False, compute=compute)]
    assert other_launches(lt) == []


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_matrix_is_added_in_the_launch_of_a_gemm(ep, lt, dtype):
    feeds = matrices(dtype, (3, 5))
    run_gemm(ep, feeds, alpha=2.0, beta=0.5)
    compute = COMPUTE_TYPES[dtype]
    assert lt.products == [Product(1, 3, 5, 4, has_bias=False, has_matrix=True, compute=compute)]


@pytest.mark.parametrize(
    ("shape", "attributes"),
    [
        ((), {}),
        ((1,), {}),
        ((3, 1), {}),
        ((1, 1), {}),
        ((5,), {"beta": 0.5}),
        ((1, 5), {"beta": 2.0}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_what_cublaslt_does_not_add_is_added_after(ep, lt, shape, attributes, dtype):
    feeds = {
        "a": values((3, 4), dtype, 0),
        "b": values((4, 5), dtype, 1),
        "c": values(shape, dtype, 2),
    }
    run_gemm(ep, feeds, **attributes)
    assert [p.has_bias or p.has_matrix for p in lt.products] == [False]


def test_a_matrix_of_factor_zero_is_not_read(ep, lt):
    c = np.full((3, 5), np.nan, np.float32)
    feeds = {**matrices("float32", (3, 5)), "c": c}
    run_gemm(ep, feeds, beta=0.0)
    assert lt.products == [Product(1, 3, 5, 4, has_bias=False, has_matrix=False)]


@pytest.mark.parametrize("shape", [(0, 4), (3, 0)])
def test_arrays_without_elements_are_left_to_cupy(ep, lt, shape):
    feeds = {
        "a": np.zeros(shape, np.float32),
        "b": np.zeros((shape[1], 5), np.float32),
        "c": values((5,), "float32", 2),
    }
    run_gemm(ep, feeds)
    assert lt.products == []


def test_what_has_no_algorithm_goes_to_cublas(ep, lt):
    lt.refuse(True)
    feeds = matrices("float32", (5,))
    run_gemm(ep, feeds)
    assert lt.products == []
    assert [p[:4] for p in lt.blas.products] == [(1, 3, 5, 4)]


def test_addresses_that_are_not_aligned_go_to_cublas(in_kernel, lt):
    a, b = values(13, "float32", 0), values((4, 5), "float32", 1)
    got = in_kernel(lambda xp, x, y: products.matmul(x[1:].reshape(3, 4), y), a, b)
    np.testing.assert_array_equal(got, a[1:].reshape(3, 4) @ b)
    assert lt.products == []
    assert len(lt.blas.products) == 1


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 4), (4, 5)), ((4,), (4,)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 3, 4), (4, 5)),
        ((2, 6, 3, 4), (2, 6, 4, 5)), ((1, 6, 3, 4), (2, 6, 4, 5)), ((1, 4), (4, 1)),
    ],
)  # fmt: skip
def test_products_are_those_of_numpy(in_kernel, lt, left, right, dtype):
    a, b = values(left, dtype, 0), values(right, dtype, 1)
    got = in_kernel(lambda xp, x, y: products.matmul(x, y), a, b)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, np.matmul(a, b))
    assert len(lt.products) + len(lt.blas.products) == 1


def test_a_factor_is_part_of_the_launch_of_a_fused_matmul(ep, lt):
    feeds = {"a": values((2, 3, 4), "float32", 0), "b": values((2, 4, 5), "float32", 1)}
    node = helper.make_node("FusedMatMul", ["a", "b"], ["y"], domain="com.microsoft", alpha=0.125)
    serialized = model([node], feeds, {"y": np.float32}, domains=("com.microsoft",))
    got = ep.session(serialized, device="cuda:0").run(None, feeds)[0]
    np.testing.assert_allclose(got, 0.125 * feeds["a"] @ feeds["b"])
    assert lt.products == [Product(2, 3, 5, 4, has_bias=False, has_matrix=False)]
    assert other_launches(lt) == []


def test_graphs_capture_a_bias(ep, lt, x):
    w = values((x.shape[1], x.shape[1]), "float32", 1)
    constants = [
        helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(w)),
        helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(w[0])),
    ]
    nodes = [helper.make_node("Gemm", [f"t{i}", "w", "c"], [f"t{i + 1}"]) for i in range(3)]
    serialized = model([*constants, *nodes], {"t0": x}, {"t3": np.float32})
    made = ep.session(serialized, device="cuda:0", enable_cuda_graph=True)
    made.run(None, {"t0": x})
    assert len(lt.products) == 9  # two runs to warm up, and the capture
    for i in range(3):
        expected = on_cpu(serialized).run(None, {"t0": x + i})[0]
        np.testing.assert_allclose(made.run(None, {"t0": x + i})[0], expected, rtol=1e-5)
    assert len(lt.products) == 9  # replays launch what was captured


def test_threads_share_a_product_with_biases_of_their_own(ep, lt):
    feeds = matrices("float32", (5,))
    serialized = gemm(feeds)
    wrong = []

    def work(number):
        session = ep.session(serialized, device="cuda:0")
        for i in range(20):
            given = {**feeds, "c": np.full(5, 100 * number + i, np.float32)}
            got = session.run(None, given)[0]
            if not np.array_equal(got, feeds["a"] @ feeds["b"] + given["c"]):
                wrong.append((number, i))

    run_all(threading.Thread(target=work, args=(n,)) for n in range(4))
    assert wrong == []
    assert len(lt.products) == 80


def test_a_failure_of_cublaslt_is_an_error(ep, lt, fake_cuda):
    feeds = {"a": values((3, 4), "float32", 0), "b": values((4, 5), "float32", 1)}
    session = ep.session(gemm(feeds), device="cuda:0")
    fake_cuda.fail("cublasLtMatmul", 13)
    with pytest.raises(Exception, match="cublasLtMatmul failed with status 13"):
        session.run(None, feeds)
    np.testing.assert_array_equal(session.run(None, feeds)[0], feeds["a"] @ feeds["b"])


def test_nothing_is_called_before_the_libraries_are_open():
    code = (
        "from epprof_nb import _native\n"
        "side = (False, 4, 0)\n"
        "_native.ep_make_product("
        "0, (0, 0, 68, 0), (4, 4, 4, 1), side, side, 1.0, 0.0, False, 1 << 20)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "RuntimeError: cuBLASLt is not open" in done.stderr


@pytest.mark.parametrize("shape", [None, (5,), (3, 5), (3, 1)])
@pytest.mark.parametrize("has_algorithm", [True, False])
def test_products_in_bfloat16_are_made_in_bfloat16(ep, lt, monkeypatch, shape, has_algorithm):
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    monkeypatch.setattr(type(lt.blas.module), "__version__", "14.0.0")
    monkeypatch.setattr(kernel_sets, "_sets", OrderedDict())  # those known have no bfloat16
    lt.refuse(not has_algorithm)
    feeds = matrices("float32", shape or ())
    op_type, names = ("Gemm", "abc") if shape else ("MatMul", "ab")
    before = [
        helper.make_node("Cast", [name], [f"{name}16"], to=TensorProto.BFLOAT16) for name in names
    ]
    node = helper.make_node(op_type, [f"{name}16" for name in names], ["y16"])
    after = helper.make_node("Cast", ["y16"], ["y"], to=TensorProto.FLOAT)
    serialized = model([*before, node, after], feeds, {"y": np.float32})
    got = ep.session(serialized, device="cuda:0").run(None, feeds)[0]
    expected = feeds["a"] @ feeds["b"] + (feeds["c"] if shape else 0)
    np.testing.assert_array_equal(got, expected.astype(ml_dtypes.bfloat16).astype(np.float32))
    assert len(lt.products) == has_algorithm


@pytest.mark.parametrize(("setting", "compute"), [("1", 77), ("0", 68), ("", 68)])
@pytest.mark.parametrize("has_algorithm", [True, False])
def test_products_use_tf32_where_cupy_may(ep, lt, monkeypatch, setting, compute, has_algorithm):
    monkeypatch.setenv("CUPY_TF32", setting)
    cublas._process_allows_tf32.cache_clear()
    lt.refuse(not has_algorithm)
    try:
        run_gemm(ep, matrices("float32", (5,)))
        run_gemm(ep, matrices("float16", (5,)))
    finally:
        cublas._process_allows_tf32.cache_clear()
    computes = [p.compute for p in lt.products] if has_algorithm else lt.blas.computes
    assert computes == [compute, 68]


@pytest.mark.parametrize("setting", ["1", "0"])
@pytest.mark.parametrize("name", ["use_tf32", "ep.cuda.use_tf32"])
@pytest.mark.parametrize("has_algorithm", [True, False])
def test_a_session_decides_on_tf32_for_its_own_products(
    ep, lt, monkeypatch, name, setting, has_algorithm
):
    lt.refuse(not has_algorithm)
    feeds = matrices("float32", (5,))
    node = helper.make_node("Gemm", list(feeds), ["y"], name="node")
    serialized = model([node], feeds, {"y": np.float32})
    provider, options = ep.provider("cuda:0")
    deciding = InferenceSession(serialized, providers=[(provider, {**options, name: setting})])
    other = ep.session(serialized, device="cuda:0")
    for made in (deciding, other, deciding):
        made.run(None, feeds)
    computes = [p.compute for p in lt.products] if has_algorithm else lt.blas.computes
    chosen = 77 if setting == "1" else 68
    assert computes == [chosen, 68, chosen]


def test_use_tf32_is_true_false_or_left_to_the_process(ep, fake_cuda):
    assert ep.provider("cuda:0", use_tf32=True)[1]["use_tf32"] == "1"
    assert ep.provider("cuda:0", use_tf32=False)[1]["use_tf32"] == "0"
    assert "use_tf32" not in ep.provider("cuda:0")[1]
    with pytest.raises(KernelError, match="use_tf32='0' is neither True, False nor None"):
        ep.provider("cuda:0", use_tf32="0")
