"""Pooling."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.ep.kernel import Array, ArrayModule, Attributes, Context, builtin
from epprof_nb.ep.kernels.cuda import pooling as cuda_pooling
from epprof_nb.ep.kernels.cuda.reductions import reduce_on_device
from epprof_nb.ep.kernels.shared.averages import mean
from epprof_nb.ep.kernels.shared.axes import unraveled
from epprof_nb.ep.kernels.shared.checks import expect_shape
from epprof_nb.ep.kernels.shared.precision import at_least_float32
from epprof_nb.ep.kernels.shared.windows import (
    Geometry,
    geometry,
    is_channels_last,
    padded,
    padding_mode,
    view,
)

if TYPE_CHECKING:
    from collections.abc import Callable


@builtin("MaxPool", since=1)
def max_pool(ctx: Context, x: Array) -> None:
    """Maximum of each window, and its index."""
    xp = ctx.xp
    places = _geometry(ctx, x)
    kernel = places.kernel
    shape = (*x.shape[:2], *places.positions(x.shape[2:]))
    out = ctx.out(shape, index=0)
    if ctx.num_outputs == 1 and _pool_on_device(ctx, "max", x, places, out):
        return
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    found = view(xp, x, places, lowest)
    indices = ctx.out(shape, index=1) if ctx.num_outputs > 1 else None
    if indices is not None:
        _write_indices(ctx, x, places, found, indices)
    if xp is not np:
        out[...] = found.max(axis=tuple(range(-len(kernel), 0)))
        return
    first, *others = itertools.product(*map(range, kernel))
    out[...] = found[(..., *first)]
    # Loop over the places in the windows, because NumPy reduces short, strided axes slowly.
    for place in others:
        np.maximum(out, found[(..., *place)], out=out)


def _pool_on_device(ctx: Context, function: str, x: Array, places: Geometry, out: Array) -> bool:
    """Write a function of each window in one launch; return whether this is possible."""
    if ctx.xp is np or is_channels_last(ctx):
        return False
    if not cuda_pooling.pool(ctx.xp, function, x, places, out):
        return False
    ctx.repeat_launches()
    return True


def _expect_elements(x: Array) -> None:
    if not x.size and len(x):
        raise ValueError(f"X of the shape {x.shape} has no elements")


def _geometry(ctx: Context, x: Array) -> Geometry:
    """Return the windows of a node; each one contains an element that is not padding."""
    _expect_elements(x)
    # As in ONNX Runtime, a stride longer than the window omits elements on both sides.
    found = geometry(ctx.attrs, x.shape[2:], ctx.attrs["kernel_shape"], crop=True)
    given = ctx.attrs.get("pads") if padding_mode(ctx.attrs) == "NOTSET" else None
    if given and any(max(pads) >= k for pads, k in zip(found.pads, found.kernel, strict=True)):
        raise ValueError(f"pads={given} reach the size of the window, {found.kernel}")
    return found


def _write_indices(ctx: Context, x: Array, shape: Geometry, found: Array, indices: Array) -> None:
    """Write the index of each maximum into the flattened input."""
    xp, attrs = ctx.xp, ctx.attrs
    spatial = x.shape[2:]
    rank = len(spatial)
    windows = (*found.shape[:-rank], math.prod(shape.kernel))
    values = found.reshape(windows)
    # Padding may equal the maximum if that is the lowest number of a type.
    is_inside = view(xp, xp.ones((1, 1, *spatial), bool), shape, False)  # noqa: FBT003
    is_largest = values == values.max(axis=-1, keepdims=True)
    if values.dtype.kind == "f":
        is_largest |= xp.isnan(values)
    place = (is_largest & is_inside.reshape(1, 1, *windows[2:])).argmax(axis=-1)
    within = unraveled(xp, place, shape.kernel)
    total = xp.zeros(place.shape, np.int64)
    column_major = attrs.get("storage_order", 0)
    step = 1
    for axis in range(rank) if column_major else reversed(range(rank)):
        start = xp.arange(place.shape[2 + axis]) * shape.strides[axis] - shape.pads[axis][0]
        line = start.reshape([-1 if i == axis + 2 else 1 for i in range(rank + 2)])
        total += (line + within[axis] * shape.dilations[axis]) * step
        step *= spatial[axis]
    plane = xp.arange(math.prod(x.shape[:2])).reshape(*x.shape[:2], *(1,) * rank)
    indices[...] = total + plane * math.prod(spatial)


@builtin("AveragePool", since=1)
def average_pool(ctx: Context, x: Array) -> None:
    """Mean of each window; padding counts if ``count_include_pad`` is set."""
    xp, attrs = ctx.xp, ctx.attrs
    shape = _geometry(ctx, x)
    out = ctx.out((*x.shape[:2], *shape.positions(x.shape[2:])))
    function = "mean with padding" if attrs.get("count_include_pad") else "mean"
    if _pool_on_device(ctx, function, x, shape, out):
        return
    wide = at_least_float32(x)
    total = _sum(xp, view(xp, wide, shape, 0), len(shape.kernel))
    out[...] = total / _counts(xp, wide, shape, attrs)


def _sum(xp: ArrayModule, found: Array, rank: int) -> Array:
    if xp is not np:
        return found.sum(axis=tuple(range(-rank, 0)))
    total = found[(..., *(0,) * rank)].copy()
    for place in itertools.islice(itertools.product(*map(range, found.shape[-rank:])), 1, None):
        total += found[(..., *place)]
    return total


def _counts(xp: ArrayModule, x: Array, shape: Geometry, attrs: Attributes) -> Array:
    """Return the number of elements of each window that count."""
    ones = xp.ones((1, 1, *x.shape[2:]), x.dtype)
    if attrs.get("count_include_pad"):
        ones = padded(xp, ones, shape.pads, 1)
        shape = shape._replace(pads=[(0, 0)] * len(shape.pads))
    return _sum(xp, view(xp, ones, shape, 0), len(shape.kernel))


@builtin("LpPool", since=2)
def lp_pool(ctx: Context, x: Array) -> None:
    """p-norm of each window."""
    p = ctx.attrs["p"]
    shape = _geometry(ctx, x)
    found = view(ctx.xp, ctx.xp.abs(at_least_float32(x)) ** p, shape, 0)
    total = _sum(ctx.xp, found, len(shape.kernel))
    ctx.out(total.shape)[...] = total ** (1 / p)


def _global(
    op_type: str, reduction: str, function: Callable[[Array, tuple[int, ...]], Array]
) -> None:
    def kernel(ctx: Context, x: Array) -> None:
        _expect_elements(x)
        out = ctx.out((*x.shape[:2], *(1 for _ in x.shape[2:])))
        axes = tuple(range(2, x.ndim))
        if ctx.xp is not np and reduce_on_device(ctx.xp, reduction, x, axes, out):
            ctx.repeat_launches()
        else:
            out[...] = function(at_least_float32(x), axes)

    kernel.__name__ = op_type.lower()
    builtin(op_type, since=1)(kernel)


_global("GlobalAveragePool", "ReduceMean", mean)
_global("GlobalMaxPool", "ReduceMax", lambda x, axes: x.max(axis=axes, keepdims=True))


@builtin("GlobalLpPool", since=2)
def global_lp_pool(ctx: Context, x: Array) -> None:
    """p-norm of each channel."""
    p = ctx.attrs["p"]
    powers = ctx.xp.abs(at_least_float32(x)) ** p
    total = powers.sum(axis=tuple(range(2, x.ndim)), keepdims=True)
    ctx.out(total.shape)[...] = total ** (1 / p)


@builtin("MaxUnpool", since=9, host_inputs=[2])
def max_unpool(ctx: Context, x: Array, indices: Array, shape: Array | None = None) -> None:
    """The values at the places of the maxima, zeros elsewhere."""
    attrs = ctx.attrs
    expect_shape("I", indices, x.shape)
    kernel = attrs["kernel_shape"]
    rank = len(kernel)
    strides = attrs.get("strides") or (1,) * rank
    pads = attrs.get("pads") or (0,) * (2 * rank)
    natural = [
        (n - 1) * s - pads[i] - pads[i + rank] + k
        for i, (n, s, k) in enumerate(zip(x.shape[2:], strides, kernel, strict=True))
    ]
    # Indices refer to the shape that the windows give. A larger output keeps their places.
    wanted = shape.tolist() if shape is not None else [*x.shape[:2], *natural]
    out = ctx.out(wanted)
    out[...] = 0
    places = unraveled(ctx.xp, indices.reshape(-1), (*x.shape[:2], *natural))
    out[places] = x.reshape(-1)
