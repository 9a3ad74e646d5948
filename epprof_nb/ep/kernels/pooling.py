"""Pooling."""

from __future__ import annotations

import itertools

import numpy as np

from epprof_nb.ep.kernel import Array, Context, builtin
from epprof_nb.ep.kernels.windows import windows


@builtin("MaxPool", types="float32 float64", since=8)
def max_pool(ctx: Context, x: Array) -> None:
    """Maximum of each window."""
    kernel = ctx.attrs["kernel_shape"]
    if ctx.num_outputs > 1:
        raise NotImplementedError("the output Indices has no kernel; run this node on the CPU")
    view = windows(ctx, x, kernel, -np.inf)
    out = ctx.out(view.shape[: -len(kernel)])
    out[...] = view[(..., *(0,) * len(kernel))]
    # Place by place within the windows: NumPy reduces short, strided axes slowly.
    for place in itertools.product(*map(range, kernel)):
        ctx.xp.maximum(out, view[(..., *place)], out=out)


@builtin("GlobalAveragePool", types="float32 float64", since=1)
def global_average_pool(ctx: Context, x: Array) -> None:
    """Mean of each channel."""
    out = ctx.out((*x.shape[:2], *(1 for _ in x.shape[2:])))
    ctx.xp.mean(x, axis=tuple(range(2, x.ndim)), keepdims=True, out=out)


@builtin("GlobalMaxPool", types="float32 float64", since=1)
def global_max_pool(ctx: Context, x: Array) -> None:
    """Maximum of each channel."""
    out = ctx.out((*x.shape[:2], *(1 for _ in x.shape[2:])))
    ctx.xp.max(x, axis=tuple(range(2, x.ndim)), keepdims=True, out=out)
