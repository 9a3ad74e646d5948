"""Conversions between element types."""

from __future__ import annotations

from epprof_nb.ep.kernel import Array, Context, builtin
from epprof_nb.ep.kernels.shared.without_warnings import quiet
from epprof_nb.ep.small_floats import cast as small_cast
from epprof_nb.ep.small_floats import is_small


def _cast(ctx: Context, x: Array) -> None:
    y = ctx.out(x.shape)
    if not ctx.attrs.get("saturate", 1) and not (is_small(y.dtype) and y.dtype.itemsize == 1):
        raise ValueError(f"saturate is 0, which is only for floats of 8 bits, not for {y.dtype}")
    if is_small(y.dtype) or is_small(x.dtype):
        y[...] = small_cast(ctx.xp, x, y.dtype, saturate=bool(ctx.attrs.get("saturate", 1)))
    else:
        y[...] = x


@builtin("Cast", since=6, moves=True)
@quiet
def cast(ctx: Context, x: Array) -> None:
    """Another dtype."""
    _cast(ctx, x)


@builtin("CastLike", since=15, moves=True)
@quiet
def cast_like(ctx: Context, x: Array, like: Array) -> None:  # noqa: ARG001 - its dtype is the output's
    """The dtype of another tensor."""
    _cast(ctx, x)


@builtin("BitCast", since=26, moves=True)
def bit_cast(ctx: Context, x: Array) -> None:
    """The same bits as another dtype of the same size."""
    ctx.out(x.shape).view(x.dtype)[...] = x
