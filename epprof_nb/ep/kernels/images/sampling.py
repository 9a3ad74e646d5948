"""Samples of images at given positions."""

from __future__ import annotations

import itertools

import numpy as np

from epprof_nb.ep.kernel import Array, ArrayModule, Context, builtin
from epprof_nb.ep.kernels.images.interpolation import cubic_kernel
from epprof_nb.ep.kernels.shared.checks import choice, expect_shape
from epprof_nb.ep.kernels.shared.precision import at_least_float32
from epprof_nb.ep.products import products


def _reflected(xp: ArrayModule, index: Array, low: float, high: float) -> Array:
    length = high - low
    if length == 0:
        return xp.zeros_like(index)
    offset = xp.abs(index - low) % (2 * length)
    return low + xp.where(offset > length, 2 * length - offset, offset)


def _taps(xp: ArrayModule, mode: str, position: Array) -> list[tuple[Array, Array]]:
    """Return the indices (as floats) and weights of the elements of a sample."""
    if mode == "nearest":
        return [(xp.rint(position), xp.ones_like(position))]
    floor = xp.floor(position)
    fraction = position - floor
    if mode in ("linear", "bilinear"):
        return [(floor, 1 - fraction), (floor + 1, fraction)]
    a = -0.75
    kernel = cubic_kernel(a)
    return [(floor + i, kernel(fraction - i)) for i in (-1, 0, 1, 2)]


_GRID_MODES = ("nearest", "linear", "bilinear", "cubic", "bicubic")


@builtin("GridSample", since=16)
@builtin("GridSample", domain="com.microsoft", since=1)
def grid_sample(ctx: Context, x: Array, grid: Array) -> None:
    """Samples of an image at the positions of a grid, which are between -1 and 1."""
    xp, attrs = ctx.xp, ctx.attrs
    spatial = x.shape[2:]
    rank = len(spatial)
    mode = choice(attrs, "mode", _GRID_MODES)
    padding = choice(attrs, "padding_mode", ("zeros", "border", "reflection"))
    if grid.ndim != x.ndim or grid.shape[0] != x.shape[0] or grid.shape[-1] != rank:
        raise ValueError(f"grid of shape {grid.shape} does not fit X of shape {x.shape}")
    aligned = bool(attrs["align_corners"])
    wide, where = at_least_float32(x), at_least_float32(grid)
    axes = []
    for axis, n in enumerate(spatial):
        unit = where[..., rank - 1 - axis]
        position = (unit + 1) / 2 * (n - 1) if aligned else ((unit + 1) * n - 1) / 2
        axes.append(
            [
                (*_resolve(xp, index, n, padding, aligned=aligned), weight)
                for index, weight in _taps(xp, mode, position)
            ]
        )
    batch = xp.arange(x.shape[0]).reshape((-1,) + (1,) * rank)
    total = xp.zeros((x.shape[0], *grid.shape[1:-1], x.shape[1]), wide.dtype)
    pixels = xp.moveaxis(wide, 1, -1)
    for taps in itertools.product(*axes):
        weight = xp.ones(grid.shape[:-1], wide.dtype)
        for _, inside, w in taps:
            weight = weight * inside * w
        total += pixels[(batch, *(index for index, _, _ in taps))] * weight[..., None]
    ctx.out((*x.shape[:2], *grid.shape[1:-1]))[...] = xp.moveaxis(total, -1, 1)


def _resolve(
    xp: ArrayModule,
    index: Array,
    size: int,
    padding: str,
    *,
    aligned: bool,
) -> tuple[Array, Array]:
    """Return indices inside of an axis, and whether each is used."""
    if padding == "reflection":
        low, high = (0, size - 1) if aligned else (-0.5, size - 0.5)
        index = _reflected(xp, index, low, high)
    inside = (
        (index >= 0) & (index <= size - 1) if padding == "zeros" else xp.ones(index.shape, bool)
    )
    return xp.clip(xp.nan_to_num(index), 0, size - 1).astype(np.intp), inside


@builtin("AffineGrid", since=20, host_inputs=[1])
def affine_grid(ctx: Context, theta: Array, size: Array) -> None:
    """Positions of an affine transformation of an image, for GridSample."""
    xp = ctx.xp
    spatial = size.tolist()[2:]
    if size.tolist()[0] != theta.shape[0]:
        raise ValueError(f"size is of {size.tolist()[0]} images, and theta of {theta.shape[0]}")
    lines = []
    for n in spatial:
        if ctx.attrs["align_corners"]:
            lines.append(xp.linspace(-1, 1, n) if n > 1 else xp.zeros(n))
        else:
            lines.append((xp.arange(n) * 2 + 1) / n - 1)
    mesh = xp.meshgrid(*lines, indexing="ij")
    points = xp.stack([*reversed(mesh), xp.ones(tuple(spatial))], axis=-1)
    wide = at_least_float32(theta)
    grid = products.matmul(points.reshape(1, -1, points.shape[-1]).astype(wide.dtype),
                     wide.transpose(0, 2, 1))  # fmt: skip
    ctx.out((theta.shape[0], *spatial, len(spatial)))[...] = grid.reshape(
        theta.shape[0], *spatial, len(spatial)
    )


def bilinear(xp: ArrayModule, image: Array, y: Array, x: Array) -> tuple[Array, ...]:
    """Return the four weighted neighbors of each position; zeros beyond the edges.

    Parameters
    ----------
    xp
        Array module.
    image
        Array of shape (channels, height, width).
    y, x
        Positions, of equal shape.
    """
    height, width = image.shape[1:]
    top, left = xp.floor(y), xp.floor(x)
    parts = []
    for dy, dx in itertools.product((0, 1), (0, 1)):
        row, column = top + dy, left + dx
        weight = (1 - xp.abs(y - row)) * (1 - xp.abs(x - column))
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        rows = xp.clip(row, 0, height - 1).astype(np.intp)
        columns = xp.clip(column, 0, width - 1).astype(np.intp)
        parts.append(image[:, rows, columns] * (weight * inside))
    return tuple(parts)


def _roi_align(ctx: Context, x: Array, rois: Array, batch: Array, *, half_pixel: bool) -> None:
    xp, attrs = ctx.xp, ctx.attrs
    height, width = attrs["output_height"], attrs["output_width"]
    expect_shape("rois", rois, (rois.shape[0], 4))
    expect_shape("batch_indices", batch, rois.shape[:1])
    if batch.size and (batch.min() < 0 or batch.max() >= x.shape[0]):
        raise IndexError(f"one of batch_indices is outside of the batch of {x.shape[0]} images")
    largest = choice(attrs, "mode", ("avg", "max")) == "max"
    out = ctx.out((rois.shape[0], x.shape[1], height, width))
    shift = 0.5 if half_pixel else 0.0
    for number, (box, image) in enumerate(zip(rois.tolist(), batch.tolist(), strict=True)):
        left, top, right, bottom = (v * attrs["spatial_scale"] - shift for v in box)
        extent_y, extent_x = bottom - top, right - left
        if not half_pixel:
            extent_y, extent_x = max(extent_y, 1.0), max(extent_x, 1.0)
        ratio = attrs["sampling_ratio"]
        samples_y = ratio or int(np.ceil(extent_y / height))
        samples_x = ratio or int(np.ceil(extent_x / width))
        if min(samples_y, samples_x) <= 0:  # the end of the region is not after its start
            out[number] = 0
            continue
        y = _samples(top, extent_y, height, samples_y)
        x_ = _samples(left, extent_x, width, samples_x)
        found = _align(xp, x[image], y, x_, maximum=largest)
        parts = found.reshape(-1, height, samples_y, width, samples_x)
        out[number] = parts.max(axis=(2, 4)) if largest else parts.mean(axis=(2, 4))


def _samples(start: float, extent: float, bins: int, count: int) -> Array:
    step = extent / bins
    places = np.arange(bins)[:, None] * step + (np.arange(count) + 0.5) * step / count
    return (start + places).reshape(-1)


def _align(xp: ArrayModule, image: Array, y: Array, x: Array, *, maximum: bool) -> Array:
    """Return the value of an image at each position; positions at the edges are moved inside."""
    height, width = image.shape[1:]
    rows, columns = np.meshgrid(y, x, indexing="ij")
    valid = (rows >= -1) & (rows <= height) & (columns >= -1) & (columns <= width)
    rows = xp.asarray(np.clip(rows, 0, height - 1))
    columns = xp.asarray(np.clip(columns, 0, width - 1))
    parts = bilinear(xp, at_least_float32(image), rows, columns)
    if maximum:  # of the weighted neighbors, as the operator defines it
        value = xp.maximum(xp.maximum(parts[0], parts[1]), xp.maximum(parts[2], parts[3]))
    else:
        value = sum(parts)
    return value * xp.asarray(valid)


@builtin("RoiAlign", since=16, host_inputs=[1, 2])
def roi_align(ctx: Context, x: Array, rois: Array, batch: Array) -> None:
    """Regions of images, pooled to one size."""
    known = ("half_pixel", "output_half_pixel")
    half_pixel = choice(ctx.attrs, "coordinate_transformation_mode", known) == "half_pixel"
    _roi_align(ctx, x, rois, batch, half_pixel=half_pixel)


@builtin("RoiAlign", since=10, until=15, host_inputs=[1, 2])
def _roi_align_before_16(ctx: Context, x: Array, rois: Array, batch: Array) -> None:
    _roi_align(ctx, x, rois, batch, half_pixel=False)


@builtin("DeformConv", since=19)
def deform_conv(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    x: Array, weight: Array, offset: Array,
    bias: Array | None = None, mask: Array | None = None,
) -> None:  # fmt: skip
    """Convolution whose windows have an offset per element."""
    xp, attrs = ctx.xp, ctx.attrs
    kernel = weight.shape[2:]
    strides = attrs.get("strides") or (1, 1)
    dilations = attrs.get("dilations") or (1, 1)
    pads = attrs.get("pads") or (0, 0, 0, 0)
    height, width = offset.shape[2:]
    group, shared = attrs["group"], x.shape[1] // attrs["offset_group"]
    wide = at_least_float32(x)
    place = xp.arange(height)[:, None], xp.arange(width)[None, :]
    columns = xp.zeros((x.shape[0], x.shape[1], *kernel, height, width), wide.dtype)
    shifts = offset.reshape(x.shape[0], attrs["offset_group"], *kernel, 2, height, width)
    factors = None if mask is None else mask.reshape((*shifts.shape[:4], height, width))
    for image, part, i, j in np.ndindex(x.shape[0], attrs["offset_group"], *kernel):
        y = place[0] * strides[0] - pads[0] + i * dilations[0] + shifts[image, part, i, j, 0]
        x_ = place[1] * strides[1] - pads[1] + j * dilations[1] + shifts[image, part, i, j, 1]
        channels = slice(part * shared, (part + 1) * shared)
        value = sum(bilinear(xp, wide[image, channels], y, x_))
        columns[image, channels, i, j] = (
            value if factors is None else value * factors[image, part, i, j]
        )
    depth = x.shape[1] // group * kernel[0] * kernel[1]
    left = at_least_float32(weight).reshape(group, weight.shape[0] // group, depth)
    result = products.matmul(left, columns.reshape(x.shape[0], group, depth, height * width))
    result = result.reshape(x.shape[0], weight.shape[0], height, width)
    ctx.out(result.shape)[...] = result if bias is None else result + bias.reshape(-1, 1, 1)
