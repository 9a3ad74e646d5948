"""Axes as nodes give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


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


def distinct(axes: Iterable[int], rank: int) -> list[int]:
    """Return the numbers of axes, which may count from the end.

    Raises
    ------
    ValueError
        If a tensor of this rank does not have an axis, or one is named twice.
    """
    given = list(axes)
    found = [nonnegative(axis, rank) for axis in given]
    if len(set(found)) != len(found):
        raise ValueError(f"the axes {given} of a tensor of {rank} dimensions name one twice")
    return found
