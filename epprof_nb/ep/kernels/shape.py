"""Shapes: views, permutations, joins and selections of elements."""

from __future__ import annotations

import math
from itertools import accumulate, pairwise

import numpy as np

from epprof_nb.ep.kernel import Array, Context, builtin


def _copy(ctx: Context, x: Array, shape: tuple[int, ...]) -> None:
    ctx.out(shape)[...] = x.reshape(shape)


@builtin("Identity", since=1)
def identity(ctx: Context, x: Array) -> None:
    """The same elements."""
    _copy(ctx, x, x.shape)


@builtin("Reshape", since=5, host_inputs=[1])
def reshape(ctx: Context, x: Array, shape: Array) -> None:
    """The same elements in another shape; 0 keeps a dimension, -1 takes what is left."""
    wanted = shape.tolist()
    if not ctx.attrs.get("allowzero", 0):
        wanted = [x.shape[i] if n == 0 else n for i, n in enumerate(wanted)]
    if -1 in wanted:
        rest = math.prod(n for n in wanted if n != -1)
        wanted[wanted.index(-1)] = x.size // rest if rest else 0
    _copy(ctx, x, tuple(wanted))


@builtin("Flatten", since=1)
def flatten(ctx: Context, x: Array) -> None:
    """A matrix, its rows from the axes before `axis`."""
    axis = ctx.attrs["axis"]
    axis = axis + x.ndim if axis < 0 else axis
    _copy(ctx, x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


@builtin("Squeeze", since=13, host_inputs=[1])
def squeeze(ctx: Context, x: Array, axes: Array | None = None) -> None:
    """Without dimensions of size 1."""
    if axes is None:
        _copy(ctx, x, tuple(n for n in x.shape if n != 1))
    else:
        removed = {a % x.ndim for a in axes.tolist()}
        _copy(ctx, x, tuple(n for i, n in enumerate(x.shape) if i not in removed))


@builtin("Unsqueeze", since=13, host_inputs=[1])
def unsqueeze(ctx: Context, x: Array, axes: Array) -> None:
    """With new dimensions of size 1."""
    rank = x.ndim + axes.size
    added = {a % rank for a in axes.tolist()}
    rest = iter(x.shape)
    _copy(ctx, x, tuple(1 if i in added else next(rest) for i in range(rank)))


@builtin("Transpose", since=1)
def transpose(ctx: Context, x: Array) -> None:
    """Permuted axes."""
    moved = x.transpose(ctx.attrs.get("perm"))
    ctx.out(moved.shape)[...] = moved


@builtin("Expand", since=8, host_inputs=[1])
def expand(ctx: Context, x: Array, shape: Array) -> None:
    """Broadcast to a shape."""
    ctx.out(np.broadcast_shapes(x.shape, tuple(shape.tolist())))[...] = x


@builtin("Shape", since=1, host_outputs=[0])
def shape_(ctx: Context, x: Array) -> None:
    """The shape of a tensor, or a part of it."""
    part = x.shape[ctx.attrs.get("start", 0) : ctx.attrs.get("end")]
    ctx.out(len(part))[...] = part


@builtin("Concat", since=4)
def concat(ctx: Context, *inputs: Array) -> None:
    """Tensors joined along an axis."""
    axis = ctx.attrs["axis"] % inputs[0].ndim
    total = sum(x.shape[axis] for x in inputs)
    shape = (*inputs[0].shape[:axis], total, *inputs[0].shape[axis + 1 :])
    ctx.xp.concatenate(inputs, axis=axis, out=ctx.out(shape))


@builtin("Split", since=18, host_inputs=[1])
def split(ctx: Context, x: Array, sizes: Array | None = None) -> None:
    """Parts of a tensor along an axis."""
    axis = ctx.attrs["axis"] % x.ndim
    if sizes is None:
        size = -(-x.shape[axis] // ctx.num_outputs)
        ends = [min(size * (i + 1), x.shape[axis]) for i in range(ctx.num_outputs)]
    else:
        ends = list(accumulate(sizes.tolist()))
    for index, (start, end) in enumerate(pairwise([0, *ends])):
        part = x[(slice(None),) * axis + (slice(start, end),)]
        out = ctx.out(part.shape, index=index)
        if out is not None:
            out[...] = part


@builtin("Slice", since=10, host_inputs=[1, 2, 3, 4])
def slice_(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    x: Array,
    starts: Array,
    ends: Array,
    axes: Array | None = None,
    steps: Array | None = None,
) -> None:
    """Every n-th element of a range, along some axes."""
    chosen = [slice(None)] * x.ndim
    axis_list = range(len(starts)) if axes is None else axes.tolist()
    step_list = [1] * len(starts) if steps is None else steps.tolist()
    for axis, start, end, step in zip(
        axis_list, starts.tolist(), ends.tolist(), step_list, strict=True
    ):
        size = x.shape[axis]
        first, last = (0, size) if step > 0 else (0, size - 1)
        start = min(max(start + size if start < 0 else start, first), last)  # noqa: PLW2901
        low = 0 if step > 0 else -1
        end = min(max(end + size if end < 0 else end, low), size)  # noqa: PLW2901
        chosen[axis] = slice(start, None if end < 0 else end, step)
    part = x[tuple(chosen)]
    ctx.out(part.shape)[...] = part


@builtin("Gather", since=1)
def gather(ctx: Context, x: Array, indices: Array) -> None:
    """Elements of an axis, by index."""
    axis = ctx.attrs["axis"] % x.ndim
    size = x.shape[axis]
    if indices.size and (indices.min() < -size or indices.max() >= size):
        raise IndexError(f"an index is outside of axis {axis}, which has {size} elements")
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    ctx.xp.take(x, indices, axis=axis, out=ctx.out(shape), mode="wrap")
