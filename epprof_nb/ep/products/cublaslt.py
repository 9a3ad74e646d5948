"""Products by cuBLASLt, which adds a bias or a matrix in the same launch.

An algorithm is chosen once per combination of sizes and layouts. Later calls only pass addresses,
which a stream capture allows.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from epprof_nb import _native
from epprof_nb.core.errors import KernelError
from epprof_nb.ep import cuda
from epprof_nb.ep.products import cublas, gemm

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array

_FILES = {12: "libcublasLt.so.12", 13: "libcublasLt.so.13"}
_ALIGNMENT = 16
"""Alignment of addresses in bytes: `EP_PRODUCT_ALIGNMENT` of ``native/ep/api.h``."""


class _Array(NamedTuple):
    """Properties of an array that a product depends on, without its address."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    kind: str
    """Character of the dtype."""


class _Prepared(NamedTuple):
    """A product that the native core launches."""

    product: object
    workspace_bytes: int
    has_bias: bool


@cache
def is_available() -> bool:
    """Whether the CUDA of CuPy has cuBLASLt."""
    if cublas.library() is None:  # also loads cuBLASLt
        return False
    release = cuda.array_module().cuda.runtime.runtimeGetVersion() // 1000
    try:
        cuda.open_driver()  # not open yet without a session
        _native.ep_open_cublaslt(_FILES[release])
    except (KernelError, KeyError, RuntimeError):
        return False
    return True


def multiply(
    a: Array, b: Array, out: Array, added: Array = None, *, alpha: float = 1.0, beta: float = 1.0
) -> bool:
    """Write ``alpha * a @ b + beta * added`` in one launch, on CuPy's current stream.

    Parameters
    ----------
    a, b
        CuPy arrays of one dtype: float16, bfloat16, float32 or float64. Stacks of matrices
        broadcast.
    out
        Gets the result: an array of that dtype, or of float32 for float16 and bfloat16. It must not
        share memory with the others.
    added
        A matrix of the shape of the result, or one number for each of its columns; none by default.
    alpha, beta
        Factors.

    Returns
    -------
    bool
        False if nothing was launched: cuBLASLt is missing or has no algorithm, or the arrays have
        another dtype or layout, no elements, or shapes that do not fit.

    Raises
    ------
    ValueError
        If stacks of matrices do not broadcast.
    RuntimeError
        If cuBLASLt fails.
    """
    if not is_available():
        return False
    cuda_module = cuda.array_module().cuda
    prepared = _prepare(
        cuda_module.runtime.getDevice(),
        _Array(a.shape, a.strides, a.dtype.char),
        _Array(b.shape, b.strides, b.dtype.char),
        _Array(out.shape, out.strides, out.dtype.char),
        None if added is None else _Array(added.shape, added.strides, added.dtype.char),
        alpha,
        beta,
        a.dtype.char == "f" and cublas.allows_tf32(),
    )
    if prepared is None:
        return False
    product, workspace_bytes, has_bias = prepared
    left, right, result = a.data.ptr, b.data.ptr, out.data.ptr
    third = 0 if added is None else added.data.ptr
    if (left | right | result | third) % _ALIGNMENT:
        return False
    matrix, bias = (0, third) if has_bias else (third, 0)
    # The next call on this stream may reuse it. In a capture, the graph keeps it.
    workspace = cuda_module.alloc(workspace_bytes) if workspace_bytes else None
    status = _native.ep_launch_product(
        # BLAS reads matrices by columns, so it computes the transposed product.
        product, right, left, matrix, bias, result,
        0 if workspace is None else workspace.ptr, cuda_module.get_current_stream().ptr,
    )  # fmt: skip
    if status:
        raise RuntimeError(f"cublasLtMatmul failed with status {status}")
    return True


@lru_cache(maxsize=4096)
def _prepare(  # noqa: PLR0917 - as in BLAS
    device: int,
    a: _Array, b: _Array, out: _Array, added: _Array | None,
    alpha: float, beta: float,
    allow_tf32: bool,  # noqa: FBT001
) -> _Prepared | None:  # fmt: skip
    """Return a product; None if cuBLASLt does not support it."""
    if not _fit(a, b, out):
        return None
    itemsize = cublas.type_of(a.kind).itemsize
    product = gemm.plan(gemm.Layout(a.shape, a.strides), gemm.Layout(b.shape, b.strides), itemsize)
    if any(product.copies) or product.shape != out.shape:
        return None
    has_bias = added is not None and _is_bias(added, out, product) and beta == 1
    if added is not None and not has_bias and added != out:
        return None
    kind = cublas.type_of(out.kind)
    compute = cublas.compute_type(a.kind, out.kind, allow_tf32=allow_tf32)
    made = _native.ep_make_product(
        device,
        (cublas.type_of(a.kind).element, kind.element, compute, kind.scale),
        (product.columns, product.rows, product.depth, product.batch),
        product.b,
        product.a,
        alpha,
        0.0 if added is None or has_bias else beta,
        has_bias,
        cublas.workspace_bytes(device),
    )
    return None if made is None else _Prepared(*made, has_bias)


def _fit(a: _Array, b: _Array, out: _Array) -> bool:
    """Whether cuBLASLt can multiply two arrays into an array, by dtypes and shapes."""
    if a.kind != b.kind or not cublas.has_type(a.kind):
        return False
    if out.kind != a.kind and not (a.kind in "eE" and out.kind == "f"):
        return False
    if not (a.shape and b.shape) or 0 in a.shape or 0 in b.shape:
        return False
    return a.shape[-1] == b.shape[-2:][0] and _is_contiguous(out)


def _is_contiguous(array: _Array) -> bool:
    step = cublas.type_of(array.kind).itemsize
    for size, stride in zip(reversed(array.shape), reversed(array.strides), strict=True):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def _is_bias(added: _Array, out: _Array, product: gemm.Product) -> bool:
    """Whether an array has one number per column of a result that is a single matrix."""
    size = product.columns
    return (
        added.kind == out.kind
        and product.batch == 1
        and added.shape[-1:] == (size,)
        and all(n == 1 for n in added.shape[:-1])
        and len(added.shape) <= len(out.shape)
        and (size == 1 or added.strides[-1] == cublas.type_of(added.kind).itemsize)
    )
