"""Products by cuBLASLt against NumPy, and the kernels that they launch."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest

pytest.importorskip("cupy", reason="CuPy is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")

import cupy
from onnx import helper

import epprof_nb
from epprof_nb import ep
from epprof_nb.ep.products import cublaslt, products
from tests.ep.sessions import model
from tests.helpers.threads import run_all

PRECISION = {"float16": 2e-3, "float32": 2e-6, "float64": 1e-14}


@pytest.fixture(autouse=True)
def real_libraries(real_driver):
    if not cublaslt.is_available():
        pytest.skip("cuBLASLt is not installed")


def operand(rng, shape, dtype, *, transposed):
    """The same matrix for NumPy in float64, and for CuPy by rows or by columns."""
    values = rng.standard_normal(shape).astype(dtype)
    on_device = cupy.asarray(values.T).T if transposed else cupy.asarray(values)
    return values.astype(np.float64), on_device


@pytest.mark.parametrize("dtype", PRECISION)
@pytest.mark.parametrize(
    "sizes", [(1, 1, 1), (3, 5, 7), (1, 64, 64), (33, 65, 17), (128, 256, 512)]
)
def test_products_are_those_of_numpy(dtype, sizes):
    rng = np.random.default_rng(0)
    m, n, k = sizes
    for left, right, shape, alpha in itertools.product(
        (False, True), (False, True), (None, (n,), (1, n), (m, n)), (1.0, 0.5)
    ):
        a, x = operand(rng, (m, k), dtype, transposed=left)
        b, y = operand(rng, (k, n), dtype, transposed=right)
        added = None if shape is None else rng.standard_normal(shape).astype(dtype)
        out = cupy.full((m, n), np.nan, dtype)
        given = None if added is None else cupy.asarray(added)
        assert cublaslt.multiply(x, y, out, given, alpha=alpha)
        expected = alpha * (a @ b) + (0 if added is None else added.astype(np.float64))
        size = np.abs(a) @ np.abs(b) + 1
        assert (np.abs(out.get() - expected) <= PRECISION[dtype] * size).all()


def test_products_of_bfloat16_are_summed_in_float32():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    ones = cupy.ones((4, 4096), np.float32).astype(ml_dtypes.bfloat16)
    made = products.matmul(ones, ones.T)
    assert made.dtype == ml_dtypes.bfloat16
    assert (made.astype(np.float32).get() == 4096).all()  # in bfloat16, a sum of ones ends at 256


def test_threads_share_a_product_with_biases_of_their_own():
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        with cupy.cuda.Stream(non_blocking=True):
            for _ in range(50):
                a, b, bias = (
                    rng.standard_normal(s).astype("f") for s in ((96, 128), (128, 64), (64,))
                )
                out = cupy.empty((96, 64), np.float32)
                cublaslt.multiply(*map(cupy.asarray, (a, b)), out, cupy.asarray(bias))
                if not np.allclose(out.get(), a @ b + bias, atol=1e-4):
                    wrong.append(seed)

    run_all(threading.Thread(target=work, args=(seed,)) for seed in range(8))
    assert wrong == []


def test_a_gemm_with_a_bias_launches_products_only():
    rng = np.random.default_rng(0)
    feeds = {
        "a": rng.standard_normal((64, 128)).astype("f"),
        "b": rng.standard_normal((128, 256)).astype("f"),
        "c": rng.standard_normal(256).astype("f"),
    }
    node = helper.make_node("Gemm", list(feeds), ["y"], name="gemm")
    session = ep.session(model([node], feeds, {"y": np.float32}), device="cuda:0")
    session.run(None, feeds)
    for _ in range(2):
        with epprof_nb.profile() as prof:
            (got,) = session.run(None, feeds)
        np.testing.assert_allclose(got, feeds["a"] @ feeds["b"] + feeds["c"], atol=1e-4)
        kernels = prof.activities.query("kind == 'kernel'")["name"].astype(str)
        assert len(kernels)
        assert not kernels.str.startswith("ep_").any()
