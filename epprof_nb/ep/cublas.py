"""Calls of cuBLAS that a stream capture allows.

cuBLAS can be captured if it has a workspace for it. CuPy refuses all of its calls there, so these
are made without CuPy, with its handle.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from epprof_nb import _native
from epprof_nb.ep import cuda

if TYPE_CHECKING:
    from epprof_nb.ep.gemm import Product

_FILES = {12: "libcublas.so.12", 13: "libcublas.so.13"}
_HOPPER = 90
_WORKSPACE_BYTES = {True: 32 << 20, False: 4 << 20}
"""On Hopper and later, and before: what cuBLAS takes by itself, so that it chooses the same kernels
in a capture as elsewhere."""
_DEFAULT_ALGORITHM = -1


class _Type(NamedTuple):
    """cuBLAS's numbers of an element type and of the type to compute in; the latter in C."""

    element: int
    compute: int
    scalar: Any


# By the characters of NumPy's dtypes.
_TYPES = {
    "e": _Type(2, 68, ctypes.c_float),
    "f": _Type(0, 68, ctypes.c_float),
    "d": _Type(1, 70, ctypes.c_double),
}


@cache
def library() -> ctypes.CDLL | None:
    """Return the cuBLAS that CuPy has loaded; None if there is none."""
    module = cuda.array_module()
    if module.__name__ != "cupy":
        return None
    try:
        module.cuda.device.get_cublas_handle()  # loads it
        return ctypes.CDLL(_FILES[module.cuda.runtime.runtimeGetVersion() // 1000])
    except (ImportError, KeyError, OSError):
        return None


def has_type(dtype: Any) -> bool:  # noqa: ANN401
    """Whether `multiply` takes arrays of this dtype."""
    return dtype.char in _TYPES


def multiply(of: ctypes.CDLL, product: Product, a: Any, b: Any, out: Any) -> None:  # noqa: ANN401
    """Write a batch of products into an array, on CuPy's current stream.

    Parameters
    ----------
    of
        cuBLAS.
    product
        The sizes, and the layout of `a` and `b`.
    a, b, out
        CuPy arrays of one dtype; `out` is C-contiguous.

    Raises
    ------
    RuntimeError
        If cuBLAS fails.
    """
    handle = ctypes.c_void_p(cuda.array_module().cuda.device.get_cublas_handle())
    workspace = _use_stream(of, handle)
    kind = _TYPES[out.dtype.char]
    left, right = product.a, product.b
    _check(
        of.cublasGemmStridedBatchedEx(
            handle, int(right.transposed), int(left.transposed),
            product.columns, product.rows, product.depth,
            ctypes.byref(kind.scalar(1)),
            ctypes.c_void_p(b.data.ptr), kind.element, right.leading, ctypes.c_longlong(right.step),
            ctypes.c_void_p(a.data.ptr), kind.element, left.leading, ctypes.c_longlong(left.step),
            ctypes.byref(kind.scalar(0)),
            ctypes.c_void_p(out.data.ptr), kind.element, product.columns,
            ctypes.c_longlong(product.rows * product.columns),
            product.batch, kind.compute, _DEFAULT_ALGORITHM,
        )
    )  # fmt: skip
    del workspace  # the next call on this stream may have it


def _use_stream(of: ctypes.CDLL, handle: ctypes.c_void_p) -> Any:  # noqa: ANN401
    """Make cuBLAS launch on the current stream; return the workspace of a capture."""
    module = cuda.array_module()
    stream = module.cuda.get_current_stream().ptr
    _check(of.cublasSetStream_v2(handle, ctypes.c_void_p(stream)))
    if not _native.ep_is_capturing():
        return None
    # The graph's own: cuBLAS's is that of the handle, which goes on to work beside the replays.
    nbytes = _WORKSPACE_BYTES[_is_hopper(module.cuda.runtime.getDevice())]
    workspace = module.cuda.alloc(nbytes)
    address = ctypes.c_void_p(workspace.ptr)
    _check(of.cublasSetWorkspace_v2(handle, address, ctypes.c_size_t(nbytes)))
    return workspace


@cache
def _is_hopper(device: int) -> bool:
    """Whether a device is of compute capability 9.0 or later."""
    return int(cuda.array_module().cuda.Device(device).compute_capability) >= _HOPPER


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"cuBLAS failed with status {status}")
