"""Positions and weights of resampling along one axis."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.ep.kernels.cuda.constants import constant
from epprof_nb.ep.products import products

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.ep.kernel import Array, ArrayModule


TRANSFORMATIONS = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
    "tf_half_pixel_for_nn", "tf_crop_and_resize",
)  # fmt: skip
"""Ways to find the positions in the input, which `source_positions` takes."""

ROUNDERS: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda p: np.ceil(p - 0.5),
    "round_prefer_ceil": lambda p: np.floor(p + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}
"""Ways to choose the nearest element, which `nearest` takes."""


def source_positions(  # noqa: PLR0911 - one per mode
    mode: str, size: int, resized: int, scale: float, roi: tuple[float, float]
) -> Array:
    """Return the position in the input of each element of the output, float64."""
    i = np.arange(resized, dtype=np.float64)
    if mode == "align_corners":
        return i * (size - 1) / (resized - 1) if resized > 1 else np.zeros(resized)
    if mode == "asymmetric":
        return i / scale
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) / scale
    if mode == "tf_crop_and_resize":
        start, end = roi
        if resized == 1:
            return np.array([0.5 * (start + end) * (size - 1)])
        return start * (size - 1) + i * (end - start) * (size - 1) / (resized - 1)
    if mode == "pytorch_half_pixel" and resized == 1:
        return np.zeros(1)
    half_pixel = (i + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        # The center stays in place although the size was rounded.
        return half_pixel + size / 2 * (1 - resized / (scale * size))
    return half_pixel


def nearest(mode: str, positions: Array, size: int) -> Array:
    """Return the index of the nearest input element for each position."""
    return np.clip(ROUNDERS[mode](positions), 0, size - 1).astype(np.intp)


def linear_kernel(distance: Array) -> Array:
    """Weight of an element in linear interpolation, by its distance."""
    return np.maximum(1 - np.abs(distance), 0)


def cubic_kernel(a: float) -> Callable[[Array], Array]:
    """Return the weight of an element in cubic interpolation, by its distance."""

    def kernel(distance: Array) -> Array:
        d = np.abs(distance)
        near = ((a + 2) * d - (a + 3)) * d * d + 1
        far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        return np.where(d <= 1, near, np.where(d < 2, far, 0))

    return kernel


def weights(
    kernel: Callable[[Array], Array],
    reach: int,
    positions: Array,
    size: int,
    *,
    stretch: float = 1.0,
    exclude_outside: bool = False,
) -> Array:
    """Return the matrix that resamples an axis.

    Parameters
    ----------
    kernel
        Weight by distance.
    reach
        Distance from which the weight is 0.
    positions
        Position in the input of each element of the output.
    size
        Number of elements of the input.
    stretch
        Factor by which the kernel is widened against aliasing.
    exclude_outside
        Whether elements beyond the edges are ignored; otherwise they equal the edge elements.

    Returns
    -------
    matrix
        float64 array of shape (number of positions, size).
    """
    floor = np.floor(positions)
    first = math.floor(-reach * stretch) + 1
    offsets = np.arange(first, 2 - first)
    taps = floor[:, None] + offsets
    weight = kernel((taps - positions[:, None]) / stretch)
    inside = (taps >= 0) & (taps < size)
    if exclude_outside:
        weight = np.where(inside, weight, 0)
    if exclude_outside or stretch != 1:
        weight = weight / weight.sum(axis=1, keepdims=True)
    matrix = np.zeros((len(positions), size))
    rows = np.broadcast_to(np.arange(len(positions))[:, None], taps.shape)
    np.add.at(matrix, (rows, np.clip(taps, 0, size - 1).astype(np.intp)), weight)
    return matrix


def apply(xp: ArrayModule, x: Array, matrix: Array, axis: int) -> Array:
    """Return `x` with an axis multiplied by a matrix."""
    moved = xp.moveaxis(x, axis, -1)
    return xp.moveaxis(products.matmul(moved, constant(xp, matrix.T, x.dtype)), -1, axis)
