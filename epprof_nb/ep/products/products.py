"""Matrix products of kernels, on the host and on CUDA devices."""

from __future__ import annotations

from typing import Any

import numpy as np

from epprof_nb import _native
from epprof_nb.ep import cuda, small_floats
from epprof_nb.ep.products import cublas, cublaslt, gemm


def matmul(a: Any, b: Any, out: Any = None) -> Any:  # noqa: ANN401
    """Multiply matrices, or stacks of them, as `numpy.matmul` does.

    float16 and bfloat16 are multiplied and summed in float32, and rounded unless `out` is of
    float32. On a CUDA device a graph can capture products of these types, of float32 and of
    float64, but not the products of ``cupy.matmul``.

    Parameters
    ----------
    a, b
        NumPy arrays, or CuPy arrays. Stacks broadcast.
    out
        An array for the result, which must not share memory with `a` and `b`; a new one by default.

    Returns
    -------
    array
        The product: `out`, if it is given.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    TypeError
        If `out` is of another kind, such as integers for a product of floats.

    Examples
    --------
    >>> import numpy as np
    >>> from epprof_nb import ep
    >>> ep.matmul(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]))
    array([[11.]])
    """
    if out is not None and not a.dtype == b.dtype == out.dtype:
        _check_cast(np.result_type(a.dtype, b.dtype), out.dtype)
    on_host = isinstance(a, np.ndarray) or isinstance(b, np.ndarray)
    library = None if on_host else cublas.library()
    if library is not None and _is_for_blas(a, b):
        return _blas_product(library, a, b, out)
    _native.ep_repeat_nothing()
    module = np if on_host else cuda.array_module()
    if _is_short(a.dtype) or _is_short(b.dtype):
        dtype = np.result_type(a.dtype, b.dtype)
        wide = module.matmul(a.astype(np.float32), b.astype(np.float32))
        made = wide.astype(dtype if out is None else out.dtype, copy=False)
    elif out is None or not out.ndim or not a.shape[-1]:
        made = module.matmul(a, b)
    else:
        return module.matmul(a, b, out=out)
    if out is None:
        return made
    out[...] = made
    return out


def _check_cast(source: np.dtype[Any], target: np.dtype[Any]) -> None:
    # NumPy's functions check this, but assignments to an array cast to any dtype.
    if not np.can_cast(source, target, "same_kind"):
        raise TypeError(
            f"matmul cannot cast its result from {source} to {target}, the dtype of `out`, with "
            f"casting rule 'same_kind'. Pass an array of {source}, or cast the result with astype()"
        )


def _is_short(dtype: np.dtype[Any]) -> bool:
    """Whether elements have too few bits for sums."""
    return dtype == np.float16 or small_floats.is_small(dtype)


def _is_for_blas(a: Any, b: Any) -> bool:  # noqa: ANN401
    if a.dtype != b.dtype or not cublas.has_type(a.dtype.char) or not (a.size and b.size):
        return False
    # NumPy raises the errors for shapes that do not fit.
    return bool(a.ndim and b.ndim and a.shape[-1] == b.shape[-2:][0])


def _blas_product(library: Any, a: Any, b: Any, out: Any) -> Any:  # noqa: ANN401
    if out is not None and cublaslt.multiply(a, b, out):
        return out
    _native.ep_repeat_nothing()
    module = cuda.array_module()
    layouts = gemm.Layout(a.shape, a.strides), gemm.Layout(b.shape, b.strides)
    product = gemm.plan(*layouts, a.itemsize)
    if product.copies[0]:
        a = _contiguous(module, a if a.ndim > 1 else a[None], product.stack)
    if product.copies[1]:
        b = _contiguous(module, b if b.ndim > 1 else b[:, None], product.stack)
    shape = product.shape
    if out is not None and _is_result(out, shape, a.dtype):
        result = out
    else:
        result = module.empty(shape, a.dtype)
    if not cublaslt.multiply(a, b, result):
        cublas.multiply(library, product, a, b, result)
    if out is None or out is result:
        return result
    out[...] = result
    return out


def _is_result(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:  # noqa: ANN401
    """Whether BLAS can write a product into an array, given the dtype of its factors."""
    wide = _is_short(dtype) and out.dtype == np.float32
    return out.shape == shape and (out.dtype == dtype or wide) and bool(out.flags.c_contiguous)


def _contiguous(module: Any, x: Any, stack: tuple[int, ...]) -> Any:  # noqa: ANN401
    return module.ascontiguousarray(module.broadcast_to(x, stack + x.shape[-2:]))


def product_shape(a: Any, b: Any) -> tuple[int, ...]:  # noqa: ANN401
    """Return the shape of a product of matrices, or of stacks of them."""
    return gemm.result_shape(a.shape, b.shape)
