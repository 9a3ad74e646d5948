"""Arithmetic, element by element."""

from __future__ import annotations

import numpy as np

from epprof_nb.ep.kernel import Array, Context, builtin
from epprof_nb.ep.kernels.cuda.elements import apply_on_device, combine_on_device
from epprof_nb.ep.kernels.shared.broadcasting import broadcast_shape
from epprof_nb.ep.kernels.shared.checks import choice
from epprof_nb.ep.kernels.shared.special import erf
from epprof_nb.ep.kernels.shared.without_warnings import quiet

_FLOATS = "float16 float32 float64"


_TOTAL = {"absolute", "arcsinh", "arctan", "ceil", "floor", "negative", "rint", "sign", "tanh"}
"""Functions without NumPy warnings; the others may give infinities and NaN as results."""


def _unary(op_type: str, function: str, since: int) -> None:
    def kernel(ctx: Context, x: Array) -> None:
        y = ctx.out(x.shape)
        if ctx.xp is not np and x.dtype.kind == "f":
            apply_on_device(ctx.xp, op_type, x, out=y)
            ctx.repeat_launches()
        else:
            getattr(ctx.xp, function)(x, out=y)

    kernel.__name__ = function
    builtin(op_type, since=since)(kernel if function in _TOTAL else quiet(kernel))


def _binary(op_type: str, function: str, since: int) -> None:
    @quiet
    def kernel(ctx: Context, a: Array, b: Array) -> None:
        out = ctx.out(broadcast_shape(a.shape, b.shape))
        if ctx.xp is not np and combine_on_device(ctx.xp, function, a, b, out):
            ctx.repeat_launches()
        else:
            getattr(ctx.xp, function)(a, b, out=out)

    kernel.__name__ = function
    builtin(op_type, since=since)(kernel)


def _variadic(op_type: str, function: str) -> None:
    @quiet
    def kernel(ctx: Context, *inputs: Array) -> None:
        combine = getattr(ctx.xp, function)
        out = ctx.out(broadcast_shape(*(x.shape for x in inputs)))
        first, *others = inputs
        if not others:
            out[...] = first
        for x in others:
            combine(first, x, out=out)
            first = out
        if op_type == "Mean":
            out /= len(inputs)

    kernel.__name__ = op_type.lower()
    builtin(op_type, since=8)(kernel)


for _op_type, _function, _since in (
    ("Abs", "absolute", 6), ("Acos", "arccos", 7), ("Acosh", "arccosh", 9), ("Asin", "arcsin", 7),
    ("Asinh", "arcsinh", 9), ("Atan", "arctan", 7), ("Atanh", "arctanh", 9), ("Ceil", "ceil", 6),
    ("Cos", "cos", 7), ("Cosh", "cosh", 9), ("Exp", "exp", 6), ("Floor", "floor", 6),
    ("Log", "log", 6), ("Neg", "negative", 6), ("Round", "rint", 11), ("Sign", "sign", 9),
    ("Sin", "sin", 7), ("Sinh", "sinh", 9), ("Sqrt", "sqrt", 6), ("Tan", "tan", 7),
    ("Tanh", "tanh", 6),
):  # fmt: skip
    _unary(_op_type, _function, _since)
for _op_type, _function in (("Add", "add"), ("Mul", "multiply"), ("Sub", "subtract")):
    _binary(_op_type, _function, 7)
for _op_type, _function in (
    ("Max", "maximum"),
    ("Min", "minimum"),
    ("Sum", "add"),
    ("Mean", "add"),
):
    _variadic(_op_type, _function)


@builtin("Reciprocal", since=6)
@quiet
def reciprocal(ctx: Context, x: Array) -> None:
    """One over each element."""
    if ctx.xp is np:
        np.divide(x.dtype.type(1), x, out=ctx.out(x.shape))
    else:
        apply_on_device(ctx.xp, "Reciprocal", x, out=ctx.out(x.shape))
        ctx.repeat_launches()


@builtin("Div", since=7)
@quiet
def divide(ctx: Context, a: Array, b: Array) -> None:
    """Quotient; integers are divided and truncated toward zero."""
    xp = ctx.xp
    out = ctx.out(broadcast_shape(a.shape, b.shape))
    if out.dtype.kind == "f":
        if xp is not np and combine_on_device(xp, "divide", a, b, out):
            ctx.repeat_launches()
        else:
            xp.divide(a, b, out=out)
        return
    xp.floor_divide(a, b, out=out)
    if out.dtype.kind == "i":
        out += ((a < 0) != (b < 0)) & (out * b != a) & (b != 0)


@builtin("Mod", since=10)
@quiet
def mod(ctx: Context, a: Array, b: Array) -> None:
    """Remainder with the sign of the divisor, or of the dividend for ``fmod=1``."""
    function = ctx.xp.fmod if ctx.attrs["fmod"] else ctx.xp.mod
    function(a, b, out=ctx.out(broadcast_shape(a.shape, b.shape)))


@builtin("Pow", since=7)
@quiet
def power(ctx: Context, x: Array, exponent: Array) -> None:
    """Power, computed in the type of the base unless that loses the exponent's fraction."""
    xp = ctx.xp
    out = ctx.out(broadcast_shape(x.shape, exponent.shape))
    if xp is not np and combine_on_device(xp, "power", x, exponent, out):
        ctx.repeat_launches()
    elif x.dtype.kind == "f":
        xp.power(x, exponent.astype(x.dtype), out=out)
    elif exponent.dtype.kind == "f":
        out[...] = xp.power(x.astype(np.float64), exponent)
    else:
        # NumPy refuses negative powers of integers. Only the powers of 1 and -1 are integers.
        positive = xp.maximum(exponent, 0).astype(x.dtype)
        whole = xp.power(x, positive)
        odd = (exponent % 2) == 1
        unit = xp.where(x == 1, 1, xp.where(x == -1, xp.where(odd, -1, 1), 0))
        out[...] = xp.where(exponent < 0, unit, whole)


@builtin("Erf", since=9, types=_FLOATS)
@quiet
def error_function(ctx: Context, x: Array) -> None:
    """Gauss error function."""
    if ctx.xp is np:
        erf(np, x, out=ctx.out(x.shape))
    else:
        apply_on_device(ctx.xp, "Erf", x, out=ctx.out(x.shape))
        ctx.repeat_launches()


@builtin("BitShift", since=11)
def bit_shift(ctx: Context, a: Array, b: Array) -> None:
    """Bits shifted left or right; a negative shift, or one by all bits or more, leaves none."""
    xp = ctx.xp
    out = ctx.out(broadcast_shape(a.shape, b.shape))
    bits = out.dtype.itemsize * 8
    left = choice(ctx.attrs, "direction", ("LEFT", "RIGHT")) == "LEFT"
    shift = xp.left_shift if left else xp.right_shift
    within = (b >= 0) & (b < bits)
    shift(a, xp.where(within, b, b.dtype.type(bits - 1)), out=out)
    if left or out.dtype.kind == "u":  # the sign bit moves in from the left
        out *= within


def _bitwise(op_type: str, function: str) -> None:
    def kernel(ctx: Context, *inputs: Array) -> None:
        out = ctx.out(broadcast_shape(*(x.shape for x in inputs)))
        getattr(ctx.xp, function)(*inputs, out=out)

    kernel.__name__ = function
    builtin(op_type, since=18)(kernel)


for _op_type, _function in (
    ("BitwiseAnd", "bitwise_and"), ("BitwiseNot", "bitwise_not"), ("BitwiseOr", "bitwise_or"),
    ("BitwiseXor", "bitwise_xor"),
):  # fmt: skip
    _bitwise(_op_type, _function)
