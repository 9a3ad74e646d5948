"""Axes as nodes give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from epprof_nb.ep.kernel import Array, ArrayModule


def nonnegative(axis: int, rank: int) -> int:
    """Return the number of an axis, which may count from the end.

    Raises
    ------
    ValueError
        If a tensor of this rank does not have the axis.
    """
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is outside of a tensor of {rank} dimensions")
    return axis % rank


def unraveled(xp: ArrayModule, places: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Return the index along each axis of places in a flattened array.

    CuPy's ``unravel_index`` waits for the device to check the places. Here, places out of range
    wrap around with CuPy.
    """
    if xp is np:
        return np.unravel_index(places, shape)
    indices = []
    for size in reversed(shape):
        indices.append(places % size)
        places = places // size
    return tuple(reversed(indices))


def distinct(axes: Iterable[int], rank: int) -> list[int]:
    """Return the numbers of axes, which may count from the end.

    Raises
    ------
    ValueError
        If a tensor of this rank does not have an axis, or an axis is repeated.
    """
    given = list(axes)
    found = [nonnegative(axis, rank) for axis in given]
    if len(set(found)) != len(found):
        raise ValueError(f"the axes {given} of a tensor of {rank} dimensions name one twice")
    return found
