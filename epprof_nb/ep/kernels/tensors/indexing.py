"""Elements read and written by index."""

from __future__ import annotations

import math

import numpy as np

from epprof_nb.ep.kernel import Array, ArrayModule, Context, builtin
from epprof_nb.ep.kernels.cuda import indexing as cuda_indexing
from epprof_nb.ep.kernels.shared.axes import nonnegative
from epprof_nb.ep.kernels.shared.checks import choice, expect_shape, single
from epprof_nb.ep.kernels.shared.without_warnings import quiet


def checked(indices: Array, size: int, axis: int) -> Array:
    """Return nonnegative indices; raise IndexError if an index is out of range."""
    _expect_inside(indices, size, axis)
    return indices + (indices < 0) * indices.dtype.type(size)


def _expect_inside(indices: Array, size: int, axis: int) -> None:
    if indices.size and (indices.min() < -size or indices.max() >= size):
        raise IndexError(f"an index is outside of axis {axis}, which has {size} elements")


@builtin("Gather", since=1)
def gather(ctx: Context, x: Array, indices: Array) -> None:
    """Elements of an axis, by index."""
    xp, axis = ctx.xp, nonnegative(ctx.attrs["axis"], x.ndim)
    size, rest = x.shape[axis], x.shape[axis + 1 :]
    if xp is np:
        _expect_inside(indices, size, axis)
    out = ctx.out((*x.shape[:axis], *indices.shape, *rest))
    if xp is not np:
        blocks = x.reshape(math.prod(x.shape[:axis]), size, math.prod(rest))
        cuda_indexing.take_rows(xp, blocks, indices, out)
        ctx.repeat_launches()
    elif out.size:
        np.take(x, indices, axis=axis, out=out, mode="wrap")


@builtin("GatherElements", since=11)
def gather_elements(ctx: Context, x: Array, indices: Array) -> None:
    """One element per index, along an axis."""
    axis = nonnegative(ctx.attrs["axis"], x.ndim)
    _expect_rank(indices, x.ndim)
    xp, out = ctx.xp, ctx.out(indices.shape)
    if xp is np:
        out[...] = x[_places(xp, checked(indices, x.shape[axis], axis), axis)]
    else:
        rows = cuda_indexing.flat_places(xp, indices, x.shape, axis)
        cuda_indexing.take_rows(xp, x.reshape(1, x.size, 1), rows, out)


def _expect_rank(indices: Array, rank: int) -> None:
    if indices.ndim != rank:
        raise ValueError(f"indices has {indices.ndim} dimensions, and data has {rank}")


def _places(xp: ArrayModule, indices: Array, axis: int) -> tuple[Array, ...]:
    """Return one index array per axis: `indices` along `axis`, the element's index elsewhere."""
    places = list(xp.ogrid[tuple(slice(0, n) for n in indices.shape)])
    if indices.ndim == 1:
        places = [xp.arange(indices.shape[0])]
    places[axis] = indices
    return tuple(places)


def _tuples(indices: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Return one index array per axis from tuples of indices along the last axis."""
    return tuple(checked(indices[..., i], shape[i], i) for i in range(indices.shape[-1]))


def _expect_tuples(indices: Array, shape: tuple[int, ...]) -> int:
    """Return the number of axes that tuples of indices name."""
    if not indices.ndim or indices.shape[-1] > len(shape):
        raise ValueError(f"indices of shape {indices.shape} do not fit data of shape {shape}")
    return int(indices.shape[-1])


@builtin("GatherND", since=11)
def gather_nd(ctx: Context, x: Array, indices: Array) -> None:
    """Slices that tuples of indices name, after equal batch axes."""
    xp, batch = ctx.xp, ctx.attrs.get("batch_dims", 0)
    lead = math.prod(x.shape[:batch])
    depth = _expect_tuples(indices, x.shape[batch:])
    named, rest = x.shape[batch : batch + depth], x.shape[batch + depth :]
    out = ctx.out((*indices.shape[:-1], *rest))
    number = xp.arange(lead).reshape(lead, 1)
    count = math.prod(indices.shape[batch:-1])  # NumPy cannot infer a size if another one is 0
    if xp is np:
        which = indices.reshape(lead, count, depth)
        found = x.reshape(lead, *x.shape[batch:])[(number, *_tuples(which, named))]
        out[...] = found.reshape(out.shape)
        return
    rows = cuda_indexing.flat_rows(xp, indices, named).reshape(lead, count)
    length = math.prod(named)
    # Indices beyond the block must not reach the next one.
    rows = xp.where(rows < length, number * length + rows, lead * length)
    cuda_indexing.take_rows(xp, x.reshape(1, lead * length, math.prod(rest)), rows, out)


_UPDATES = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}
_REDUCTIONS = ("none", *_UPDATES)


def _reduction(ctx: Context) -> str:
    return choice(ctx.attrs, "reduction", _REDUCTIONS, "none")


def _update(out: Array, places: tuple[Array, ...], updates: Array, reduction: str) -> None:
    """Write or combine elements at indices, which may repeat."""
    if reduction == "none":
        out[places] = updates
    elif out.dtype == bool and reduction in ("max", "min"):
        (np.logical_or if reduction == "max" else np.logical_and).at(out, places, updates)
    else:
        getattr(np, _UPDATES[reduction]).at(out, places, updates)


def _scatter_elements(ctx: Context, x: Array, indices: Array, updates: Array) -> None:
    axis = nonnegative(ctx.attrs["axis"], x.ndim)
    _expect_rank(indices, x.ndim)
    expect_shape("updates", updates, indices.shape)
    xp, reduction = ctx.xp, _reduction(ctx)
    if xp is np:
        places = _places(xp, checked(indices, x.shape[axis], axis), axis)
    out = ctx.out(x.shape)
    out[...] = x
    if xp is np:
        _update(out, places, updates, reduction)
    else:
        rows = cuda_indexing.flat_places(xp, indices, x.shape, axis)
        cuda_indexing.put_rows(xp, out.reshape(-1, 1), rows, updates, reduction)


_scatter_elements.__name__ = "scatter_elements"
builtin("ScatterElements", since=11)(_scatter_elements)
builtin("Scatter", since=9)(_scatter_elements)


@builtin("ScatterND", since=11)
def scatter_nd(ctx: Context, x: Array, indices: Array, updates: Array) -> None:
    """Slices written or combined at tuples of indices."""
    depth = _expect_tuples(indices, x.shape)
    expect_shape("updates", updates, (*indices.shape[:-1], *x.shape[depth:]))
    xp, reduction = ctx.xp, _reduction(ctx)
    if xp is np:
        places = _tuples(indices, x.shape)
    out = ctx.out(x.shape)
    out[...] = x
    if not depth and reduction == "none":  # updates replace the whole tensor; the last one stays
        if updates.size:
            out[...] = updates.reshape(-1, *x.shape)[-1]
        return
    if xp is not np:
        rows = cuda_indexing.flat_rows(xp, indices, x.shape[:depth])
        table = out.reshape(math.prod(x.shape[:depth]), math.prod(x.shape[depth:]))
        cuda_indexing.put_rows(xp, table, rows, updates, reduction)
        return
    if not places:
        out, places = out.reshape(1, *out.shape), (np.zeros(indices.shape[:-1], np.int64),)
    _update(out, places, updates, reduction)


@builtin("TensorScatter", since=24)
def tensor_scatter(
    ctx: Context, cache: Array, new: Array, write_indices: Array | None = None
) -> None:
    """A cache with new entries along an axis, at an index per batch element."""
    xp = ctx.xp
    axis = nonnegative(ctx.attrs["axis"], cache.ndim)
    out = ctx.out(cache.shape)
    out[...] = cache
    batch, size, length = cache.shape[0], cache.shape[axis], new.shape[axis]
    expect_shape("write_indices", write_indices, (batch,))
    start = xp.zeros(batch, np.int64) if write_indices is None else write_indices
    where = start.reshape(-1, 1) + xp.arange(length)
    if ctx.attrs["mode"] == "circular":
        where %= size
    elif xp is np and where.size and (where.min() < 0 or where.max() >= size):
        raise IndexError(f"the update ends outside of axis {axis}, which has {size} elements")
    moved, source = xp.moveaxis(out, axis, 1), xp.moveaxis(new, axis, 1)
    moved[xp.arange(batch).reshape(-1, 1), where] = source


@builtin("OneHot", since=9, host_inputs=[1])
@quiet
def one_hot(ctx: Context, indices: Array, depth: Array, values: Array) -> None:
    """One-hot vectors along a new axis: one value at the index, the other elsewhere."""
    xp = ctx.xp
    size = single("depth", depth)
    if size <= 0:
        raise ValueError(f"depth is {size}, not positive")
    expect_shape("values", values, (2,))
    axis = nonnegative(ctx.attrs["axis"], indices.ndim + 1)
    wanted = xp.expand_dims(indices, axis)
    if wanted.dtype.kind == "f":  # without their fraction
        wanted = wanted.astype(np.int64)
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
    chosen = ctx.xp.flatnonzero(condition.reshape(-1)[: data.shape[axis]])
    result = ctx.xp.take(data, chosen, axis=axis)
    ctx.out(result.shape)[...] = result


@builtin("ArrayFeatureExtractor", domain="ai.onnx.ml", since=1)
def array_feature_extractor(ctx: Context, x: Array, indices: Array) -> None:
    """Elements of the last axis, by index."""
    xp, chosen = ctx.xp, indices.reshape(-1)
    lead = x.shape[:-1] if x.ndim > 1 else (1,)
    out = ctx.out((*lead, chosen.size))
    if xp is np:
        chosen = checked(chosen, x.shape[-1], x.ndim - 1)
        out[...] = np.take(x.reshape(*lead, -1), chosen, axis=-1)
    else:
        blocks = x.reshape(math.prod(lead), x.shape[-1], 1)
        cuda_indexing.take_rows(xp, blocks, chosen, out)
