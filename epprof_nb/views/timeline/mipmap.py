"""Blocks of blocks of a row's events, so that a window need not look at each block either.

Of the levels the 0th are the single events, the first the blocks, and each further one has blocks
of `FAN` of the level below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from epprof_nb.views.timeline.block_summaries import BLOCK

if TYPE_CHECKING:
    from epprof_nb.views.timeline.rows import EventRows

Ints = npt.NDArray[np.int64]

FAN = 4


def size(level: int) -> int:
    """Return how many events a block of a level has."""
    return int(BLOCK * FAN ** (level - 1)) if level else 1


def parts(level: int) -> int:
    """Return how many of the level below a block of a level has."""
    return BLOCK if level == 1 else FAN


class Level(NamedTuple):
    """What `epprof_nb.views.timeline.rows.EventRows` keeps of its blocks, of larger ones."""

    block_start: Ints
    longest: Ints
    latest: Ints
    covered_ns: Ints


def levels(event_rows: EventRows) -> tuple[Level, ...]:
    """Return the levels from the first on, until they have few blocks."""
    found = [
        Level(event_rows.block_start, event_rows.longest, event_rows.latest, event_rows.covered_ns)
    ]
    while len((below := found[-1]).block_start) > BLOCK:
        edges = np.arange(0, len(below.block_start), FAN)
        found.append(
            Level(
                below.block_start[edges],
                np.maximum.reduceat(below.longest, edges),
                np.maximum.reduceat(below.latest, edges),
                below.covered_ns[::FAN].copy(),
            )
        )
    return tuple(found)
