"""Calls of cuBLAS that a stream capture allows.

cuBLAS can be captured if it has a workspace. CuPy refuses all calls of cuBLAS in a capture, so this
module calls it directly, with CuPy's handle.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from epprof_nb import _native
from epprof_nb.ep import cuda

if TYPE_CHECKING:
    from epprof_nb.ep.products.gemm import Product

_FILES = {12: "libcublas.so.12", 13: "libcublas.so.13"}
_HOPPER = 90
_WORKSPACE_BYTES = {True: 32 << 20, False: 4 << 20}
"""On Hopper and later, and before. These are cuBLAS's own sizes, so that it chooses the same
kernels in a capture as elsewhere."""
_DEFAULT_ALGORITHM = -1
_TF32 = 77


class Type(NamedTuple):
    """cuBLAS's numbers of an element type and of the types to compute and scale in."""

    itemsize: int
    element: int
    compute: int
    scale: int
    one: Any
    zero: Any


# By character of the dtype, of NumPy or of ml_dtypes (bfloat16).
_TYPES = {
    "e": Type(2, 2, 68, 0, ctypes.byref(ctypes.c_float(1)), ctypes.byref(ctypes.c_float(0))),
    "E": Type(2, 14, 68, 0, ctypes.byref(ctypes.c_float(1)), ctypes.byref(ctypes.c_float(0))),
    "f": Type(4, 0, 68, 0, ctypes.byref(ctypes.c_float(1)), ctypes.byref(ctypes.c_float(0))),
    "d": Type(8, 1, 70, 1, ctypes.byref(ctypes.c_double(1)), ctypes.byref(ctypes.c_double(0))),
}

_POINTER, _INT, _LONG = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong
_PARAMETERS = {
    "cublasSetStream_v2": [_POINTER, _POINTER],
    "cublasSetWorkspace_v2": [_POINTER, _POINTER, ctypes.c_size_t],
    "cublasGemmStridedBatchedEx": [
        _POINTER, _INT, _INT, _INT, _INT, _INT,
        _POINTER, _POINTER, _INT, _INT, _LONG, _POINTER, _INT, _INT, _LONG,
        _POINTER, _POINTER, _INT, _INT, _LONG, _INT, _INT, _INT,
    ],
}  # fmt: skip
"""With declared types, ctypes converts plain numbers, which is faster than creating ctypes
objects."""


@cache
def library() -> ctypes.CDLL | None:
    """Return the cuBLAS that CuPy has loaded; None if there is none."""
    module = cuda.array_module()
    if module.__name__ != "cupy":
        return None
    try:
        module.cuda.device.get_cublas_handle()  # loads it
        found = ctypes.CDLL(_FILES[module.cuda.runtime.runtimeGetVersion() // 1000])
    except (ImportError, KeyError, OSError):
        return None
    for name, types in _PARAMETERS.items():
        getattr(found, name).argtypes = types
    return found


def has_type(kind: str) -> bool:
    """Whether `multiply` takes arrays of the dtype with this character."""
    return kind in _TYPES


def type_of(kind: str) -> Type:
    """Return the numbers of the dtype with this character; it must have them."""
    return _TYPES[kind]


def multiply(of: ctypes.CDLL, product: Product, a: Any, b: Any, out: Any) -> None:  # noqa: ANN401
    """Write a batch of products into an array, on CuPy's current stream.

    Parameters
    ----------
    of
        cuBLAS.
    product
        The sizes, and the layout of `a` and `b`.
    a, b, out
        CuPy arrays of one dtype; `out` is C-contiguous, and may be of float32 for float16 and
        bfloat16.

    Raises
    ------
    RuntimeError
        If cuBLAS fails.
    """
    module = cuda.array_module()
    handle = module.cuda.device.get_cublas_handle()
    workspace = _use_stream(of, module, handle)
    kind, given = type_of(out.dtype.char), type_of(a.dtype.char).element
    compute = compute_type(a.dtype.char, out.dtype.char, allow_tf32=allows_tf32())
    left, right = product.a, product.b
    _check(
        of.cublasGemmStridedBatchedEx(
            handle, right.transposed, left.transposed,
            product.columns, product.rows, product.depth,
            kind.one,
            b.data.ptr, given, right.leading, right.step,
            a.data.ptr, given, left.leading, left.step,
            kind.zero,
            out.data.ptr, kind.element, product.columns, product.rows * product.columns,
            product.batch, compute, _DEFAULT_ALGORITHM,
        )
    )  # fmt: skip
    del workspace  # the next call on this stream may reuse it


def _use_stream(of: ctypes.CDLL, module: Any, handle: int) -> Any:  # noqa: ANN401
    """Make cuBLAS launch on the current stream; return the workspace of a capture."""
    _check(of.cublasSetStream_v2(handle, module.cuda.get_current_stream().ptr))
    if not _native.ep_is_capturing():
        return None
    # Use the graph's memory, because the workspace of the handle stays in use during replays.
    nbytes = workspace_bytes(module.cuda.runtime.getDevice())
    workspace = module.cuda.alloc(nbytes)
    _check(of.cublasSetWorkspace_v2(handle, workspace.ptr, nbytes))
    return workspace


def compute_type(given: str, result: str, *, allow_tf32: bool) -> int:
    """Return cuBLAS's number of the type in which products are computed.

    Parameters
    ----------
    given, result
        Characters of the dtypes of the elements and of the result.
    allow_tf32
        Whether elements of float32 may be rounded to TF32.
    """
    if given == result == "f" and allow_tf32:
        return _TF32
    return type_of(result).compute


def allows_tf32() -> bool:
    """Whether products of float32 on this thread may round their elements to TF32.

    The session of the running kernel decides, or the process if the session has no such option.
    """
    chosen = getattr(_native.ep_current_node(), "use_tf32", None)
    return _process_allows_tf32() if chosen is None else chosen


@cache
def _process_allows_tf32() -> bool:
    """Whether CuPy's products of float32 round their elements to TF32."""
    wanted = os.environ.get("CUPY_TF32", "")
    return wanted.isdigit() and int(wanted) > 0


def workspace_bytes(device: int) -> int:
    """Return the default size of cuBLAS's workspace on a device."""
    return _WORKSPACE_BYTES[_is_hopper(device)]


@cache
def _is_hopper(device: int) -> bool:
    """Whether a device has compute capability 9.0 or later."""
    return int(cuda.array_module().cuda.Device(device).compute_capability) >= _HOPPER


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"cuBLAS failed with status {status}")
