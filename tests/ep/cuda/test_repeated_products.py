"""Products of matrices on CUDA devices that nodes repeat without Python."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from epprof_nb.ep import cuda
from epprof_nb.ep.kernel import REGISTRY
from epprof_nb.ep.products import cublaslt
from tests.ep.cuda.test_cublaslt import lt, values  # noqa: F401 - a fixture
from tests.ep.sessions import CallCounter, model, on_cpu

CASES = {
    "product": ("MatMul", {"a": (3, 4), "b": (4, 5)}, {}),
    "stack": ("MatMul", {"a": (2, 3, 4), "b": (2, 4, 5)}, {}),
    "bias": ("Gemm", {"a": (3, 4), "b": (4, 5), "c": (5,)}, {}),
    "matrix": ("Gemm", {"a": (4, 3), "b": (5, 4), "c": (3, 5)},
               {"transA": 1, "transB": 1, "alpha": 2.0, "beta": 3.0}),
}  # fmt: skip


def one(name):
    op_type, shapes, attributes = CASES[name]
    feeds = {n: values(shape, "float32", i) for i, (n, shape) in enumerate(shapes.items())}
    node = helper.make_node(op_type, list(feeds), ["y"], name="node", **attributes)
    return model([node], feeds, {"y": np.float32}), feeds


@pytest.fixture
def counter():
    with CallCounter(REGISTRY.of_package(["MatMul", "Gemm"])) as made:
        yield made


@pytest.mark.parametrize("name", CASES)
def test_a_product_is_repeated_without_python(ep, lt, counter, name):  # noqa: F811
    serialized, feeds = one(name)
    made, right = ep.session(serialized, device="cuda:0"), on_cpu(serialized)
    for run in range(4):
        given = {n: x + run for n, x in feeds.items()}
        np.testing.assert_array_equal(made.run(None, given)[0], right.run(None, given)[0])
    assert sum(counter.calls.values()) == 1
    assert len(lt.products) == 4


def test_addresses_that_are_not_aligned_are_left_to_python(ep, lt, counter):  # noqa: F811
    serialized, feeds = one("product")
    made = ep.session(serialized, device="cuda:0")
    whole = onnxruntime.OrtValue.ortvalue_from_numpy(np.arange(13, dtype=np.float32), "cuda", 0)
    b = onnxruntime.OrtValue.ortvalue_from_numpy(feeds["b"], "cuda", 0)
    for skipped in (0, 1, 0, 1):
        binding = made.io_binding()
        address = whole.data_ptr() + 4 * skipped
        binding.bind_input("a", "cuda", 0, np.float32, (3, 4), address)
        binding.bind_ortvalue_input("b", b)
        binding.bind_output("y", "cuda", 0)
        made.run_with_iobinding(binding)
        a = np.arange(skipped, skipped + 12, dtype=np.float32).reshape(3, 4)
        (y,) = binding.get_outputs()
        np.testing.assert_array_equal(y.numpy(), a @ feeds["b"])
    assert sum(counter.calls.values()) == 3
    assert len(lt.products) == 2
    assert len(lt.blas.products) == 2


def test_threads_repeat_products_with_workspaces_of_their_own(ep, lt, fake_cuda):  # noqa: F811
    fake_cuda.set_delay(200)
    serialized, feeds = one("bias")
    made, right = ep.session(serialized, device="cuda:0"), on_cpu(serialized)
    made.run(None, feeds)
    inputs = [{n: x * (i % 5) for n, x in feeds.items()} for i in range(48)]
    with ThreadPoolExecutor(16) as pool:
        results = pool.map(lambda given: made.run(None, given)[0], inputs)
        for given, y in zip(inputs, results, strict=True):
            np.testing.assert_array_equal(y, right.run(None, given)[0])


def test_a_product_that_fails_names_its_node(ep, lt, fake_cuda):  # noqa: F811
    serialized, feeds = one("bias")
    made, right = ep.session(serialized, device="cuda:0"), on_cpu(serialized)
    made.run(None, feeds)
    fake_cuda.fail("cublasLtMatmul", 13)
    with pytest.raises(Exception, match=r"node 'node' \(Gemm\) failed: cublasLtMatmul failed"):
        made.run(None, feeds)
    np.testing.assert_array_equal(made.run(None, feeds)[0], right.run(None, feeds)[0])


def test_a_product_of_another_stream_is_not_repeated(ep, lt):  # noqa: F811
    calls = []

    @ep.kernel("MatMul", types="float32")
    def product(ctx, a, b):
        calls.append(1)
        y = ctx.out((a.shape[0], b.shape[1]))
        ctx.xp.synchronize()
        other = ctx.xp.driver.create_stream()
        with cuda.current_stream.__wrapped__(0, other):
            assert cublaslt.multiply(a, b, y)
            ctx.xp.synchronize()
        ctx.xp.driver.destroy_stream(other)
        ctx.repeat_launches()

    serialized, feeds = one("product")
    made, right = ep.session(serialized, device="cuda:0"), on_cpu(serialized)
    for _ in range(3):
        np.testing.assert_array_equal(made.run(None, feeds)[0], right.run(None, feeds)[0])
    assert len(calls) == 3


@pytest.mark.parametrize("refused", [False, True])
def test_a_product_may_be_among_the_launches_of_a_kernel(ep, lt, scale, refused):  # noqa: F811
    """If cuBLASLt has no algorithm for it, another library multiplies."""
    calls = []
    lt.refuse(refused)

    @ep.kernel("MatMul", types="float32")
    def product(ctx, a, b):
        calls.append(1)
        y = ctx.out((a.shape[0], b.shape[1]))
        ep.matmul(a, b, out=y)
        ctx.launch(scale, (1,), (1,), (y, y, y.size, np.float32(2)))
        ctx.repeat_launches()

    serialized, feeds = one("product")
    made, right = ep.session(serialized, device="cuda:0"), on_cpu(serialized)
    for run in range(3):
        given = {n: x + run for n, x in feeds.items()}
        np.testing.assert_array_equal(made.run(None, given)[0], right.run(None, given)[0] * 2)
    assert len(calls) == (3 if refused else 1)
