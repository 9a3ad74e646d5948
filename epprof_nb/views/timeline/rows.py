"""The events of a table by row of the timeline, each row sorted by start.

Ten million events must be ready within a second. The only per-event allocation is one int32
permutation; everything else is kept per block of `BLOCK` events.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.views.timeline.mipmap import BLOCK, MipLevel, build_mip_levels

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray

Positions = npt.NDArray[Any]

_UNKNOWN = 255


@dataclass(slots=True)
class EventRows:
    """Events of one table by row of a lane, each row sorted by start.

    A *position* is an index into the events in this order: row ``r`` has the positions from
    ``first[r]`` up to, excluding, ``first[r + 1]``.

    Attributes
    ----------
    start, end
        Columns of the table, int64 ns. An event that ends before it starts has zero length.
    lane, row
        Lane of each row, and its number within the lane; int64, shape ``(rows,)``.
    first
        First position of each row; int64, shape ``(rows + 1,)``.
    order
        Row of the table at each position; int32, as the rows of tables.
    overlapping
        Whether an event of the row starts before an earlier one ends; bool, shape ``(rows,)``.
    running_max_end, running_max_offset
        Latest end among the events of the row up to each position, for overlapping rows only;
        int64. The value for position ``p`` of row ``r`` is at index ``running_max_offset[r] + p``.
    time_bounds
        Earliest start and latest end; both 0 without events.
    covered_ns
        Running sum of the time covered by the events of each block, overlaps counted once; int64,
        shape ``(blocks + 1,)``.
    block_start, longest
        Start of the first event of each block, and duration of its longest; int64, shape
        ``(blocks,)``.
    latest
        Latest end of the events of each block that lies wholly in an overlapping row; int64,
        shape ``(blocks,)``.
    """

    start: IntArray
    end: IntArray
    lane: IntArray
    row: IntArray
    first: IntArray
    order: Positions
    overlapping: npt.NDArray[np.bool_] = field(init=False)
    running_max_end: IntArray = field(init=False)
    running_max_offset: IntArray = field(init=False)
    time_bounds: tuple[int, int] = field(init=False)
    covered_ns: IntArray = field(init=False)
    block_start: IntArray = field(init=False)
    longest: IntArray = field(init=False)
    latest: IntArray = field(init=False)
    _levels: tuple[MipLevel, ...] = field(init=False, default=())
    _longest_event: npt.NDArray[np.uint8] | None = field(init=False, default=None)

    def __len__(self) -> int:
        return len(self.lane)

    @property
    def levels(self) -> tuple[MipLevel, ...]:
        """Mip levels from level 1; see `epprof_nb.views.timeline.mipmap`."""
        if not self._levels:
            blocks = MipLevel(self.block_start, self.longest, self.latest, self.covered_ns)
            self._levels = build_mip_levels(blocks)
        return self._levels

    def starts(self, positions: Positions) -> IntArray:
        """Start of the event at each position."""
        values: IntArray = self.start[self.order[positions]]
        return values

    def ends(self, positions: Positions) -> IntArray:
        """End of the event at each position."""
        rows = self.order[positions]
        values: IntArray = np.maximum(self.end[rows], self.start[rows])
        return values

    def longest_event(self, blocks: IntArray) -> IntArray:
        """Position of the longest event of each block (cached)."""
        if self._longest_event is None:
            self._longest_event = np.full(len(self.block_start), _UNKNOWN, np.uint8)
        offsets = self._longest_event[blocks]
        new = np.flatnonzero(offsets == _UNKNOWN)
        if len(new):
            rows = self.order[blocks[new, None] * BLOCK + np.arange(BLOCK)]
            offsets[new] = (self.end[rows] - self.start[rows]).argmax(axis=1)
            self._longest_event[blocks[new]] = offsets[new]
        return blocks * BLOCK + offsets

    def between(self, low: int, high: int) -> tuple[IntArray, IntArray]:
        """Starts and ends of the events at positions `low` up to, excluding, `high`."""
        rows = self.order[low:high]
        start = self.start[rows]
        end = self.end[rows]
        return start, np.maximum(end, start, out=end)

    def new_coverage(self, positions: Positions, row_index: IntArray) -> IntArray:
        """Time that each event covers and no event before it in its row covers, ns."""
        start, end = self.starts(positions), self.ends(positions)
        second = np.flatnonzero(self.overlapping[row_index] & (positions > self.first[row_index]))
        index = self.running_max_offset[row_index[second]] + positions[second] - 1
        start[second] = np.maximum(start[second], self.running_max_end[index])
        values: IntArray = np.maximum(end - start, 0)
        return values
