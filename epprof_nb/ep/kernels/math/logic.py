"""Comparisons, logic and selections, element by element."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from epprof_nb.ep.kernel import Array, ArrayModule, Context, builtin
from epprof_nb.ep.kernels.shared.broadcasting import broadcast_shape


def _binary(op_type: str, function: str, since: int = 7) -> None:
    def kernel(ctx: Context, a: Array, b: Array) -> None:
        getattr(ctx.xp, function)(a, b, out=ctx.out(broadcast_shape(a.shape, b.shape)))

    kernel.__name__ = function
    builtin(op_type, since=since)(kernel)


for _op_type, _function in (
    ("And", "logical_and"), ("Equal", "equal"), ("Greater", "greater"), ("Less", "less"),
    ("Or", "logical_or"), ("Xor", "logical_xor"),
):  # fmt: skip
    _binary(_op_type, _function)
_binary("GreaterOrEqual", "greater_equal", since=12)
_binary("LessOrEqual", "less_equal", since=12)


@builtin("Not", since=1)
def logical_not(ctx: Context, x: Array) -> None:
    """Negation."""
    ctx.xp.logical_not(x, out=ctx.out(x.shape))


@builtin("IsNaN", since=9)
def is_nan(ctx: Context, x: Array) -> None:
    """Whether an element is NaN."""
    ctx.xp.isnan(x, out=ctx.out(x.shape))


@builtin("IsInf", since=10)
def is_inf(ctx: Context, x: Array) -> None:
    """Whether an element is an infinity of a detected sign."""
    xp = ctx.xp
    out = ctx.out(x.shape)
    out[...] = False
    if ctx.attrs["detect_positive"]:
        out |= x == xp.inf
    if ctx.attrs["detect_negative"]:
        out |= x == -xp.inf


@builtin("Where", since=9)
def where(ctx: Context, condition: Array, x: Array, y: Array) -> None:
    """Elements of one of two tensors."""
    xp = ctx.xp
    out = ctx.out(broadcast_shape(condition.shape, x.shape, y.shape))
    if xp is np:
        out[...] = np.where(condition, x, y)
    else:  # whose where has no `out`
        _choice(xp)(condition, x, y, out)


@cache
def _choice(xp: ArrayModule) -> Any:  # noqa: ANN401
    return xp.ElementwiseKernel(
        "bool condition, T x, T y", "T out", "out = condition ? x : y", "choice"
    )
