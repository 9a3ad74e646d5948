"""Matrix products."""

from __future__ import annotations

import numpy as np

from epprof_nb.ep import small_floats
from epprof_nb.ep.kernel import Array, Attributes, Context, builtin
from epprof_nb.ep.kernels.cuda.elements import combine_on_device
from epprof_nb.ep.kernels.shared.precision import at_least_float32
from epprof_nb.ep.products import cublaslt, products


@builtin("MatMul", since=1, in_bfloat16=True)
def matmul(ctx: Context, a: Array, b: Array) -> None:
    """Product of matrices, or of stacks of them."""
    out = ctx.out(products.product_shape(a, b))
    if ctx.xp is not np and cublaslt.multiply(a, b, out):
        ctx.repeat_launches()
    else:
        products.matmul(a, b, out=out)


def gemm_matrices(attrs: Attributes, a: Array, b: Array, c: Array | None) -> tuple[Array, Array]:
    """Return the matrices that a node multiplies, transposed if the node requires it.

    Raises
    ------
    ValueError
        If the inputs are not matrices, or do not fit.
    """
    if a.ndim == 1:  # ONNX Runtime treats it as a row
        a = a.reshape(1, -1)
    if a.ndim != 2 or b.ndim != 2:
        raise ValueError(f"A of shape {a.shape} and B of shape {b.shape} are not two matrices")
    a = a.T if attrs["transA"] else a
    b = b.T if attrs["transB"] else b
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"matrices of the shapes {a.shape} and {b.shape} have no product")
    shape = (a.shape[0], b.shape[1])
    if c is not None and (
        c.ndim > 2 or any(n not in (1, m) for n, m in zip(c.shape[::-1], shape[::-1], strict=False))
    ):
        raise ValueError(f"C of shape {c.shape} does not broadcast to the shape {shape}")
    return a, b


@builtin("Gemm", since=7, in_bfloat16=True)
def gemm(ctx: Context, a: Array, b: Array, c: Array | None = None) -> None:
    """``alpha * a @ b + beta * c``, each matrix transposed if the node says so."""
    a, b = gemm_matrices(ctx.attrs, a, b, c)
    alpha, beta = ctx.attrs["alpha"], ctx.attrs["beta"]
    c = c if beta else None  # otherwise 0 times NaN or infinity would be added
    y = ctx.out((a.shape[0], b.shape[1]))
    if ctx.xp is not np and cublaslt.multiply(a, b, y, c, alpha=alpha, beta=beta):
        ctx.repeat_launches()
        return
    if small_floats.is_small(y.dtype):
        a, b, c = map(small_floats.widened, (a, b, c))
    if y.dtype.kind == "f" and y.dtype != np.float16:
        products.matmul(a, b, out=y)
        if alpha != 1:
            y *= y.dtype.type(alpha)
        if c is not None:
            added = c if beta == 1 else c * y.dtype.type(beta)
            if ctx.xp is np or not combine_on_device(ctx.xp, "add", y, added, y):
                y += added
        return
    in_blas = ctx.xp is not np and y.dtype == np.float16  # cuBLAS sums float16 in float32
    if in_blas:
        value = products.matmul(a, b, out=ctx.xp.empty(y.shape, np.float32))
    else:
        value = products.matmul(at_least_float32(a), at_least_float32(b))
    if alpha != 1:
        value = value * alpha
    added = c if c is None or beta == 1 else c * beta
    if in_blas and added is not None:
        ctx.xp.add(value, added, out=y)
    else:
        y[...] = (value if added is None else value + added).astype(y.dtype, copy=False)


@builtin("Inverse", domain="com.microsoft", since=1)
def inverse(ctx: Context, x: Array) -> None:
    """Inverse of each matrix; NaN where there is none."""
    matrices, linalg = at_least_float32(x), ctx.xp.linalg
    if ctx.xp is not np or not matrices.size:
        ctx.out(x.shape)[...] = linalg.inv(matrices)
        return
    # NumPy raises for all matrices if one is singular.
    singular = linalg.slogdet(matrices)[0] == 0
    unit = np.eye(x.shape[-1], dtype=matrices.dtype)
    value = linalg.inv(np.where(singular[..., None, None], unit, matrices))
    value[singular] = np.nan
    ctx.out(x.shape)[...] = value


@builtin("Det", since=11)
def determinant(ctx: Context, x: Array) -> None:
    """Determinant of each matrix."""
    ctx.out(x.shape[:-2])[...] = ctx.xp.linalg.det(at_least_float32(x))
