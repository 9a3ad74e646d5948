"""Sliding windows over the spatial axes of a tensor, for convolutions and pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array, Context


def windows(ctx: Context, x: Array, kernel: tuple[int, ...], padding_value: float) -> Array:
    """Return a view with the windows of each position.

    Parameters
    ----------
    ctx
        Context of a node with the attributes ``strides``, ``dilations``, ``pads``, ``auto_pad``
        and ``ceil_mode``, as far as its operator has them.
    x
        Array of shape (batch, channels, *spatial).
    kernel
        Shape of a window.
    padding_value
        Value of the elements around `x`.

    Returns
    -------
    windows
        Array of shape (batch, channels, *positions, *kernel).
    """
    rank = len(kernel)
    attrs = ctx.attrs
    strides = attrs.get("strides") or (1,) * rank
    dilations = attrs.get("dilations") or (1,) * rank
    sizes = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = _pads(attrs, x.shape[2:], sizes, strides)
    if attrs.get("ceil_mode"):
        pads = [
            (begin, end + _extra(n + begin + end, size, stride, n + begin))
            for n, (begin, end), size, stride in zip(x.shape[2:], pads, sizes, strides, strict=True)
        ]
    if any(begin or end for begin, end in pads):
        x = ctx.xp.pad(x, [(0, 0), (0, 0), *pads], constant_values=padding_value)
    spatial = tuple(range(2, 2 + rank))
    view = np.lib.stride_tricks.sliding_window_view(x, sizes, axis=spatial)
    every = tuple(slice(None, None, s) for s in strides)
    within = tuple(slice(None, None, d) for d in dilations)
    return view[(slice(None), slice(None), *every, *within)]


def _pads(
    attrs: Any,  # noqa: ANN401
    shape: tuple[int, ...],
    sizes: list[int],
    strides: tuple[int, ...],
) -> list[tuple[int, int]]:
    rank = len(shape)
    mode = attrs.get("auto_pad", "NOTSET")
    if mode == "NOTSET":
        given = attrs.get("pads") or (0,) * (2 * rank)
        return list(zip(given[:rank], given[rank:], strict=True))
    if mode == "VALID":
        return [(0, 0)] * rank
    pads = []
    for n, size, stride in zip(shape, sizes, strides, strict=True):
        total = max((-(-n // stride) - 1) * stride + size - n, 0)
        smaller, larger = total // 2, total - total // 2
        pads.append((smaller, larger) if mode == "SAME_UPPER" else (larger, smaller))
    return pads


def _extra(padded: int, size: int, stride: int, start_limit: int) -> int:
    """Padding that makes room for one more window, if it begins inside of the data."""
    left = (padded - size) % stride
    begins = (padded - size) // stride * stride + stride
    return stride - left if left and begins < start_limit else 0
