"""Blocks of blocks of a series' events, so that a window need not look at each block either."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from epprof_nb.views.blocks import BLOCK

if TYPE_CHECKING:
    from epprof_nb.views.series import Series

Ints = npt.NDArray[np.int64]


class Level(NamedTuple):
    """What `epprof_nb.views.series.Series` keeps of its blocks, of larger ones."""

    opening: Ints
    longest: Ints
    latest: Ints
    covered: Ints


def levels(series: Series) -> tuple[Level, ...]:
    """Return the blocks, those of `BLOCK` blocks each, and so on until they are few."""
    found = [Level(series.opening, series.longest, series.latest, series.covered)]
    while len((below := found[-1]).opening) > BLOCK:
        edges = np.arange(0, len(below.opening), BLOCK)
        found.append(
            Level(
                below.opening[edges],
                np.maximum.reduceat(below.longest, edges),
                np.maximum.reduceat(below.latest, edges),
                below.covered[::BLOCK].copy(),
            )
        )
    return tuple(found)
