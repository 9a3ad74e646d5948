"""Softmax and its relatives."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.ep.kernel import Array, ArrayModule, Context, builtin
from epprof_nb.ep.kernels.cuda import rows as cuda_rows
from epprof_nb.ep.kernels.math.extremes import place_of_extreme
from epprof_nb.ep.kernels.shared.axes import nonnegative
from epprof_nb.ep.kernels.shared.precision import at_least_float32
from epprof_nb.ep.kernels.shared.without_warnings import quiet

if TYPE_CHECKING:
    from collections.abc import Callable


def softmax(xp: ArrayModule, x: Array, axis: int) -> Array:
    """Return exponentials along an axis, divided by their sum."""
    y = x - x.max(axis=axis, keepdims=True)
    xp.exp(y, out=y)
    y /= y.sum(axis=axis, keepdims=True)
    return y


def log_softmax(xp: ArrayModule, x: Array, axis: int) -> Array:
    """Return the logarithm of `softmax`."""
    y = x - x.max(axis=axis, keepdims=True)
    y -= xp.log(xp.exp(y).sum(axis=axis, keepdims=True))
    return y


def _hardmax(xp: ArrayModule, x: Array, axis: int) -> Array:
    best = xp.expand_dims(place_of_extreme(xp, x, axis), axis)
    places = xp.arange(x.shape[axis]).reshape(
        [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)]
    )
    return (places == best).astype(x.dtype)


def _softmax_like(op_type: str, function: Callable[[Any, Array, int], Array]) -> None:
    def kernel(ctx: Context, x: Array) -> None:
        axis = nonnegative(ctx.attrs["axis"], x.ndim) if x.ndim else 0
        out = ctx.out(x.shape)
        if x.size and ctx.xp is not np and op_type == "Softmax" and x.ndim:
            cuda_rows.softmax(ctx.xp, x, axis, out)
            ctx.repeat_launches()
        elif x.size:
            out[...] = function(ctx.xp, at_least_float32(x), axis)

    def kernel_before_13(ctx: Context, x: Array) -> None:
        # A matrix whose columns are the elements from `axis` on.
        out = ctx.out(x.shape)
        if x.size:
            axis = nonnegative(ctx.attrs["axis"], x.ndim)
            matrix = at_least_float32(x).reshape(math.prod(x.shape[:axis]), -1)
            out[...] = function(ctx.xp, matrix, 1).reshape(x.shape)

    kernel.__name__ = kernel_before_13.__name__ = op_type.lower()
    builtin(op_type, since=13)(quiet(kernel))
    builtin(op_type, since=1, until=12)(quiet(kernel_before_13))


_softmax_like("Softmax", softmax)
_softmax_like("LogSoftmax", log_softmax)
_softmax_like("Hardmax", _hardmax)
