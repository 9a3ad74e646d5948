"""Selections by value: the largest, the nonzero, the distinct, the least overlapping."""

from __future__ import annotations

from typing import Any

import numpy as np

from epprof_nb.ep.kernel import Array, Context, builtin
from epprof_nb.ep.kernels.shared.axes import nonnegative
from epprof_nb.ep.kernels.shared.checks import expect_shape, single
from epprof_nb.ep.kernels.shared.optional_outputs import write_optional


def _top(ctx: Context, x: Array, count: int, *, largest: bool) -> None:
    xp, axis = ctx.xp, nonnegative(ctx.attrs["axis"], x.ndim)
    if not 0 <= count <= x.shape[axis]:
        raise ValueError(f"K is {count}, and axis {axis} has {x.shape[axis]} elements")
    # With a stable sort, the smaller index of equal elements comes first.
    if largest:
        turned = xp.flip(x, axis=axis)
        order = x.shape[axis] - 1 - xp.flip(xp.argsort(turned, axis=axis, kind="stable"), axis=axis)
    else:
        order = xp.argsort(x, axis=axis, kind="stable")
    chosen = order[(slice(None),) * axis + (slice(0, count),)]
    ctx.out(chosen.shape, index=0)[...] = xp.take_along_axis(x, chosen, axis=axis)
    write_optional(ctx, 1, chosen)


def _one(name: str, x: Array) -> int:
    """Return the number in an input of one dimension and element."""
    if x.ndim != 1:
        raise ValueError(f"{name} has {x.ndim} dimensions, not 1")
    return single(name, x)


@builtin("TopK", since=10, host_inputs=[1])
def top_k(ctx: Context, x: Array, k: Array) -> None:
    """The largest or smallest elements along an axis, sorted, and their indices."""
    _top(ctx, x, _one("K", k), largest=bool(ctx.attrs.get("largest", 1)))


@builtin("TopK", since=1, until=9)
def _top_k_before_10(ctx: Context, x: Array) -> None:
    _top(ctx, x, ctx.attrs["k"], largest=True)


@builtin("NonZero", since=9)
def non_zero(ctx: Context, x: Array) -> None:
    """Indices of the nonzero elements, one row per axis."""
    found = ctx.xp.nonzero(x.reshape(-1) if x.ndim == 0 else x)
    rows = found[: x.ndim]
    out = ctx.out((x.ndim, found[0].size))
    for row, indices in zip(out, rows, strict=True):
        row[...] = indices


@builtin("Unique", since=11)
def unique(ctx: Context, x: Array) -> None:
    """Distinct elements or slices; optionally in order of appearance."""
    xp, axis = ctx.xp, ctx.attrs.get("axis")
    data = x.reshape(-1) if axis is None else x
    along = 0 if axis is None else nonnegative(axis, x.ndim)
    values, first, inverse, counts = xp.unique(
        data, return_index=True, return_inverse=True, return_counts=True, axis=along
    )
    inverse = inverse.reshape(-1)
    if not ctx.attrs["sorted"]:
        order = xp.argsort(first)
        rank = xp.empty_like(order)
        rank[order] = xp.arange(order.size)
        values = xp.take(values, order, axis=along)
        first, counts, inverse = first[order], counts[order], rank[inverse]
    for index, value in enumerate((values, first, inverse, counts)):
        write_optional(ctx, index, value)


def _corners(boxes: Array, *, centered: bool) -> Array:
    """Return the lower and upper corners of boxes, (..., [low0, low1, high0, high1])."""
    a, b = boxes[..., :2], boxes[..., 2:]
    if centered:  # x, y, width, height
        return np.concatenate([a - b / 2, a + b / 2], axis=-1)
    return np.concatenate([np.minimum(a, b), np.maximum(a, b)], axis=-1)


def _overlap(box: Array, others: Array) -> Array:
    """Return the intersection over union of a box with others."""
    low = np.maximum(box[:2], others[:, :2])
    high = np.minimum(box[2:], others[:, 2:])
    common = np.prod(np.maximum(high - low, 0), axis=1)
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1)
    union = np.prod(box[2:] - box[:2]) + areas - common
    return np.where(union > 0, common / np.where(union > 0, union, 1), 0)


def _scalar(value: Array | None, default: Any) -> Any:  # noqa: ANN401
    return default if value is None or not value.size else value.reshape(-1)[0].item()


@builtin("NonMaxSuppression", since=10, host_inputs=[0, 1, 2, 3, 4], host_outputs=[0])
def non_max_suppression(  # noqa: PLR0917 - the inputs of the operator
    ctx: Context,
    boxes: Array,
    scores: Array,
    max_boxes: Array | None = None,
    iou_threshold: Array | None = None,
    score_threshold: Array | None = None,
) -> None:
    """Boxes in the order of their scores, without boxes that overlap a better one too much."""
    limit = _scalar(max_boxes, 0)
    threshold = _scalar(iou_threshold, 0.0)
    lowest = _scalar(score_threshold, -np.inf)
    if not 0 <= threshold <= 1:
        raise ValueError(f"iou_threshold is {threshold}, not between 0 and 1")
    expect_shape("boxes", boxes, (len(scores), *boxes.shape[1:2], 4))
    corners = _corners(boxes, centered=bool(ctx.attrs["center_point_box"]))
    chosen: list[tuple[int, int, int]] = []
    for batch, label in np.ndindex(scores.shape[:2]):
        order = np.argsort(-scores[batch, label], kind="stable")
        order = order[scores[batch, label][order] > lowest]
        kept = 0
        while order.size and kept < limit:
            best, order = order[0], order[1:]
            chosen.append((batch, label, int(best)))
            kept += 1
            order = order[_overlap(corners[batch, best], corners[batch, order]) <= threshold]
    ctx.out((len(chosen), 3))[...] = np.array(chosen, np.int64).reshape(-1, 3)
