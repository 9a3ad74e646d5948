"""Softmax and normalizations."""

from __future__ import annotations

from epprof_nb.ep.kernel import Array, Context, builtin


@builtin("Softmax")
def softmax(ctx: Context, x: Array) -> None:
    """Exponentials along an axis, divided by their sum."""
    xp, axis = ctx.xp, ctx.attrs["axis"]
    y = ctx.out(x.shape)
    if not x.size:
        return
    xp.subtract(x, x.max(axis=axis, keepdims=True), out=y)
    xp.exp(y, out=y)
    xp.divide(y, y.sum(axis=axis, keepdims=True), out=y)


@builtin("LayerNormalization", types="float32 float64")
def layer_normalization(ctx: Context, x: Array, scale: Array, bias: Array | None = None) -> None:
    """Mean 0 and variance 1 over the last axes, then scaled and shifted."""
    xp = ctx.xp
    axis = ctx.attrs["axis"] % x.ndim
    axes = tuple(range(axis, x.ndim))
    y = ctx.out(x.shape)
    mean = x.mean(axis=axes, keepdims=True)
    xp.subtract(x, mean, out=y)
    inverse = 1 / xp.sqrt(
        xp.square(y).mean(axis=axes, keepdims=True) + y.dtype.type(ctx.attrs["epsilon"])
    )
    y *= inverse
    y *= scale
    if bias is not None:
        y += bias
    for index, value in ((1, mean), (2, inverse)):
        if index < ctx.num_outputs:
            out = ctx.out(mean.shape, index=index)
            if out is not None:
                out[...] = value


@builtin("BatchNormalization", types="float32 float64", since=15)
def batch_normalization(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context, x: Array, scale: Array, bias: Array, mean: Array, variance: Array
) -> None:
    """Normalization by recorded statistics of each channel."""
    if ctx.attrs["training_mode"]:
        raise NotImplementedError("training_mode=1 has no kernel; run this node on the CPU")
    factor = scale / ctx.xp.sqrt(variance + variance.dtype.type(ctx.attrs["epsilon"]))
    shape = (-1,) + (1,) * (x.ndim - 2)
    y = ctx.out(x.shape)
    ctx.xp.multiply(x, factor.reshape(shape), out=y)
    y += (bias - mean * factor).reshape(shape)
