"""Convolution."""

from __future__ import annotations

import math

import numpy as np

from epprof_nb import _native
from epprof_nb.ep.kernel import Array, Attributes, Context, builtin
from epprof_nb.ep.kernels.cuda import convolution as cuda_convolution
from epprof_nb.ep.kernels.cuda import window_columns
from epprof_nb.ep.kernels.cuda.elements import combine_on_device
from epprof_nb.ep.kernels.math.quantization import requantize, shifted
from epprof_nb.ep.kernels.shared.checks import expect_shape, per_axis
from epprof_nb.ep.kernels.shared.precision import at_least_float32
from epprof_nb.ep.kernels.shared.windows import geometry, is_channels_last, padding_mode, view
from epprof_nb.ep.products import products


def convolve(ctx: Context, x: Array, weight: Array, bias: Array | None = None) -> Array:
    """Return a convolution with groups, as a matrix product over the windows."""
    expect_shape("B", bias, weight.shape[:1])
    groups = ctx.attrs["group"]
    kernel = weight.shape[2:]
    _expect_kernel(ctx.attrs, weight)
    if groups < 1 or weight.shape[0] % groups or x.shape[1] != weight.shape[1] * groups:
        raise ValueError(
            f"W of shape {weight.shape} does not fit {x.shape[1]} channels in group={groups}"
        )
    windows = view(ctx.xp, x, geometry(ctx.attrs, x.shape[2:], kernel), 0)
    rank = len(kernel)
    batch, channels, *positions = windows.shape[:-rank]
    # Channels and windows are the rows, positions the columns: the innermost axis stays contiguous.
    order = (0, 1, *range(2 + rank, 2 + 2 * rank), *range(2, 2 + rank))
    depth = channels // groups * math.prod(kernel)
    columns = windows.transpose(order).reshape(batch, groups, depth, math.prod(positions))
    rows = weight.reshape(groups, weight.shape[0] // groups, depth)
    result = products.matmul(rows, columns).reshape(batch, weight.shape[0], *positions)
    if bias is not None:
        result += _per_channel(bias, rank)
    return result


def _convolve_on_device(ctx: Context, x: Array, weight: Array, bias: Array | None = None) -> bool:
    """Write a convolution of images by raw kernels and cuBLAS; return whether this is possible."""
    groups, depth = ctx.attrs["group"], math.prod(weight.shape[1:])
    _expect_kernel(ctx.attrs, weight)
    if x.ndim != 4 or weight.ndim != 4 or is_channels_last(ctx):
        return False
    if groups < 1 or weight.shape[0] % groups or x.shape[1] != weight.shape[1] * groups:
        return False
    windows = geometry(ctx.attrs, x.shape[2:], weight.shape[2:])
    positions = windows.positions(x.shape[2:])
    shape = (x.shape[0], weight.shape[0], *positions)
    if cuda_convolution.takes_few_products(x, weight, groups, positions):
        cuda_convolution.convolve(ctx.xp, x, weight, bias, groups, windows, ctx.out(shape))
        ctx.repeat_launches()
        return True
    columns = window_columns.columns(ctx.xp, x, windows, positions)
    if columns is None:
        return False
    y = ctx.out(shape)
    count = math.prod(positions)
    rows = weight.reshape(groups, weight.shape[0] // groups, depth)
    target = y.reshape(x.shape[0], groups, -1, count)
    products.matmul(rows, columns.reshape(x.shape[0], groups, depth, count), out=target)
    if bias is not None:
        added = _per_channel(bias, 2)
        if not combine_on_device(ctx.xp, "add", y, added, y):
            _native.ep_repeat_nothing()
            y += added
    ctx.repeat_launches()
    return True


def _expect_kernel(attrs: Attributes, weight: Array) -> None:
    given = attrs.get("kernel_shape")
    if given and tuple(given) != weight.shape[2:]:
        raise ValueError(f"kernel_shape={tuple(given)}, and W has the shape {weight.shape}")


def _per_channel(bias: Array, rank: int) -> Array:
    return bias.reshape((-1,) + (1,) * rank)


@builtin("Conv", since=1)
def conv(ctx: Context, x: Array, weight: Array, bias: Array | None = None) -> None:
    """Convolution with groups."""
    expect_shape("B", bias, weight.shape[:1])
    if ctx.xp is not np and _convolve_on_device(ctx, x, weight, bias):
        return
    result = convolve(ctx, at_least_float32(x), at_least_float32(weight))
    out = ctx.out(result.shape)
    if bias is None:
        out[...] = result
    else:
        ctx.xp.add(result, _per_channel(bias, x.ndim - 2), out=out)


@builtin("ConvInteger", since=10)
def conv_integer(
    ctx: Context,
    x: Array,
    weight: Array,
    x_zero_point: Array | None = None,
    w_zero_point: Array | None = None,
) -> None:
    """Convolution of integers less their zero points, as int32."""
    left = shifted(x, x_zero_point).astype(np.float64)
    right = shifted(weight, w_zero_point, axis=0).astype(np.float64)
    result = convolve(ctx, left, right)
    ctx.out(result.shape)[...] = result


@builtin("QLinearConv", since=10)
def qlinear_conv(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    x: Array, x_scale: Array, x_zero_point: Array,
    w: Array, w_scale: Array, w_zero_point: Array,
    y_scale: Array, y_zero_point: Array, bias: Array | None = None,
) -> None:  # fmt: skip
    """Convolution of quantized tensors, quantized."""
    rank = x.ndim - 2
    left = shifted(x, x_zero_point).astype(np.float64)
    right = shifted(w, w_zero_point, axis=0).astype(np.float64)
    total = convolve(ctx, left, right, bias)
    factor = x_scale.reshape(()) * w_scale / y_scale.reshape(())
    if factor.size > 1:
        factor = _per_channel(factor, rank)
    y = ctx.out(total.shape)
    y[...] = requantize(ctx.xp, total, factor, y_zero_point, y.dtype)


@builtin("ConvTranspose", since=1)
def conv_transpose(ctx: Context, x: Array, weight: Array, bias: Array | None = None) -> None:
    """Transposed convolution: each element adds a multiple of the weights to a window."""
    xp, attrs = ctx.xp, ctx.attrs
    wide, w = at_least_float32(x), at_least_float32(weight)
    groups, kernel = attrs["group"], weight.shape[2:]
    _expect_kernel(attrs, weight)
    if x.ndim != weight.ndim or x.shape[1] != weight.shape[0] or weight.shape[0] % groups:
        raise ValueError(
            f"W of shape {weight.shape} does not fit X of shape {x.shape} in group={groups}"
        )
    expect_shape("B", bias, (weight.shape[1] * groups,))
    rank = len(kernel)
    strides = per_axis(attrs, "strides", rank)
    dilations = per_axis(attrs, "dilations", rank)
    extra = per_axis(attrs, "output_padding", rank, 0)
    full = [
        (n - 1) * s + (k - 1) * d + 1
        for n, s, k, d in zip(x.shape[2:], strides, kernel, dilations, strict=True)
    ]
    shape, pads = _transposed_shape(attrs, x.shape[2:], strides, full, extra)
    batch, channels = x.shape[:2]
    outputs = weight.shape[1]
    # One product per group: (outputs and kernel places, channels) by (channels, positions).
    depth = channels // groups
    left = w.reshape(groups, depth, outputs * math.prod(kernel)).transpose(0, 2, 1)
    right = wide.reshape(batch, groups, depth, math.prod(x.shape[2:]))
    parts = products.matmul(left, right).reshape(
        batch, groups * outputs, math.prod(kernel), *x.shape[2:]
    )
    reach = [max(f, p + n) for f, (p, _), n in zip(full, pads, shape, strict=True)]
    total = xp.zeros((batch, groups * outputs, *reach), wide.dtype)
    for number, place in enumerate(np.ndindex(*kernel)):
        region = tuple(
            slice(p * d, p * d + (n - 1) * s + 1, s)
            for p, d, n, s in zip(place, dilations, x.shape[2:], strides, strict=True)
        )
        total[(slice(None), slice(None), *region)] += parts[:, :, number]
    kept = tuple(slice(p, p + n) for (p, _), n in zip(pads, shape, strict=True))
    result = total[(slice(None), slice(None), *kept)]
    out = ctx.out(result.shape)
    out[...] = result if bias is None else result + _per_channel(bias, rank)


def _transposed_shape(
    attrs: Attributes,
    spatial: tuple[int, ...],
    strides: tuple[int, ...],
    full: list[int],
    extra: tuple[int, ...],
) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the spatial shape of the output, and the elements cut off before and after."""
    rank = len(spatial)
    mode = padding_mode(attrs)
    wanted = attrs.get("output_shape")
    if wanted or mode.startswith("SAME"):
        shape = (
            list(wanted[-rank:])
            if wanted
            else [
                # If the stride exceeds the window, the windows end before the last stride does.
                min(n * s, f + e)
                for n, s, f, e in zip(spatial, strides, full, extra, strict=True)
            ]
        )
        pads = []
        for f, e, n in zip(full, extra, shape, strict=True):
            total = max(f + e - n, 0)
            half = total // 2
            pads.append((half, total - half) if mode == "SAME_UPPER" else (total - half, half))
        return shape, pads
    given = per_axis(attrs, "pads", 2 * rank, 0) if mode == "NOTSET" else (0,) * (2 * rank)
    pads = list(zip(given[:rank], given[rank:], strict=True))
    return [f + e - b - a for f, e, (b, a) in zip(full, extra, pads, strict=True)], pads


@builtin("Col2Im", since=18, host_inputs=[1, 2])
def col2im(ctx: Context, x: Array, image: Array, block: Array) -> None:
    """Sum of the columns at the windows that they were taken from."""
    xp, attrs = ctx.xp, ctx.attrs
    spatial, kernel = image.tolist(), block.tolist()
    rank = len(spatial)
    strides = attrs.get("strides") or (1,) * rank
    dilations = attrs.get("dilations") or (1,) * rank
    pads = attrs.get("pads") or (0,) * (2 * rank)
    padded = [n + pads[i] + pads[i + rank] for i, n in enumerate(spatial)]
    positions = [
        (n - d * (k - 1) - 1) // s + 1
        for n, k, s, d in zip(padded, kernel, strides, dilations, strict=True)
    ]
    batch, channels = x.shape[0], x.shape[1] // math.prod(kernel)
    parts = x.reshape(batch, channels, math.prod(kernel), *positions)
    total = xp.zeros((batch, channels, *padded), x.dtype)
    for number, place in enumerate(np.ndindex(*kernel)):
        region = tuple(
            slice(p * d, p * d + (n - 1) * s + 1, s)
            for p, d, n, s in zip(place, dilations, positions, strides, strict=True)
        )
        total[(slice(None), slice(None), *region)] += parts[:, :, number]
    kept = tuple(slice(pads[i], pads[i] + n) for i, n in enumerate(spatial))
    ctx.out((batch, channels, *spatial))[...] = total[(slice(None), slice(None), *kept)]
