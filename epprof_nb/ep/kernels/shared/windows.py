"""Sliding windows over the spatial axes of a tensor, for convolutions and pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from epprof_nb.ep.kernels.shared.checks import choice, per_axis
from epprof_nb.ep.known_operators import CHANNELS_LAST

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array, ArrayModule, Attributes, Context


class Geometry(NamedTuple):
    """The windows of a convolution or pooling, one entry per spatial axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: list[tuple[int, int]]
    """Elements added before and after, as the node specifies; negative if elements are removed."""
    extra: list[int]
    """Further elements added after `pads` for ``ceil_mode``."""

    @property
    def padding(self) -> list[tuple[int, int]]:
        """All elements added before and after."""
        return [(b, e + x) for (b, e), x in zip(self.pads, self.extra, strict=True)]

    def positions(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the number of windows along each axis of an image."""
        return tuple(
            _positions(n + before + after, (k - 1) * d + 1, s)
            for n, (before, after), k, d, s in zip(
                shape, self.padding, self.kernel, self.dilations, self.strides, strict=True
            )
        )


def geometry(
    attrs: Attributes, shape: tuple[int, ...], kernel: tuple[int, ...], *, crop: bool = False
) -> Geometry:
    """Return the windows that a node's attributes describe.

    Parameters
    ----------
    attrs
        Attributes of the node: ``strides``, ``dilations``, ``pads``, ``auto_pad`` and
        ``ceil_mode``, if its operator has them.
    shape
        Sizes of the spatial axes.
    kernel
        Shape of a window.
    crop
        Whether windows that do not reach all elements are centered on the axis, if their number is
        the same as with ``SAME_UPPER`` or ``SAME_LOWER``. Otherwise they begin at its first
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


def is_channels_last(ctx: Context) -> bool:
    """Whether the channels of a node are the last axis in memory, and arrays are views of that."""
    return bool(ctx.domain == CHANNELS_LAST)


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
    positions = geometry.positions(x.shape[2:])
    x = padded(xp, x, geometry.padding, padding_value)
    kernel, dilations = geometry.kernel, geometry.dilations
    # CuPy's sliding_window_view copies the shape of the windows to the device and waits for it.
    steps = [n * s for n, s in zip(x.strides[2:], geometry.strides, strict=True)]
    within = [n * d for n, d in zip(x.strides[2:], dilations, strict=True)]
    return xp.lib.stride_tricks.as_strided(
        x, (*x.shape[:2], *positions, *kernel), (*x.strides[:2], *steps, *within)
    )


def frames(xp: ArrayModule, x: Array, size: int, step: int) -> Array:
    """Return a view with parts of a signal, (batch, parts, size), from (batch, length)."""
    count = _positions(x.shape[1], size, step)
    batch, element = x.strides
    return xp.lib.stride_tricks.as_strided(
        x, (x.shape[0], count, size), (batch, element * step, element)
    )


def _positions(length: int, size: int, step: int) -> int:
    """Return the number of windows along an axis."""
    if not 0 < size <= length or step < 1:
        raise ValueError(f"a window of {size} elements in steps of {step} does not fit {length}")
    return (length - size) // step + 1


def padded(xp: ArrayModule, x: Array, widths: list[tuple[int, int]], value: float) -> Array:
    """Return an array with elements added to its spatial axes, or removed (negative widths)."""
    if any(width < 0 for both in widths for width in both):
        kept = (
            slice(max(-b, 0), n - max(-a, 0)) for n, (b, a) in zip(x.shape[2:], widths, strict=True)
        )
        x = x[(slice(None), slice(None), *kept)]
        widths = [(max(before, 0), max(after, 0)) for before, after in widths]
    if not any(width for both in widths for width in both):
        return x
    # CuPy's pad launches two kernels per axis.
    shape = [n + before + after for n, (before, after) in zip(x.shape[2:], widths, strict=True)]
    result = xp.full((*x.shape[:2], *shape), value, x.dtype)
    inner = (slice(before, before + n) for n, (before, _) in zip(x.shape[2:], widths, strict=True))
    result[(slice(None), slice(None), *inner)] = x
    return result


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
    """Return the padding for one more window, if that window begins inside of the data."""
    left = (padded - size) % stride
    begins = (padded - size) // stride * stride + stride
    return stride - left if left and begins < start_limit else 0
