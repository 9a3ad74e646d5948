"""Blocks of blocks of a series' events, so that a window need not look at each block either.

Of the levels the 0th are the single events, the first the blocks, and each further one has blocks
of `FAN` of the level below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from epprof_nb.views.timeline.mipmap import BLOCK

if TYPE_CHECKING:
    from epprof_nb.views.timeline.rows import Series

Ints = npt.NDArray[np.int64]

FAN = 4


def size(level: int) -> int:
    """Return how many events a block of a level has."""
    return int(BLOCK * FAN ** (level - 1)) if level else 1


def parts(level: int) -> int:
    """Return how many of the level below a block of a level has."""
    return BLOCK if level == 1 else FAN


class Level(NamedTuple):
    """What `epprof_nb.views.timeline.rows.Series` keeps of its blocks, of larger ones."""

    opening: Ints
    longest: Ints
    latest: Ints
    covered: Ints


def levels(series: Series) -> tuple[Level, ...]:
    """Return the levels from the first on, until they have few blocks."""
    found = [Level(series.opening, series.longest, series.latest, series.covered)]
    while len((below := found[-1]).opening) > BLOCK:
        edges = np.arange(0, len(below.opening), FAN)
        found.append(
            Level(
                below.opening[edges],
                np.maximum.reduceat(below.longest, edges),
                np.maximum.reduceat(below.latest, edges),
                below.covered[::FAN].copy(),
            )
        )
    return tuple(found)
