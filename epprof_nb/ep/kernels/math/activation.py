"""Activation functions."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.ep.kernel import Array, ArrayModule, Attributes, Context, builtin
from epprof_nb.ep.kernels.cuda.elements import apply_on_device, limit_on_device
from epprof_nb.ep.kernels.shared.broadcasting import broadcast_shape
from epprof_nb.ep.kernels.shared.checks import expect_shape
from epprof_nb.ep.kernels.shared.precision import at_least_float32
from epprof_nb.ep.kernels.shared.special import erf
from epprof_nb.ep.kernels.shared.without_warnings import quiet

if TYPE_CHECKING:
    from collections.abc import Callable


def sigmoid(xp: ArrayModule, x: Array) -> Array:
    """Logistic function, by way of tanh, which does not overflow."""
    if xp is not np:
        return apply_on_device(xp, "Sigmoid", x)
    y = xp.tanh(x * x.dtype.type(0.5))
    y *= x.dtype.type(0.5)
    y += x.dtype.type(0.5)
    return y


def gelu(xp: ArrayModule, x: Array) -> Array:
    """Product of `x` and the distribution function of the normal distribution."""
    if xp is not np:
        return apply_on_device(xp, "Gelu", x)
    y = erf(xp, x * x.dtype.type(math.sqrt(0.5)))
    y += x.dtype.type(1)
    y *= x.dtype.type(0.5)  # before the product, which could overflow otherwise
    y *= x
    return y


def gelu_tanh(xp: ArrayModule, x: Array) -> Array:
    """Approximation of `gelu` by tanh."""
    if xp is not np:
        return apply_on_device(xp, "Gelu by tanh", x)
    y = x * x
    y *= x.dtype.type(0.044715)
    y += x.dtype.type(1)
    y *= x
    y *= x.dtype.type(math.sqrt(2 / math.pi))
    y = xp.tanh(y)
    y += x.dtype.type(1)
    y *= x.dtype.type(0.5)
    y *= x
    return y


def softplus(xp: ArrayModule, x: Array) -> Array:
    """Logarithm of one more than the exponential."""
    return xp.logaddexp(x, x.dtype.type(0))


def _elu(xp: ArrayModule, x: Array, alpha: float) -> Array:
    return xp.where(x > 0, x, alpha * xp.expm1(xp.minimum(x, 0)))


def _activation(
    op_type: str, since: int, function: Callable[[Any, Array, Attributes], Array]
) -> None:
    @quiet
    def kernel(ctx: Context, x: Array) -> None:
        if ctx.xp is np:
            ctx.out(x.shape)[...] = function(np, at_least_float32(x), ctx.attrs)
            return
        by_tanh = op_type == "Gelu" and ctx.attrs["approximate"] == "tanh"
        apply_on_device(
            ctx.xp, "Gelu by tanh" if by_tanh else op_type, x, ctx.attrs, ctx.out(x.shape)
        )
        ctx.repeat_launches()

    kernel.__name__ = op_type.lower()
    builtin(op_type, since=since)(kernel)


for _op_type, _since, _function in (
    ("LeakyRelu", 6, lambda xp, x, a: xp.where(x < 0, x * x.dtype.type(a["alpha"]), x)),
    ("Sigmoid", 6, lambda xp, x, _: sigmoid(xp, x)),
    ("Softplus", 1, lambda xp, x, _: softplus(xp, x)),
    ("Softsign", 1, lambda xp, x, _: x / (1 + xp.abs(x))),
    ("Elu", 6, lambda xp, x, a: _elu(xp, x, a["alpha"])),
    ("Celu", 12, lambda xp, x, a: xp.where(
        x > 0, x, a["alpha"] * xp.expm1(xp.minimum(x, 0) / x.dtype.type(a["alpha"])))),
    ("Selu", 6, lambda xp, x, a: a["gamma"] * _elu(xp, x, a["alpha"])),
    ("HardSigmoid", 6, lambda xp, x, a: xp.clip(a["alpha"] * x + a["beta"], 0, 1)),
    ("HardSwish", 14, lambda xp, x, _: x * xp.clip(x / 6 + x.dtype.type(0.5), 0, 1)),
    ("Mish", 18, lambda xp, x, _: x * xp.tanh(softplus(xp, x))),
    ("Swish", 24, lambda xp, x, a: x * sigmoid(xp, x * x.dtype.type(a["alpha"]))),
    ("ThresholdedRelu", 10, lambda xp, x, a: xp.where(x > a["alpha"], x, x.dtype.type(0))),
    ("Gelu", 20, lambda xp, x, a:
        gelu_tanh(xp, x) if a["approximate"] == "tanh" else gelu(xp, x)),
):  # fmt: skip
    _activation(_op_type, _since, _function)


@builtin("SwiGLU", since=28)
@quiet
def swiglu(ctx: Context, gate: Array, x: Array) -> None:
    """Product of a tensor and the Swish of another."""
    expect_shape("B", x, gate.shape)
    a = at_least_float32(gate)
    y = sigmoid(ctx.xp, a * a.dtype.type(ctx.attrs["alpha"]))
    y *= a
    ctx.out(x.shape)[...] = y * at_least_float32(x)


@builtin("Relu", since=6)
def relu(ctx: Context, x: Array) -> None:
    """Maximum of an element and zero."""
    y = ctx.out(x.shape)
    if ctx.xp is not np and x.dtype.kind == "f":
        apply_on_device(ctx.xp, "Relu", x, out=y)
        ctx.repeat_launches()
    else:
        ctx.xp.maximum(x, x.dtype.type(0), out=y)


@builtin("PRelu", since=9)
@quiet
def prelu(ctx: Context, x: Array, slope: Array) -> None:
    """Relu with a slope below zero that is a tensor, which broadcasts to the input."""
    if broadcast_shape(x.shape, slope.shape) != x.shape:
        raise ValueError(f"slope of the shape {slope.shape} does not broadcast to {x.shape}")
    ctx.out(x.shape)[...] = ctx.xp.where(x < 0, x * slope, x)


@builtin("Shrink", since=9)
@quiet
def shrink(ctx: Context, x: Array) -> None:
    """Elements moved toward zero by `bias`; elements between the thresholds become zero."""
    threshold, bias = ctx.attrs["lambd"], ctx.attrs["bias"]
    xp = ctx.xp
    x = x.astype(np.float32) if x.dtype.kind != "f" else x
    above = xp.where(x > threshold, x - bias, 0)
    ctx.out(x.shape)[...] = xp.where(x < -threshold, x + bias, above)


@builtin("Clip", since=11)
def clip(ctx: Context, x: Array, low: Array | None = None, high: Array | None = None) -> None:
    """Limit elements to a range; the limits are finite by default, and NaN means no limit."""
    _limit(ctx, x, low, high, _range(x.dtype))


@builtin("Clip", since=6, until=10)
def _clip_before_11(ctx: Context, x: Array) -> None:
    limits = x.dtype.type(ctx.attrs["min"]), x.dtype.type(ctx.attrs["max"])
    _limit(ctx, x, None, None, limits)


@cache
def _range(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the lowest and the highest finite number of a dtype."""
    limits: Any = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    return dtype.type(limits.min), dtype.type(limits.max)


def _limit(
    ctx: Context, x: Array, low: Array | None, high: Array | None, limits: tuple[Any, Any]
) -> None:
    """Limit elements to a range, given by arrays of one element or else by numbers."""
    y = ctx.out(x.shape)
    is_float = x.dtype.kind == "f"
    if ctx.xp is not np and is_float and x.size:
        limit_on_device(ctx.xp, x, low, high, *limits, y)
        ctx.repeat_launches()
        return
    low = limits[0] if low is None else low.reshape(())
    high = limits[1] if high is None else high.reshape(())
    if ctx.xp is not np:
        _limiting(ctx.xp)(x, low, high, y)
        return
    if is_float:
        low = x.dtype.type(-np.inf) if np.isnan(low) else low
        high = x.dtype.type(np.inf) if np.isnan(high) else high
    np.clip(x, low, high, out=y)


@cache
def _limiting(xp: ArrayModule) -> Any:  # noqa: ANN401
    operation = "T t = x < low ? low : x; y = t > high ? high : t"
    return xp.ElementwiseKernel("T x, T low, T high", "T y", operation, "ep_clip")
