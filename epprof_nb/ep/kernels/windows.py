"""Sliding windows over the spatial axes of a tensor, for convolutions and pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from epprof_nb.ep.kernels.checks import choice, per_axis

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array, ArrayModule, Attributes


class Geometry(NamedTuple):
    """The windows of a convolution or pooling, one entry per spatial axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: list[tuple[int, int]]
    """Elements added before and after, of what the node says; negative if elements are left out."""
    extra: list[int]
    """Elements added after those for ``ceil_mode``."""

    @property
    def padding(self) -> list[tuple[int, int]]:
        """All elements added before and after."""
        return [(b, e + x) for (b, e), x in zip(self.pads, self.extra, strict=True)]


def geometry(
    attrs: Attributes, shape: tuple[int, ...], kernel: tuple[int, ...], *, crop: bool = False
) -> Geometry:
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
    crop
        Whether windows that are the same in number as with ``SAME_UPPER`` or ``SAME_LOWER``, but do
        not reach all elements, lie in the middle of the axis; else they begin with its first
        element.

    Raises
    ------
    ValueError
        If the window or an attribute does not fit the spatial axes.
    """
    rank = len(shape)
    if len(kernel) != rank or min(kernel, default=1) < 1:
        raise ValueError(f"a window of shape {tuple(kernel)} does not fit {rank} spatial axes")
    strides = per_axis(attrs, "strides", rank)
    dilations = per_axis(attrs, "dilations", rank)
    sizes = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = _pads(attrs, shape, sizes, strides, crop=crop)
    extra = [0] * rank
    if attrs.get("ceil_mode"):
        extra = [
            _extra(n + begin + end, size, stride, n + begin)
            for n, (begin, end), size, stride in zip(shape, pads, sizes, strides, strict=True)
        ]
    return Geometry(tuple(kernel), tuple(strides), tuple(dilations), pads, extra)


def view(xp: ArrayModule, x: Array, geometry: Geometry, padding_value: float) -> Array:
    """Return a view with the windows of each position.

    Parameters
    ----------
    xp
        Array module.
    x
        Array of shape (batch, channels, *spatial).
    geometry
        The windows.
    padding_value
        Value of the elements around `x`.

    Returns
    -------
    windows
        Array of shape (batch, channels, *positions, *kernel).
    """
    x = padded(xp, x, geometry.padding, padding_value)
    rank = len(geometry.kernel)
    sizes = [(k - 1) * d + 1 for k, d in zip(geometry.kernel, geometry.dilations, strict=True)]
    found = xp.lib.stride_tricks.sliding_window_view(x, sizes, axis=tuple(range(2, 2 + rank)))
    every = tuple(slice(None, None, s) for s in geometry.strides)
    within = tuple(slice(None, None, d) for d in geometry.dilations)
    return found[(slice(None), slice(None), *every, *within)]


def padded(xp: ArrayModule, x: Array, widths: list[tuple[int, int]], value: float) -> Array:
    """Return an array with elements added to its spatial axes, or left out (negative widths)."""
    if any(width < 0 for both in widths for width in both):
        kept = (
            slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(x.shape[2:], widths, strict=True)
        )
        x = x[(slice(None), slice(None), *kept)]
        widths = [(max(before, 0), max(after, 0)) for before, after in widths]
    if not any(width for both in widths for width in both):
        return x
    return xp.pad(x, [(0, 0), (0, 0), *widths], constant_values=value)


def padding_mode(attrs: Attributes) -> str:
    """Return the attribute ``auto_pad``."""
    known = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    return choice(attrs, "auto_pad", known, "NOTSET")


def _pads(
    attrs: Attributes,
    shape: tuple[int, ...],
    sizes: list[int],
    strides: tuple[int, ...],
    *,
    crop: bool,
) -> list[tuple[int, int]]:
    rank = len(shape)
    mode = padding_mode(attrs)
    if mode == "NOTSET":
        given = per_axis(attrs, "pads", 2 * rank, 0)
        return list(zip(given[:rank], given[rank:], strict=True))
    if mode == "VALID":
        return [(0, 0)] * rank
    pads = []
    for n, size, stride in zip(shape, sizes, strides, strict=True):
        total = (-(-n // stride) - 1) * stride + size - n
        if not crop:
            total = max(total, 0)
        before = int((total + (mode == "SAME_LOWER")) / 2)  # towards zero
        pads.append((before, total - before))
    return pads


def _extra(padded: int, size: int, stride: int, start_limit: int) -> int:
    """Padding that makes room for one more window, if it begins inside of the data."""
    left = (padded - size) % stride
    begins = (padded - size) // stride * stride + stride
    return stride - left if left and begins < start_limit else 0
