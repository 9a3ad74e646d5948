"""Elements read and written by index."""

from __future__ import annotations

import math

import numpy as np

from epprof_nb.ep.kernel import Array, ArrayModule, Context, builtin
from epprof_nb.ep.kernels.axes import nonnegative
from epprof_nb.ep.kernels.checks import choice, expect_shape, single


def checked(indices: Array, size: int, axis: int) -> Array:
    """Return indices with negative ones counted from the end; raise IndexError beyond."""
    if indices.size and (indices.min() < -size or indices.max() >= size):
        raise IndexError(f"an index is outside of axis {axis}, which has {size} elements")
    return indices + (indices < 0) * indices.dtype.type(size)


@builtin("Gather", since=1)
def gather(ctx: Context, x: Array, indices: Array) -> None:
    """Elements of an axis, by index."""
    axis = nonnegative(ctx.attrs["axis"], x.ndim)
    size = x.shape[axis]
    if indices.size and (indices.min() < -size or indices.max() >= size):
        raise IndexError(f"an index is outside of axis {axis}, which has {size} elements")
    out = ctx.out((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    if out.size:
        ctx.xp.take(x, indices, axis=axis, out=out, mode="wrap")


@builtin("GatherElements", since=11)
def gather_elements(ctx: Context, x: Array, indices: Array) -> None:
    """One element per index, along an axis."""
    axis = nonnegative(ctx.attrs["axis"], x.ndim)
    _expect_rank(indices, x.ndim)
    places = _places(ctx.xp, checked(indices, x.shape[axis], axis), axis)
    ctx.out(indices.shape)[...] = x[places]


def _expect_rank(indices: Array, rank: int) -> None:
    if indices.ndim != rank:
        raise ValueError(f"indices has {indices.ndim} dimensions, and data has {rank}")


def _places(xp: ArrayModule, indices: Array, axis: int) -> tuple[Array, ...]:
    """Return one index array per axis: `indices` along `axis`, the element's own elsewhere."""
    places = list(xp.ogrid[tuple(slice(0, n) for n in indices.shape)])
    if indices.ndim == 1:
        places = [xp.arange(indices.shape[0])]
    places[axis] = indices
    return tuple(places)


def _tuples(indices: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Return one index array per axis from tuples of indices along the last axis."""
    if not indices.ndim or indices.shape[-1] > len(shape):
        raise ValueError(f"indices of shape {indices.shape} do not fit data of shape {shape}")
    return tuple(checked(indices[..., i], shape[i], i) for i in range(indices.shape[-1]))


@builtin("GatherND", since=11)
def gather_nd(ctx: Context, x: Array, indices: Array) -> None:
    """Slices that tuples of indices name, after equal batch axes."""
    xp, batch = ctx.xp, ctx.attrs.get("batch_dims", 0)
    lead = math.prod(x.shape[:batch])
    data = x.reshape(lead, *x.shape[batch:])
    which = indices.reshape(lead, -1, indices.shape[-1])
    number = xp.arange(lead).reshape(lead, 1)
    found = data[(number, *_tuples(which, data.shape[1:]))]
    shape = (*indices.shape[:-1], *x.shape[batch + indices.shape[-1] :])
    ctx.out(shape)[...] = found.reshape(shape)


_UPDATES = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}
_REDUCTIONS = ("none", *_UPDATES)


def _reduction(ctx: Context) -> str:
    return choice(ctx.attrs, "reduction", _REDUCTIONS, "none")


def update(
    xp: ArrayModule,
    out: Array,
    places: tuple[Array, ...],
    updates: Array,
    reduction: str,
) -> None:
    """Write or combine elements at indices, which may repeat."""
    if reduction == "none":
        out[places] = updates
    elif out.dtype == bool and reduction in ("max", "min"):
        getattr(xp, "logical_or" if reduction == "max" else "logical_and").at(out, places, updates)
    else:
        getattr(xp, _UPDATES[reduction]).at(out, places, updates)


def _scatter_elements(ctx: Context, x: Array, indices: Array, updates: Array) -> None:
    axis = nonnegative(ctx.attrs["axis"], x.ndim)
    _expect_rank(indices, x.ndim)
    expect_shape("updates", updates, indices.shape)
    places = _places(ctx.xp, checked(indices, x.shape[axis], axis), axis)
    reduction = _reduction(ctx)
    out = ctx.out(x.shape)
    out[...] = x
    update(ctx.xp, out, places, updates, reduction)


_scatter_elements.__name__ = "scatter_elements"
builtin("ScatterElements", since=11)(_scatter_elements)
builtin("Scatter", since=9)(_scatter_elements)


@builtin("ScatterND", since=11)
def scatter_nd(ctx: Context, x: Array, indices: Array, updates: Array) -> None:
    """Slices written or combined at tuples of indices."""
    places = _tuples(indices, x.shape)
    expect_shape("updates", updates, (*indices.shape[:-1], *x.shape[indices.shape[-1] :]))
    reduction = _reduction(ctx)
    out = ctx.out(x.shape)
    out[...] = x
    if not places:  # each update is of the whole tensor
        out, places = out.reshape(1, *out.shape), (ctx.xp.zeros(indices.shape[:-1], np.int64),)
    update(ctx.xp, out, places, updates, reduction)


@builtin("TensorScatter", since=24)
def tensor_scatter(
    ctx: Context, cache: Array, new: Array, write_indices: Array | None = None
) -> None:
    """A cache with new entries written along an axis, from an index per batch element."""
    xp = ctx.xp
    axis = nonnegative(ctx.attrs["axis"], cache.ndim)
    out = ctx.out(cache.shape)
    out[...] = cache
    batch, size, length = cache.shape[0], cache.shape[axis], new.shape[axis]
    start = xp.zeros(batch, np.int64) if write_indices is None else write_indices
    where = start.reshape(-1, 1) + xp.arange(length)
    if ctx.attrs["mode"] == "circular":
        where %= size
    elif where.size and (where.min() < 0 or where.max() >= size):
        raise IndexError(f"the update ends outside of axis {axis}, which has {size} elements")
    moved, source = xp.moveaxis(out, axis, 1), xp.moveaxis(new, axis, 1)
    moved[xp.arange(batch).reshape(-1, 1), where] = source


@builtin("OneHot", since=9, host_inputs=[1])
def one_hot(ctx: Context, indices: Array, depth: Array, values: Array) -> None:
    """One of two values: on where the position along a new axis equals the index."""
    xp = ctx.xp
    size = single("depth", depth)
    if size <= 0:
        raise ValueError(f"depth is {size}, not positive")
    expect_shape("values", values, (2,))
    axis = nonnegative(ctx.attrs["axis"], indices.ndim + 1)
    wanted = xp.expand_dims(indices, axis)
    whole = xp.where(wanted < 0, wanted + size, wanted)
    places = xp.arange(size).reshape([-1 if i == axis else 1 for i in range(indices.ndim + 1)])
    hit = whole == places
    ctx.out(hit.shape)[...] = xp.where(hit, values[1], values[0])


@builtin("Compress", since=9)
def compress(ctx: Context, x: Array, condition: Array) -> None:
    """Elements or slices whose condition holds."""
    axis = ctx.attrs.get("axis")
    data = x.reshape(-1) if axis is None else x
    axis = 0 if axis is None else nonnegative(axis, x.ndim)
    chosen = ctx.xp.flatnonzero(condition[: data.shape[axis]])
    result = ctx.xp.take(data, chosen, axis=axis)
    ctx.out(result.shape)[...] = result


@builtin("ArrayFeatureExtractor", domain="ai.onnx.ml", since=1)
def array_feature_extractor(ctx: Context, x: Array, indices: Array) -> None:
    """Elements of the last axis, by index."""
    chosen = checked(indices.reshape(-1), x.shape[-1], x.ndim - 1)
    result = ctx.xp.take(x if x.ndim > 1 else x.reshape(1, -1), chosen, axis=-1)
    ctx.out(result.shape)[...] = result
