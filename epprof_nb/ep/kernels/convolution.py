"""Convolution."""

from __future__ import annotations

import math

from epprof_nb.ep.kernel import Array, Context, builtin
from epprof_nb.ep.kernels.windows import windows


@builtin("Conv", types="float32 float64", since=1)
def conv(ctx: Context, x: Array, weight: Array, bias: Array | None = None) -> None:
    """Convolution with groups, as a matrix product over the windows."""
    groups = ctx.attrs["group"]
    kernel = weight.shape[2:]
    view = windows(ctx, x, kernel, 0)
    rank = len(kernel)
    batch, channels, *positions = view.shape[:-rank]
    out = ctx.out((batch, weight.shape[0], *positions))
    # Channels and windows are the rows, positions the columns: the innermost axis stays contiguous.
    order = (0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank))
    depth = channels // groups * math.prod(kernel)
    columns = view.transpose(order).reshape(batch, groups, depth, math.prod(positions))
    rows = weight.reshape(groups, weight.shape[0] // groups, depth)
    result = out.reshape(batch, groups, weight.shape[0] // groups, math.prod(positions))
    ctx.xp.matmul(rows, columns, out=result)
    if bias is not None:
        out += bias.reshape((-1,) + (1,) * rank)
