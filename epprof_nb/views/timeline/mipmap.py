"""Mip levels of the event rows: summaries of blocks, of blocks of blocks, and so on.

Level 0 is the single events, level 1 blocks of `BLOCK` events, and every further level blocks of
`FANOUT` blocks of the level below. The window bins read dense time ranges from the coarsest level
that is fine enough; `level_of_detail` beside this file describes the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray

BLOCK = 16
"""Events per block of level 1."""
FANOUT = 4
"""Blocks per block of the next level."""


class MipLevel(NamedTuple):
    """Summaries of the blocks of one level.

    `epprof_nb.views.timeline.rows.EventRows` describes the columns.
    """

    block_start: IntArray
    longest: IntArray
    latest: IntArray
    covered_ns: IntArray


def events_per_block(level: int) -> int:
    """Return the number of events in a block of a level."""
    return int(BLOCK * FANOUT ** (level - 1)) if level else 1


def children_per_block(level: int) -> int:
    """Return the number of blocks of the level below in a block of a level."""
    return BLOCK if level == 1 else FANOUT


def build_mip_levels(blocks: MipLevel) -> tuple[MipLevel, ...]:
    """Return the levels from level 1, `blocks`, up to one with at most `BLOCK` blocks."""
    levels = [blocks]
    while len((below := levels[-1]).block_start) > BLOCK:
        edges = np.arange(0, len(below.block_start), FANOUT)
        levels.append(
            MipLevel(
                below.block_start[edges],
                np.maximum.reduceat(below.longest, edges),
                np.maximum.reduceat(below.latest, edges),
                below.covered_ns[::FANOUT].copy(),
            )
        )
    return tuple(levels)
