"""Normalizations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.ep.kernel import Array, ArrayModule, Context, builtin
from epprof_nb.ep.kernels.cuda import rows as cuda_rows
from epprof_nb.ep.kernels.shared.averages import mean
from epprof_nb.ep.kernels.shared.axes import nonnegative
from epprof_nb.ep.kernels.shared.checks import expect_shape
from epprof_nb.ep.kernels.shared.optional_outputs import write_optional
from epprof_nb.ep.kernels.shared.precision import at_least_float32

if TYPE_CHECKING:
    from epprof_nb.ep.kernel_limits import Limits


def standardize(
    xp: ArrayModule,
    x: Array,
    axes: tuple[int, ...],
    epsilon: float,
) -> tuple[Array, Array, Array]:
    """Return `x` with mean 0 and variance 1 over some axes, the means and inverse deviations."""
    average = mean(x, axes)
    y = x - average
    # Otherwise the rounding of the mean of large numbers would add variance.
    rest = mean(y, axes)
    y -= rest
    average += rest
    inverse = 1 / xp.sqrt(mean(xp.square(y), axes) + y.dtype.type(epsilon))
    y *= inverse
    return y, average, inverse


def last_axes(x: Array, axis: int) -> tuple[int, ...]:
    """Return the axes from `axis` on."""
    return tuple(range(nonnegative(axis, x.ndim), x.ndim))


@builtin("LayerNormalization", since=1)
def layer_normalization(ctx: Context, x: Array, scale: Array, bias: Array | None = None) -> None:
    """Mean 0 and variance 1 over the last axes, then scaled and shifted."""
    axes = last_axes(x, ctx.attrs["axis"])
    if ctx.xp is not np and _normalize_rows(ctx, x, scale, bias, axes):
        return
    y, mean, inverse = standardize(ctx.xp, at_least_float32(x), axes, ctx.attrs["epsilon"])
    y *= scale
    if bias is not None:
        y += bias
    ctx.out(x.shape, index=0)[...] = y
    write_optional(ctx, 1, mean)
    write_optional(ctx, 2, inverse)


def _normalize_rows(
    ctx: Context, x: Array, scale: Array, bias: Array | None, axes: tuple[int, ...]
) -> bool:
    """Write the outputs of LayerNormalization with one launch; return whether this is possible."""
    whole = math.prod(x.shape[i] for i in axes)
    given = (scale,) if bias is None else (scale, bias)
    if not x.size or any(p.size != whole or p.dtype != x.dtype for p in given):
        return False
    wide = np.float64 if x.dtype == np.float64 else np.float32
    rows = tuple(1 if i in axes else n for i, n in enumerate(x.shape))
    statistics = [ctx.xp.empty(rows, wide) if ctx.num_outputs > i else None for i in (1, 2)]
    cuda_rows.normalize(
        ctx.xp, x, scale, bias, ctx.attrs["epsilon"], ctx.out(x.shape, index=0), *statistics
    )
    for index, value in enumerate(statistics, 1):
        if value is not None:
            write_optional(ctx, index, value)
    if ctx.num_outputs == 1:  # the statistics are copied
        ctx.repeat_launches()
    return True


def root_mean_square(ctx: Context, x: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """Return `x` with mean square 1 over some axes, and the factors."""
    wide = at_least_float32(x)
    squares = mean(ctx.xp.square(wide), axes)
    inverse = 1 / ctx.xp.sqrt(squares + wide.dtype.type(ctx.attrs["epsilon"]))
    return wide * inverse, inverse


def _rms_normalization(ctx: Context, x: Array, scale: Array) -> None:
    y, inverse = root_mean_square(ctx, x, last_axes(x, ctx.attrs["axis"]))
    ctx.out(x.shape, index=0)[...] = y * scale
    write_optional(ctx, 1, inverse)


builtin("RMSNormalization", since=23)(_rms_normalization)
builtin("SimplifiedLayerNormalization", since=1)(_rms_normalization)


@builtin("BatchNormalization", since=9, until=13)
def _batch_normalization_before_14(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context, x: Array, scale: Array, bias: Array, mean: Array, variance: Array
) -> None:
    _expect_statistics(x, scale, bias, mean, variance)
    _normalize_channels(ctx, x, scale, bias, mean, variance)


@builtin("BatchNormalization", since=14)
def batch_normalization(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context, x: Array, scale: Array, bias: Array, mean: Array, variance: Array
) -> None:
    """Normalization of each channel by stored statistics or the batch's own."""
    _expect_statistics(x, scale, bias, mean, variance)
    if ctx.attrs["training_mode"]:
        axes = (0, *range(2, x.ndim))
        wide = at_least_float32(x)
        momentum = ctx.attrs["momentum"]
        batch_mean, batch_variance = wide.mean(axis=axes), wide.var(axis=axes)
        write_optional(ctx, 1, mean * momentum + batch_mean * (1 - momentum))
        write_optional(ctx, 2, variance * momentum + batch_variance * (1 - momentum))
        mean, variance = batch_mean, batch_variance
    _normalize_channels(ctx, x, scale, bias, mean, variance)


def _expect_statistics(x: Array, scale: Array, bias: Array, mean: Array, variance: Array) -> None:
    channels = x.shape[1:2] or (1,)
    for name, value in (
        ("scale", scale), ("B", bias), ("input_mean", mean), ("input_var", variance),
    ):  # fmt: skip
        expect_shape(name, value, channels)


def _normalize_channels(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context, x: Array, scale: Array, bias: Array, mean: Array, variance: Array
) -> None:
    mean, variance = at_least_float32(mean), at_least_float32(variance)
    factor = scale / ctx.xp.sqrt(variance + variance.dtype.type(ctx.attrs["epsilon"]))
    shape = (-1,) + (1,) * (x.ndim - 2)
    y = at_least_float32(x) * factor.reshape(shape)
    y += (bias - mean * factor).reshape(shape)
    ctx.out(x.shape, index=0)[...] = y


@builtin("InstanceNormalization", since=6)
def instance_normalization(ctx: Context, x: Array, scale: Array, bias: Array) -> None:
    """Mean 0 and variance 1 of each channel of each instance, then scaled and shifted."""
    expect_shape("scale", scale, x.shape[1:2])
    expect_shape("B", bias, x.shape[1:2])
    shape = (-1,) + (1,) * (x.ndim - 2)
    wide = at_least_float32(x)
    y, _, _ = standardize(ctx.xp, wide, tuple(range(2, x.ndim)), ctx.attrs["epsilon"])
    ctx.out(x.shape)[...] = y * scale.reshape(shape) + bias.reshape(shape)


def grouped(ctx: Context, x: Array, count: int) -> Array:
    """Return `count` groups of channels with mean 0 and variance 1, in the shape of `x`."""
    if count <= 0 or x.shape[1] % count:
        raise ValueError(f"{x.shape[1]} channels do not make up {count} equal groups")
    groups = at_least_float32(x).reshape(x.shape[0], count, math.prod(x.shape[1:]) // count)
    y, _, _ = standardize(ctx.xp, groups, (2,), ctx.attrs["epsilon"])
    return y.reshape(x.shape)


@builtin("GroupNormalization", since=21)
def group_normalization(ctx: Context, x: Array, scale: Array, bias: Array) -> None:
    """Mean 0 and variance 1 of groups of channels, then each channel scaled and shifted."""
    shape = (-1,) + (1,) * (x.ndim - 2)
    ctx.out(x.shape)[...] = grouped(ctx, x, ctx.attrs["num_groups"]) * scale.reshape(
        shape
    ) + bias.reshape(shape)


@builtin("GroupNormalization", since=18, until=20)
def _group_normalization_before_21(ctx: Context, x: Array, scale: Array, bias: Array) -> None:
    groups = ctx.attrs["num_groups"]
    expect_shape("scale", scale, (groups,))
    expect_shape("bias", bias, (groups,))
    y = grouped(ctx, x, groups)
    shape = (-1,) + (1,) * (x.ndim - 2)
    factor, shift = (ctx.xp.repeat(p, x.shape[1] // groups).reshape(shape) for p in (scale, bias))
    ctx.out(x.shape)[...] = y * factor + shift


_POWERS: Limits = {
    "alpha or beta is not positive": lambda node: min(node.attrs["alpha"], node.attrs["beta"]) <= 0,
}


@builtin("LRN", since=1, limits=_POWERS)
def local_response_normalization(ctx: Context, x: Array) -> None:
    """Elements divided by a power of the squares of neighboring channels."""
    xp, attrs = ctx.xp, ctx.attrs
    if x.ndim != 4:
        raise ValueError(f"X has {x.ndim} dimensions, not 4")
    size, channels = attrs["size"], x.shape[1]
    if size <= 0 or size % 2 == 0:
        raise ValueError(f"size={size} is not a positive odd number")
    wide = at_least_float32(x)
    squares = wide * wide
    total = xp.zeros_like(wide)
    for channel in range(channels):
        first = max(0, channel - (size - 1) // 2)
        last = min(channels, channel + math.ceil((size - 1) / 2) + 1)
        total[:, channel] = squares[:, first:last].sum(axis=1)
    factor = (attrs["bias"] + attrs["alpha"] / size * total) ** attrs["beta"]
    ctx.out(x.shape)[...] = wide / factor


@builtin("LpNormalization", since=1)
def lp_normalization(ctx: Context, x: Array) -> None:
    """Elements divided by their norm along an axis; zeros stay."""
    xp, axis = ctx.xp, ctx.attrs["axis"]
    if ctx.attrs["p"] not in (1, 2):
        raise ValueError(f"p={ctx.attrs['p']} is not 1 or 2")
    wide = at_least_float32(x)
    if ctx.attrs["p"] == 1:
        norm = xp.abs(wide).sum(axis=axis, keepdims=True)
    else:
        norm = xp.sqrt(xp.square(wide).sum(axis=axis, keepdims=True))
    ctx.out(x.shape)[...] = wide / xp.where(norm == 0, wide.dtype.type(1), norm)


@builtin("MeanVarianceNormalization", since=9)
def mean_variance_normalization(ctx: Context, x: Array) -> None:
    """Mean 0 and variance 1 over some axes."""
    axes = tuple(ctx.attrs["axes"])
    wide = at_least_float32(x)
    deviation = wide - wide.mean(axis=axes, keepdims=True)
    variance = ctx.xp.square(deviation).mean(axis=axes, keepdims=True)
    ctx.out(x.shape)[...] = deviation / (ctx.xp.sqrt(variance) + np.float32(1e-9))
