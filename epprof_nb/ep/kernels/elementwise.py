"""Element by element: arithmetic, comparisons, activations, casts."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from epprof_nb.ep.kernel import Array, Context, builtin

_FLOATS = "float16 float32 float64"


def _unary(op_type: str, function: str, **options: Any) -> None:
    def kernel(ctx: Context, x: Array) -> None:
        getattr(ctx.xp, function)(x, out=ctx.out(x.shape))

    kernel.__name__ = function
    builtin(op_type, **options)(kernel)


def _binary(op_type: str, function: str, **options: Any) -> None:
    def kernel(ctx: Context, a: Array, b: Array) -> None:
        getattr(ctx.xp, function)(a, b, out=ctx.out(np.broadcast_shapes(a.shape, b.shape)))

    kernel.__name__ = function
    builtin(op_type, **options)(kernel)


def _variadic(op_type: str, function: str) -> None:
    def kernel(ctx: Context, *inputs: Array) -> None:
        out = ctx.out(np.broadcast_shapes(*(x.shape for x in inputs)))
        out[...] = functools.reduce(getattr(ctx.xp, function), inputs)

    kernel.__name__ = function
    builtin(op_type, since=8)(kernel)


for _op_type, _function in {
    "Abs": "absolute", "Ceil": "ceil", "Cos": "cos", "Exp": "exp", "Floor": "floor", "Log": "log",
    "Neg": "negative", "Not": "logical_not", "Sin": "sin", "Sqrt": "sqrt", "Tanh": "tanh",
}.items():  # fmt: skip
    _unary(_op_type, _function)
for _op_type, _function in {
    "Add": "add", "And": "logical_and", "Equal": "equal", "Greater": "greater", "Less": "less",
    "Mul": "multiply", "Or": "logical_or", "Sub": "subtract",
}.items():  # fmt: skip
    _binary(_op_type, _function, since=7)
_binary("Div", "divide", since=7, types=_FLOATS)
_variadic("Max", "maximum")
_variadic("Min", "minimum")


@builtin("Relu")
def relu(ctx: Context, x: Array) -> None:
    """Maximum of an element and zero."""
    ctx.xp.maximum(x, 0, out=ctx.out(x.shape))


@builtin("LeakyRelu")
def leaky_relu(ctx: Context, x: Array) -> None:
    """Relu with a slope below zero."""
    slope = x.dtype.type(ctx.attrs["alpha"])
    ctx.out(x.shape)[...] = ctx.xp.where(x < 0, x * slope, x)


@builtin("Sigmoid")
def sigmoid(ctx: Context, x: Array) -> None:
    """Logistic function, by way of tanh, which does not overflow."""
    y = ctx.out(x.shape)
    half = x.dtype.type(0.5)
    ctx.xp.multiply(x, half, out=y)
    ctx.xp.tanh(y, out=y)
    ctx.xp.multiply(y, half, out=y)
    ctx.xp.add(y, half, out=y)


@builtin("Softplus")
def softplus(ctx: Context, x: Array) -> None:
    """Logarithm of 1 + exp(x)."""
    ctx.xp.logaddexp(x, x.dtype.type(0), out=ctx.out(x.shape))


@builtin("Clip", since=11)
def clip(ctx: Context, x: Array, low: Array | None = None, high: Array | None = None) -> None:
    """Limit elements to a range."""
    y = ctx.out(x.shape)
    y[...] = x
    if low is not None:
        ctx.xp.maximum(y, low, out=y)
    if high is not None:
        ctx.xp.minimum(y, high, out=y)


@builtin("Pow", since=12, types=_FLOATS)
def pow_(ctx: Context, x: Array, exponent: Array) -> None:
    """Power with a real base."""
    out = ctx.out(np.broadcast_shapes(x.shape, exponent.shape))
    ctx.xp.power(x, exponent.astype(x.dtype), out=out)


@builtin("Where")
def where(ctx: Context, condition: Array, x: Array, y: Array) -> None:
    """Elements of one of two tensors."""
    out = ctx.out(np.broadcast_shapes(condition.shape, x.shape, y.shape))
    out[...] = ctx.xp.where(condition, x, y)


@builtin("Cast", since=9)
def cast(ctx: Context, x: Array) -> None:
    """Another dtype."""
    with np.errstate(all="ignore"):
        ctx.out(x.shape)[...] = x
