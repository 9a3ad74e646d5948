"""Convolution."""

from __future__ import annotations

from epprof_nb.ep.kernel import Array, Context, builtin
from epprof_nb.ep.kernels.windows import windows


@builtin("Conv", types="float32 float64", since=1)
def conv(ctx: Context, x: Array, weight: Array, bias: Array | None = None) -> None:
    """Convolution with groups, as a matrix product over the windows."""
    groups = ctx.attrs["group"]
    kernel = weight.shape[2:]
    view = windows(ctx, x, kernel, 0)
    batch, channels, *positions = view.shape[: -len(kernel)]
    rank = len(kernel)
    out = ctx.out((batch, weight.shape[0], *positions))
    grouped = view.reshape((batch, groups, channels // groups, *view.shape[2:]))
    # (group, batch, *positions, channel, *kernel) times (group, channel, *kernel, output)
    order = (1, 0, *range(3, 3 + rank), 2, *range(3 + rank, 3 + 2 * rank))
    depth = weight[0].size
    rows = grouped.transpose(order).reshape(groups, -1, depth)
    columns = weight.reshape(groups, -1, depth).transpose(0, 2, 1)
    product = ctx.xp.matmul(rows, columns)
    result = product.reshape((groups, batch, *positions, weight.shape[0] // groups))
    moved = result.transpose((1, 0, 2 + rank, *range(2, 2 + rank)))
    out[...] = moved.reshape(out.shape)
    if bias is not None:
        out += bias.reshape((-1,) + (1,) * rank)
