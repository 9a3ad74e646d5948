"""Conversions between element types."""

from __future__ import annotations

from epprof_nb.ep.kernel import Array, Context, builtin
from epprof_nb.ep.kernels.quiet import quiet


@builtin("Cast", since=6)
@quiet
def cast(ctx: Context, x: Array) -> None:
    """Another dtype."""
    ctx.out(x.shape)[...] = x


@builtin("CastLike", since=15)
@quiet
def cast_like(ctx: Context, x: Array, like: Array) -> None:  # noqa: ARG001 - its dtype is the output's
    """The dtype of another tensor."""
    ctx.out(x.shape)[...] = x


@builtin("BitCast", since=26)
def bit_cast(ctx: Context, x: Array) -> None:
    """The same bits as another dtype of the same size."""
    ctx.out(x.shape).view(x.dtype)[...] = x
