"""Matrix products."""

from __future__ import annotations

import numpy as np

from epprof_nb.ep.kernel import Array, ArrayModule, Attributes, Context, builtin
from epprof_nb.ep.kernels.precision import at_least_float32


def product_into(xp: ArrayModule, a: Array, b: Array, out: Array) -> None:
    """Write the product of matrices, or of stacks of them, into an array.

    float16 is multiplied and summed in float32.
    """
    if out.dtype == np.float16:
        out[...] = xp.matmul(a.astype(np.float32), b.astype(np.float32))
    elif out.ndim and a.shape[-1]:
        xp.matmul(a, b, out=out)
    else:
        out[...] = xp.matmul(a, b)


def product_shape(a: Array, b: Array) -> tuple[int, ...]:
    """Return the shape of a product of matrices, or of stacks of them."""
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    rows = a.shape[-2:-1] if a.ndim > 1 else ()
    columns = b.shape[-1:] if b.ndim > 1 else ()
    return (*lead, *rows, *columns)


@builtin("MatMul", since=1)
def matmul(ctx: Context, a: Array, b: Array) -> None:
    """Product of matrices, or of stacks of them."""
    product_into(ctx.xp, a, b, ctx.out(product_shape(a, b)))


def gemm_matrices(attrs: Attributes, a: Array, b: Array, c: Array | None) -> tuple[Array, Array]:
    """Return the matrices that a node multiplies, each transposed if the node says so.

    Raises
    ------
    ValueError
        If the inputs are no matrices, or do not fit.
    """
    if a.ndim == 1:  # ONNX Runtime takes it for a row
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


@builtin("Gemm", since=7)
def gemm(ctx: Context, a: Array, b: Array, c: Array | None = None) -> None:
    """``alpha * a @ b + beta * c``, each matrix transposed if the node says so."""
    a, b = gemm_matrices(ctx.attrs, a, b, c)
    alpha, beta = ctx.attrs["alpha"], ctx.attrs["beta"]
    c = c if beta else None  # else 0 times NaN or infinity would be added
    y = ctx.out((a.shape[0], b.shape[1]))
    if y.dtype.kind == "f" and y.dtype != np.float16:
        product_into(ctx.xp, a, b, y)
        if alpha != 1:
            y *= y.dtype.type(alpha)
        if c is not None:
            y += c if beta == 1 else c * y.dtype.type(beta)
        return
    value = ctx.xp.matmul(at_least_float32(a), at_least_float32(b))
    if alpha != 1:
        value = value * alpha
    if c is not None:
        value = value + (c if beta == 1 else c * beta)
    y[...] = value


@builtin("Einsum", since=12)
def einsum(ctx: Context, *inputs: Array) -> None:
    """Products summed over the indices that the equation drops."""
    result = ctx.xp.einsum(ctx.attrs["equation"].replace(" ", ""), *map(at_least_float32, inputs))
    ctx.out(result.shape)[...] = result


@builtin("Det", since=11)
def determinant(ctx: Context, x: Array) -> None:
    """Determinant of each matrix."""
    ctx.out(x.shape[:-2])[...] = ctx.xp.linalg.det(at_least_float32(x))
