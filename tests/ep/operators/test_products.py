"""Matrix products on CUDA devices, with stand-ins for the driver, for CuPy and for cuBLAS."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from onnx import helper

import epprof_nb
from epprof_nb.ep.products import cublas, cublaslt, products
from tests.ep.fake_cuda.cublas import Cublas
from tests.ep.sessions import call_in_kernel, model, on_cpu


@pytest.fixture
def blas(fake_cuda, monkeypatch):
    """The stand-in for cuBLAS."""
    made = Cublas(fake_cuda.module)
    monkeypatch.setattr(cublas, "library", lambda: made)
    monkeypatch.setattr(cublaslt, "is_available", lambda: False)
    cublas._is_hopper.cache_clear()
    return made


@pytest.fixture
def in_kernel(blas, ep):
    """Run a function of arrays on a device, inside a kernel; return its result on the host."""
    return partial(call_in_kernel, ep)


SHAPES = [
    ((3, 4), (4, 5)),
    ((4,), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((4,), (2, 4, 5)),
    ((2, 6, 3, 4), (2, 6, 4, 5)),
    ((1, 6, 3, 4), (2, 6, 4, 5)),
    ((2, 1, 3, 4), (2, 6, 4, 5)),
    ((6, 3, 4), (2, 6, 4, 5)),
    ((2, 1, 3, 4), (6, 4, 5)),
    ((1, 4), (4, 1)),
    ((2, 1, 1), (2, 1, 1)),
    ((3, 1), (1, 5)),
]


def values(shape, dtype, seed):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_products_are_those_of_numpy(in_kernel, blas, left, right, dtype):
    a, b = values(left, dtype, 0), values(right, dtype, 1)
    expected = np.matmul(a, b)
    got = in_kernel(lambda xp, x, y: products.matmul(x, y), a, b)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, expected)
    assert len(blas.products) == 1
    assert blas.products[0][0] * blas.products[0][1] * blas.products[0][2] == expected.size


@pytest.mark.parametrize("strides", [1, 2])
def test_a_product_of_float16_may_be_written_in_float32(in_kernel, blas, strides):
    a, b = np.full((2, 4), 150, np.float16), np.full((4, 6), 150, np.float16)

    def product(xp, x, y):
        return products.matmul(x, y[:, ::strides], out=xp.empty((2, 6 // strides), np.float32))

    got = in_kernel(product, a, b)
    assert got.dtype == np.float32
    assert (got == 90_000).all()  # above the largest number of float16
    assert len(blas.products) == 1
    on_host = products.matmul(a, b, out=np.empty((2, 6), np.float32))
    assert (on_host == 90_000).all()


LAYOUTS = {
    "rows": lambda a: a,
    "columns": lambda a: a.transpose(*range(a.ndim - 2), a.ndim - 1, a.ndim - 2),
    "part": lambda a: a[..., 1:, 1:],
    "every other": lambda a: a[..., ::2, ::2],
    "some of a stack": lambda a: a[::2],
    "other axes first": lambda a: a.transpose(1, 0, 2),
    "reversed": lambda a: a[::-1],
}


@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
def test_arrays_of_any_layout_are_read(in_kernel, blas, left, right):
    a, b = values((6, 6, 6), "float32", 0), values((6, 6, 6), "float32", 1)
    x, y = LAYOUTS[left](a), LAYOUTS[right](b)
    if x.shape[0] != y.shape[0] or x.shape[2] != y.shape[1]:
        x, y = x[:3, :3, :3], y[:3, :3, :3]
    expected = np.matmul(x, y)

    def product(xp, p, q):
        p, q = LAYOUTS[left](p), LAYOUTS[right](q)
        if p.shape[0] != q.shape[0] or p.shape[2] != q.shape[1]:
            p, q = p[:3, :3, :3], q[:3, :3, :3]
        return products.matmul(p, q)

    np.testing.assert_array_equal(in_kernel(product, a, b), expected)
    assert len(blas.products) == 1


@pytest.mark.parametrize("left", LAYOUTS)
def test_a_stack_of_any_layout_times_one_matrix(in_kernel, left):
    a, b = values((6, 6, 6), "float32", 0), values((6, 5), "float32", 1)
    expected = np.matmul(LAYOUTS[left](a), b[: LAYOUTS[left](a).shape[2]])

    def product(xp, p, q):
        p = LAYOUTS[left](p)
        return products.matmul(p, q[: p.shape[2]])

    np.testing.assert_array_equal(in_kernel(product, a, b), expected)


def test_windows_that_overlap_are_read(in_kernel):
    a, b = values((2, 8), "float32", 0), values((3, 5), "float32", 1)

    def windows(x):
        return np.lib.stride_tricks.sliding_window_view(x, 3, axis=1)

    def product(xp, p, q):
        return products.matmul(p._view(windows(p.host)), q)

    np.testing.assert_array_equal(in_kernel(product, a, b), windows(a) @ b)


def test_a_stack_times_one_matrix_is_one_product(in_kernel, blas):
    a, b = values((2, 6, 3, 4), "float32", 0), values((4, 5), "float32", 1)
    in_kernel(lambda xp, x, y: products.matmul(x, y), a, b)
    assert blas.products[0][:4] == (1, 36, 5, 4)


def test_results_are_written_into_any_array(in_kernel):
    a, b = values((3, 4), "float32", 0), values((4, 5), "float32", 1)
    for dtype, turned in (("float32", False), ("float32", True), ("float64", False)):

        def product(xp, x, y, dtype=dtype, turned=turned):
            out = xp.empty((5, 3) if turned else (3, 5), dtype)
            out = out.T if turned else out
            assert products.matmul(x, y, out=out) is out
            return out

        np.testing.assert_array_equal(in_kernel(product, a, b), a @ b)


@pytest.mark.parametrize("shape", [(2, 3), (2, 0), (3,)])
@pytest.mark.parametrize(("dtype", "kind"), [("float32", "int32"), ("float16", "int64"),
                                             ("float64", "bool"), ("int64", "uint8")])  # fmt: skip
def test_results_are_not_cast_to_another_kind(in_kernel, shape, dtype, kind):
    a, b = np.ones(shape, dtype), np.ones(shape[::-1], dtype)
    refused = f"{dtype}.*to.*{kind}.*same_kind"
    made = np.full(np.matmul(a, b).shape, 1, kind)
    with pytest.raises(TypeError, match=refused):
        products.matmul(a, b, out=made)

    def product(xp, x, y):
        out = xp.asarray(made)
        with pytest.raises(TypeError, match=refused):
            products.matmul(x, y, out=out)
        return out

    np.testing.assert_array_equal(in_kernel(product, a, b), made)


@pytest.mark.parametrize(("left", "right"), [((3, 4), (3, 4)), ((2, 3, 4), (3, 4, 5)), ((), (3,))])
def test_shapes_that_do_not_fit_are_refused(in_kernel, left, right):
    with pytest.raises(Exception, match=r"matmul|broadcast"):
        in_kernel(lambda xp, x, y: products.matmul(x, y), np.ones(left), np.ones(right))


def test_integers_and_empty_arrays_are_left_to_cupy(in_kernel, blas):
    for a, b in ((np.ones((2, 3), int), np.ones((3, 2), int)), (np.ones((0, 3)), np.ones((3, 2)))):
        got = in_kernel(lambda xp, x, y: products.matmul(x, y), a, b)
        np.testing.assert_array_equal(got, a @ b)
    assert not blas.products


def test_float16_is_summed_in_float32_on_the_host():
    a, b = np.full((1, 4096), 1, np.float16), np.full((4096, 1), 0.25, np.float16)
    out = np.empty((1, 1), np.float16)
    assert epprof_nb.ep.matmul(a, b, out=out) is out
    assert out == 1024
    assert epprof_nb.ep.matmul(a, b).dtype == np.float16


def test_graphs_capture_products_with_a_workspace_of_their_own(ep, blas, x):
    weights = [values((x.shape[1], x.shape[1]), "float32", seed) for seed in range(3)]
    constants = [
        helper.make_node(
            "Constant", [], [f"w{i}"], value=helper.make_tensor("v", 1, w.shape, w.ravel())
        )
        for i, w in enumerate(weights)
    ]
    nodes = [helper.make_node("MatMul", [f"t{i}", f"w{i}"], [f"t{i + 1}"]) for i in range(3)]
    serialized = model([*constants, *nodes], {"t0": x}, {"t3": np.float32})
    made = ep.session(serialized, device="cuda:0", enable_cuda_graph=True)
    made.run(None, {"t0": x})
    workspaces = [workspace for *_, workspace in blas.products]
    assert workspaces[:6] == [None] * 6  # two runs to warm up
    assert len(workspaces) == 9
    assert None not in workspaces[6:]
    for i in range(3):
        expected = on_cpu(serialized).run(None, {"t0": x + i})[0]
        np.testing.assert_allclose(made.run(None, {"t0": x + i})[0], expected, rtol=1e-5)
    assert len(blas.products) == 9  # replays launch what was captured


def test_a_failure_of_cublas_is_an_error(in_kernel, blas, monkeypatch):
    monkeypatch.setattr(blas, "cublasSetStream_v2", lambda *_: 13)
    with pytest.raises(Exception, match="cuBLAS failed with status 13"):
        in_kernel(lambda xp, x, y: products.matmul(x, y), np.ones((2, 2)), np.ones((2, 2)))
