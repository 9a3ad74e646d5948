"""Resizing by interpolation."""

from __future__ import annotations

import math

import numpy as np

from epprof_nb.ep.kernel import Array, Attributes, Context, builtin
from epprof_nb.ep.kernels.cuda.constants import constant
from epprof_nb.ep.kernels.images import interpolation
from epprof_nb.ep.kernels.shared.axes import distinct
from epprof_nb.ep.kernels.shared.checks import choice


def _sizes_and_scales(
    attrs: Attributes,
    shape: tuple[int, ...],
    axes: list[int],
    scales: Array | None,
    sizes: Array | None,
) -> tuple[list[int], list[float]]:
    """Return size and scale of each axis of the output."""
    resized, factors = list(shape), [1.0] * len(shape)
    if scales is not None and scales.size:
        if sizes is not None and sizes.size:
            raise ValueError("the node has both scales and sizes")
        for axis, scale in zip(axes, scales.tolist(), strict=True):
            factors[axis] = scale
            resized[axis] = math.floor(shape[axis] * scale)
        return resized, factors
    if sizes is None or not sizes.size:
        raise ValueError("the node has neither scales nor sizes")
    wanted = dict(zip(axes, sizes.tolist(), strict=True))
    known = ("stretch", "not_larger", "not_smaller")
    policy = choice(attrs, "keep_aspect_ratio_policy", known, "stretch")
    ratios = [n / shape[axis] for axis, n in wanted.items()]
    for axis, n in wanted.items():
        if policy == "stretch":
            resized[axis], factors[axis] = n, n / shape[axis]
        else:
            factors[axis] = min(ratios) if policy == "not_larger" else max(ratios)
            resized[axis] = math.floor(shape[axis] * factors[axis] + 0.5)
    return resized, factors


def resample(
    ctx: Context, x: Array, shape: list[int], scales: list[float], roi: list[float]
) -> None:
    """Write the output of a node with the attributes of Resize."""
    xp, attrs = ctx.xp, ctx.attrs
    mode = choice(attrs, "mode", ("nearest", "linear", "cubic"))
    transformation = choice(
        attrs, "coordinate_transformation_mode", interpolation.TRANSFORMATIONS, "asymmetric"
    )
    out = ctx.out(shape)
    if not out.size:
        return
    y = x if mode == "nearest" or x.dtype.kind == "f" else x.astype(np.float64)
    y = y.astype(np.float32) if y.dtype == np.float16 else y
    outside: list[Array] = []
    for axis, (size, resized, scale) in enumerate(zip(x.shape, shape, scales, strict=True)):
        cropped = transformation == "tf_crop_and_resize"
        if resized == size and scale == 1 and not cropped:
            continue
        positions = interpolation.source_positions(
            transformation, size, resized, scale, (roi[axis], roi[axis + x.ndim])
        )
        if cropped:
            beyond = (positions < 0) | (positions > size - 1)
            outside.append(beyond.reshape([-1 if i == axis else 1 for i in range(x.ndim)]))
        if mode == "nearest":
            rounding = choice(attrs, "nearest_mode", interpolation.ROUNDERS, "floor")
            index = interpolation.nearest(rounding, positions, size)
            y = xp.take(y, constant(xp, index), axis=axis)
        else:
            y = interpolation.apply(xp, y, _weights(attrs, positions, size, scale), axis)
    for beyond in outside:
        y = xp.where(constant(xp, beyond), y.dtype.type(attrs["extrapolation_value"]), y)
    if out.dtype.kind in "iu" and y.dtype.kind == "f":
        limits = np.iinfo(out.dtype)
        y = xp.clip(y, limits.min, limits.max)
    out[...] = y


def _weights(attrs: Attributes, positions: Array, size: int, scale: float) -> Array:
    kernel, reach = (
        (interpolation.cubic_kernel(attrs["cubic_coeff_a"]), 2)
        if attrs["mode"] == "cubic"
        else (interpolation.linear_kernel, 1)
    )
    stretch = 1 / min(scale, 1.0) if attrs.get("antialias") else 1.0
    return interpolation.weights(
        kernel, reach, positions, size,
        stretch=stretch, exclude_outside=bool(attrs.get("exclude_outside")),
    )  # fmt: skip


@builtin("Resize", since=11, host_inputs=[1, 2, 3])
def resize(
    ctx: Context,
    x: Array,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
) -> None:
    """Interpolation to another size."""
    axes = distinct(ctx.attrs.get("axes") or range(x.ndim), x.ndim)
    shape, factors = _sizes_and_scales(ctx.attrs, x.shape, axes, scales, sizes)
    region = [0.0] * x.ndim + [1.0] * x.ndim
    if roi is not None and roi.size:
        given = roi.tolist()
        for i, axis in enumerate(axes):
            region[axis], region[axis + x.ndim] = given[i], given[i + len(axes)]
    resample(ctx, x, shape, factors, region)


def _upsample(ctx: Context, x: Array, scales: Array) -> None:
    shape = [math.floor(n * s) for n, s in zip(x.shape, scales.tolist(), strict=True)]
    resample(ctx, x, shape, scales.tolist(), [0.0] * x.ndim + [1.0] * x.ndim)


_upsample.__name__ = "upsample"
builtin("Resize", since=10, until=10, host_inputs=[1])(_upsample)
builtin("Upsample", since=9, until=9, host_inputs=[1])(_upsample)


@builtin("Upsample", since=7, until=8)
def _upsample_before_9(ctx: Context, x: Array) -> None:
    _upsample(ctx, x, np.array(ctx.attrs["scales"]))
