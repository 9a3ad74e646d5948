"""Shapes: views, permutations, joins and parts."""

from __future__ import annotations

import math
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.ep.kernel import Array, Context, builtin
from epprof_nb.ep.kernels.cuda.copies import write, write_part
from epprof_nb.ep.kernels.shared.axes import distinct, nonnegative
from epprof_nb.ep.kernels.shared.broadcasting import broadcast_shape
from epprof_nb.ep.kernels.shared.checks import choice, expect_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.ep.kernel_limits import Limits


_MOST_PARTS = 8
"""Maximum number of inputs of Concat to copy one by one; CuPy joins more in fewer launches."""


def _reshaped(ctx: Context, x: Array, shape: tuple[int, ...]) -> None:
    if math.prod(shape) != x.size:
        raise ValueError(f"cannot reshape a tensor of the shape {x.shape} to {shape}")
    y = ctx.out(shape)
    if ctx.xp is np:
        if not np.may_share_memory(x, y):
            y[...] = x.reshape(shape)
    elif x.data.ptr != y.data.ptr:
        write(ctx.xp, x, x.reshape(shape), y)


def _write(ctx: Context, x: Array, view: Array) -> None:
    """Write a view of the input into the output."""
    if write(ctx.xp, x, view, ctx.out(view.shape)):
        ctx.repeat_launches()


@builtin("Identity", since=1, is_view=True, moves=True)
def identity(ctx: Context, x: Array) -> None:
    """The same elements."""
    _reshaped(ctx, x, x.shape)


@builtin("Reshape", since=5, host_inputs=[1], is_view=True, moves=True)
def reshape(ctx: Context, x: Array, shape: Array) -> None:
    """The same elements in another shape; 0 keeps a dimension, -1 takes the rest."""
    wanted = shape.tolist()
    if not ctx.attrs.get("allowzero", 0):
        wanted = [x.shape[i] if n == 0 else n for i, n in enumerate(wanted)]
    if wanted.count(-1) > 1 or min(wanted, default=0) < -1:
        raise ValueError(f"the shape {shape.tolist()} has more than one unknown dimension")
    if -1 in wanted:
        rest = math.prod(n for n in wanted if n != -1)
        wanted[wanted.index(-1)] = x.size // rest if rest else 0
    _reshaped(ctx, x, tuple(wanted))


@builtin("Flatten", since=1, is_view=True, moves=True)
def flatten(ctx: Context, x: Array) -> None:
    """A matrix, its rows from the axes before `axis`."""
    axis = ctx.attrs["axis"]
    axis = x.ndim if axis == x.ndim else nonnegative(axis, x.ndim)
    _reshaped(ctx, x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


def _squeeze(ctx: Context, x: Array, axes: list[int] | None) -> None:
    if axes is None:
        _reshaped(ctx, x, tuple(n for n in x.shape if n != 1))
        return
    removed = {nonnegative(axis, x.ndim) for axis in axes}
    wide = [i for i in removed if x.shape[i] != 1]
    if wide:
        raise ValueError(f"axis {wide[0]} has {x.shape[wide[0]]} elements, not 1")
    _reshaped(ctx, x, tuple(n for i, n in enumerate(x.shape) if i not in removed))


@builtin("Squeeze", since=13, host_inputs=[1], is_view=True, moves=True)
def squeeze(ctx: Context, x: Array, axes: Array | None = None) -> None:
    """The same elements without dimensions of size 1: of the given axes, or of all."""
    # As in ONNX Runtime, an empty tensor names no axes.
    _squeeze(ctx, x, axes.tolist() if axes is not None and axes.size else None)


@builtin("Squeeze", since=1, until=12, is_view=True, moves=True)
def _squeeze_before_13(ctx: Context, x: Array) -> None:
    _squeeze(ctx, x, ctx.attrs.get("axes") or None)


def _unsqueeze(ctx: Context, x: Array, axes: list[int]) -> None:
    rank = x.ndim + len(axes)
    added = set(distinct(axes, rank))
    rest = iter(x.shape)
    _reshaped(ctx, x, tuple(1 if i in added else next(rest) for i in range(rank)))


@builtin("Unsqueeze", since=13, host_inputs=[1], is_view=True, moves=True)
def unsqueeze(ctx: Context, x: Array, axes: Array) -> None:
    """With new dimensions of size 1."""
    if axes.ndim > 1:
        raise ValueError(f"axes has {axes.ndim} dimensions, not 1")
    _unsqueeze(ctx, x, axes.reshape(-1).tolist())


@builtin("Unsqueeze", since=1, until=12, is_view=True, moves=True)
def _unsqueeze_before_13(ctx: Context, x: Array) -> None:
    _unsqueeze(ctx, x, ctx.attrs["axes"])


@builtin("Transpose", since=1, moves=True)
def transpose(ctx: Context, x: Array) -> None:
    """Permuted axes."""
    moved = x.transpose(ctx.attrs.get("perm") or None)
    _write(ctx, x, moved)


@builtin("Expand", since=8, host_inputs=[1], moves=True)
def expand(ctx: Context, x: Array, shape: Array) -> None:
    """Broadcast to a shape."""
    whole = broadcast_shape(x.shape, tuple(shape.reshape(-1).tolist()))
    _write(ctx, x, ctx.xp.broadcast_to(x, whole))


@builtin("Tile", since=6, host_inputs=[1])
def tile(ctx: Context, x: Array, repeats: Array) -> None:
    """Copies along each axis."""
    counts = repeats.tolist()
    if len(counts) != x.ndim or min(counts, default=0) < 0:
        raise ValueError(f"the repeats {counts} do not fit a tensor of {x.ndim} dimensions")
    result = ctx.xp.tile(x, counts)
    ctx.out(result.shape)[...] = result


@builtin("Shape", since=1, host_outputs=[0], moves=True)
def shape_(ctx: Context, x: Array) -> None:
    """The shape of a tensor, or a part of it."""
    part = x.shape[ctx.attrs.get("start", 0) : ctx.attrs.get("end")]
    ctx.out(len(part))[...] = part


@builtin("Size", since=1, host_outputs=[0], moves=True)
def size(ctx: Context, x: Array) -> None:
    """Number of elements."""
    ctx.out(())[...] = x.size


@builtin("Concat", since=4, moves=True)
def concat(ctx: Context, *inputs: Array) -> None:
    """Tensors joined along an axis."""
    axis = nonnegative(ctx.attrs["axis"], inputs[0].ndim)
    total = sum(x.shape[axis] for x in inputs)
    shape = (*inputs[0].shape[:axis], total, *inputs[0].shape[axis + 1 :])
    out = ctx.out(shape)
    if ctx.xp is np or len(inputs) > _MOST_PARTS:
        ctx.xp.concatenate(inputs, axis=axis, out=out)
        return
    start = 0
    for x in inputs:
        if (*x.shape[:axis], *x.shape[axis + 1 :]) != (*shape[:axis], *shape[axis + 1 :]):
            raise ValueError(f"tensors of the shapes {inputs[0].shape} and {x.shape} do not fit")
        if x.size:
            write_part(ctx.xp, x, out, axis, start)
        start += x.shape[axis]
    ctx.repeat_launches()


def _split(ctx: Context, x: Array, sizes: list[int] | None) -> None:
    axis = nonnegative(ctx.attrs["axis"], x.ndim)
    length = x.shape[axis]
    if sizes is None:
        step = -(-length // ctx.num_outputs)
        if "num_outputs" not in ctx.attrs and length % ctx.num_outputs:
            raise ValueError(f"axis {axis} of {length} is not {ctx.num_outputs} equal parts")
        ends = [min(step * (i + 1), length) for i in range(ctx.num_outputs)]
    else:
        ends = list(accumulate(sizes))
        if ends[-1] != length or min(sizes) < 0:
            raise ValueError(f"the parts {sizes} do not make up axis {axis}, which has {length}")
    repeats = True
    for index, (start, end) in enumerate(pairwise([0, *ends])):
        part = x[(slice(None),) * axis + (slice(start, end),)]
        out = ctx.out(part.shape, index=index)
        if out is not None:
            repeats &= write(ctx.xp, x, part, out)
    if repeats:
        ctx.repeat_launches()


@builtin("Split", since=13, host_inputs=[1], moves=True)
def split(ctx: Context, x: Array, sizes: Array | None = None) -> None:
    """Parts of a tensor along an axis."""
    if ctx.attrs.get("num_outputs", ctx.num_outputs) != ctx.num_outputs:
        raise ValueError(f"num_outputs={ctx.attrs['num_outputs']}, and it has {ctx.num_outputs}")
    _split(ctx, x, sizes.tolist() if sizes is not None and sizes.size else None)


@builtin("Split", since=2, until=12, moves=True)
def _split_before_13(ctx: Context, x: Array) -> None:
    _split(ctx, x, ctx.attrs.get("split") or None)


@builtin("Slice", since=10, host_inputs=[1, 2, 3, 4], moves=True)
def slice_(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    x: Array,
    starts: Array,
    ends: Array,
    axes: Array | None = None,
    steps: Array | None = None,
) -> None:
    """Every n-th element of a range, along some axes."""
    axis_list = range(len(starts)) if axes is None else axes.tolist()
    step_list = [1] * len(starts) if steps is None else steps.tolist()
    _slice(ctx, x, starts.tolist(), ends.tolist(), axis_list, step_list)


@builtin("Slice", since=1, until=9, moves=True)
def _slice_before_10(ctx: Context, x: Array) -> None:
    starts = ctx.attrs["starts"]
    axes = ctx.attrs.get("axes") or range(len(starts))
    _slice(ctx, x, starts, ctx.attrs["ends"], axes, [1] * len(starts))


def _slice(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    x: Array,
    starts: list[int],
    ends: list[int],
    axes: Sequence[int],
    steps: list[int],
) -> None:
    chosen = [slice(None)] * x.ndim
    named = distinct(axes, x.ndim)
    for axis, start, end, step in zip(named, starts, ends, steps, strict=True):
        length = x.shape[axis]
        first, last = (0, length) if step > 0 else (0, length - 1)
        start = min(max(start + length if start < 0 else start, first), last)  # noqa: PLW2901
        low = 0 if step > 0 else -1
        end = min(max(end + length if end < 0 else end, low), length)  # noqa: PLW2901
        chosen[axis] = slice(start, None if end < 0 else end, step)
    part = x[tuple(chosen)]
    _write(ctx, x, part)


@builtin("Crop", since=1, until=9, moves=True)
def crop(ctx: Context, x: Array) -> None:
    """A rectangle of each image, from its borders, or from two of them and its size."""
    left, top, right, bottom = ctx.attrs["border"]
    height, width = ctx.attrs.get("scale") or (x.shape[2] - top - bottom, x.shape[3] - left - right)
    inside = min(top, left, height, width) >= 0
    if x.ndim != 4 or not inside or top + height > x.shape[2] or left + width > x.shape[3]:
        raise ValueError(f"border and scale do not fit the shape {x.shape}")
    _write(ctx, x, x[:, :, top : top + height, left : left + width])


@builtin("DepthToSpace", since=1)
def depth_to_space(ctx: Context, x: Array) -> None:
    """Blocks of pixels from groups of channels."""
    n, c, h, w = x.shape
    b = ctx.attrs["blocksize"]
    if choice(ctx.attrs, "mode", ("DCR", "CRD"), "DCR") == "DCR":
        moved = x.reshape(n, b, b, c // (b * b), h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        moved = x.reshape(n, c // (b * b), b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    shape = (n, c // (b * b), h * b, w * b)
    ctx.out(shape)[...] = moved.reshape(shape)


@builtin("SpaceToDepth", since=1)
def space_to_depth(ctx: Context, x: Array) -> None:
    """Groups of channels from blocks of pixels."""
    n, c, h, w = x.shape
    b = ctx.attrs["blocksize"]
    blocks = x.reshape(n, c, h // b, b, w // b, b)
    mode = choice(ctx.attrs, "mode", ("DCR", "CRD"), "DCR")
    moved = blocks.transpose((0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4))
    shape = (n, c * b * b, h // b, w // b)
    ctx.out(shape)[...] = moved.reshape(shape)


_AXES: Limits = {
    "time_axis and batch_axis are not 0 and 1": lambda node: (
        {node.attrs["time_axis"], node.attrs["batch_axis"]} != {0, 1}
    ),
}


@builtin("ReverseSequence", since=10, limits=_AXES)
def reverse_sequence(ctx: Context, x: Array, lengths: Array) -> None:
    """The first elements of each sequence, as many as its length, in reverse order."""
    xp = ctx.xp
    time, batch = ctx.attrs["time_axis"], ctx.attrs["batch_axis"]
    expect_shape("sequence_lens", lengths, (x.shape[batch],))
    moved = xp.moveaxis(x, (batch, time), (0, 1))
    steps = xp.arange(x.shape[time])
    if xp is np and lengths.size and not 0 <= lengths.min() <= lengths.max() <= x.shape[time]:
        raise ValueError(f"one of sequence_lens is not between 0 and {x.shape[time]}")
    limits = lengths.reshape(-1, 1)
    order = xp.where(steps < limits, limits - 1 - steps, steps)
    result = moved[xp.arange(x.shape[batch]).reshape(-1, 1), order]
    ctx.out(x.shape)[...] = xp.moveaxis(result, (0, 1), (batch, time))
