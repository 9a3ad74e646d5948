"""Files and lines of kernels that are written in Python, as their libraries launch them."""

from __future__ import annotations

import numpy as np
import pytest

import epprof_nb

pytest.importorskip("cupy", reason="CuPy is not installed")


def places(prof):
    print(prof.by_kernel()[["name", "short_name", "count", "source"]].to_string())
    print(prof.info["notes"])
    return prof.by_kernel().set_index("short_name")["source"].dropna().to_dict()


def place(function):
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"


def test_kernels_of_triton():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("triton", reason="Triton is not installed")
    from tests.gpu.triton_kernel import add_one

    x = torch.zeros(1024, device="cuda")
    add_one[(4,)](x, 1024, BLOCK=256)
    torch.cuda.synchronize()
    with epprof_nb.profile() as prof:
        for _ in range(3):
            add_one[(4,)](x, 1024, BLOCK=256)
        torch.ones(8, device="cuda")
        torch.cuda.synchronize()
    assert places(prof) == {"add_one": place(add_one.fn)}


def test_kernels_of_numba():
    cuda = pytest.importorskip("numba.cuda", reason="Numba is not installed")
    from tests.gpu.numba_kernel import add_one, array_for_add_one

    a = array_for_add_one()
    with epprof_nb.profile() as prof:
        add_one[1, 256](a)
        cuda.synchronize()
    assert list(places(prof).values()) == [place(add_one.py_func)]
    assert a.copy_to_host()[0] == 2


def test_kernels_of_cupy():
    import cupy as cp
    from cupyx import jit

    @jit.rawkernel()
    def my_jit(x, n):
        i = jit.blockIdx.x * jit.blockDim.x + jit.threadIdx.x
        if i < n:
            x[i] = x[i] + 1

    raw = cp.RawKernel(
        r'extern "C" __global__ void my_raw(float* x) { x[threadIdx.x] += 1; }', "my_raw"
    )
    elementwise = cp.ElementwiseKernel("float32 x", "float32 z", "z = x * 2", "my_elementwise")
    reduce = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = a", "0", "my_reduction")
    x = cp.ones(256, cp.float32)

    def work():
        raw((1,), (256,), (x,))
        elementwise(x)
        reduce(x)
        my_jit[1, 256](x, np.int32(256))
        cp.cuda.Device().synchronize()

    work()
    with epprof_nb.profile() as prof:
        work()
    assert places(prof) == {"my_jit": place(my_jit._func)}
    assert {"my_raw", "my_jit"} <= set(prof.by_kernel()["short_name"])
    assert x[0] == 5
