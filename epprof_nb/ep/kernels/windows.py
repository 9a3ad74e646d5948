"""Sliding windows over the spatial axes of a tensor, for convolutions and pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array, ArrayModule, Attributes, Context


class Geometry(NamedTuple):
    """The windows of a convolution or pooling, one entry per spatial axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: list[tuple[int, int]]
    """Elements added before and after, of what the node says."""
    extra: list[int]
    """Elements added after those for ``ceil_mode``."""

    @property
    def padding(self) -> list[tuple[int, int]]:
        """All elements added before and after."""
        return [(b, e + x) for (b, e), x in zip(self.pads, self.extra, strict=True)]


def geometry(attrs: Attributes, shape: tuple[int, ...], kernel: tuple[int, ...]) -> Geometry:
    """Return the windows that a node's attributes describe.

    Parameters
    ----------
    attrs
        Attributes of the node: ``strides``, ``dilations``, ``pads``, ``auto_pad`` and
        ``ceil_mode``, as far as its operator has them.
    shape
        Sizes of the spatial axes.
    kernel
        Shape of a window.
    """
    rank = len(kernel)
    strides = attrs.get("strides") or (1,) * rank
    dilations = attrs.get("dilations") or (1,) * rank
    sizes = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = _pads(attrs, shape, sizes, strides)
    extra = [0] * rank
    if attrs.get("ceil_mode"):
        extra = [
            _extra(n + begin + end, size, stride, n + begin)
            for n, (begin, end), size, stride in zip(shape, pads, sizes, strides, strict=True)
        ]
    return Geometry(tuple(kernel), tuple(strides), tuple(dilations), pads, extra)


def windows(ctx: Context, x: Array, kernel: tuple[int, ...], padding_value: float) -> Array:
    """Return a view with the windows of each position.

    Parameters
    ----------
    ctx
        Context of a node with the attributes that `geometry` reads.
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
    return view(ctx.xp, x, geometry(ctx.attrs, x.shape[2:], kernel), padding_value)


def view(xp: ArrayModule, x: Array, geometry: Geometry, padding_value: float) -> Array:
    """Return a view with the windows of each position; see `windows`."""
    if any(begin or end for begin, end in geometry.padding):
        x = xp.pad(x, [(0, 0), (0, 0), *geometry.padding], constant_values=padding_value)
    rank = len(geometry.kernel)
    sizes = [(k - 1) * d + 1 for k, d in zip(geometry.kernel, geometry.dilations, strict=True)]
    found = xp.lib.stride_tricks.sliding_window_view(x, sizes, axis=tuple(range(2, 2 + rank)))
    every = tuple(slice(None, None, s) for s in geometry.strides)
    within = tuple(slice(None, None, d) for d in geometry.dilations)
    return found[(slice(None), slice(None), *every, *within)]


def _pads(
    attrs: Attributes, shape: tuple[int, ...], sizes: list[int], strides: tuple[int, ...]
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
