"""Matrix products."""

from __future__ import annotations

import numpy as np

from epprof_nb.ep.kernel import Array, Context, builtin


@builtin("MatMul", types="float16 float32 float64", since=1)
def matmul(ctx: Context, a: Array, b: Array) -> None:
    """Product of matrices, or of stacks of them."""
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    rows = a.shape[-2:-1] if a.ndim > 1 else ()
    columns = b.shape[-1:] if b.ndim > 1 else ()
    out = ctx.out((*lead, *rows, *columns))
    if out.ndim and a.shape[-1]:
        ctx.xp.matmul(a, b, out=out)
    else:
        out[...] = ctx.xp.matmul(a, b)


@builtin("Gemm", types="float16 float32 float64", since=11)
def gemm(ctx: Context, a: Array, b: Array, c: Array | None = None) -> None:
    """``alpha * a @ b + beta * c``, each matrix transposed if the node says so."""
    a = a.T if ctx.attrs["transA"] else a
    b = b.T if ctx.attrs["transB"] else b
    y = ctx.out((a.shape[0], b.shape[1]))
    ctx.xp.matmul(a, b, out=y)
    if ctx.attrs["alpha"] != 1:
        y *= y.dtype.type(ctx.attrs["alpha"])
    if c is not None:
        y += c if ctx.attrs["beta"] == 1 else c * y.dtype.type(ctx.attrs["beta"])
