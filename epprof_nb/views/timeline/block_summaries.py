"""Per-block summaries of event rows, so that a window query need not scan every event.

The summaries are level 1 of the mipmap; see `epprof_nb.views.timeline.mipmap`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.chunks import concat_ranges
from epprof_nb.views.timeline.mipmap import BLOCK

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.views.timeline.rows import EventRows


_BEFORE, _AFTER = -(2**63), 2**63 - 1


class BlockSummaries:
    """Computes the block summaries of event rows from ranges of events in cache-sized chunks.

    Along the way it detects rows that are not sorted by start and rows whose events overlap.

    Parameters
    ----------
    event_rows
        The rows to complete. `order` must have its final length; its values are read by `finish`.
    """

    def __init__(self, event_rows: EventRows) -> None:
        self._event_rows = event_rows
        blocks = -(-len(event_rows.order) // BLOCK)
        self._longest, self._covered = np.zeros((2, blocks), np.int64)
        self._low, self._high = _AFTER, _BEFORE
        # Start and end of the last event seen of each row.
        self._last_start, self._last_end = np.full((2, len(event_rows)), _BEFORE)
        self._unsorted, self._overlapping = np.zeros((2, len(event_rows)), np.bool_)

    def add(
        self, row: IntArray, at: IntArray, cut: IntArray, start: IntArray, end: IntArray
    ) -> None:
        """Add ranges of events. The ranges of one row must be added in order, without gaps.

        Parameters
        ----------
        row
            Index of each range's row, without duplicates.
        at
            Position of each range's first event.
        cut
            Offset of each range in `start` and `end`, and the end of the last one.
        start, end
            Times of the events. `start` is overwritten.
        """
        self._low = min(self._low, int(start.min()))
        self._high = max(self._high, int(end.max()))
        self._check_order(row, cut, start, end)
        size = np.diff(cut)
        first = at // BLOCK
        count = (at + size - 1) // BLOCK - first + 1
        blocks = concat_ranges(first, count)
        edges = blocks * BLOCK - np.repeat(at - cut[:-1], count)
        edges[np.cumsum(count) - count] = cut[:-1]
        length = np.subtract(end, start, out=start)
        # A block may have begun in an earlier range of the same row, or of the row before.
        np.maximum.at(self._longest, blocks, np.maximum.reduceat(length, edges))
        np.add.at(self._covered, blocks, np.add.reduceat(length, edges))

    def _check_order(self, row: IntArray, cut: IntArray, start: IntArray, end: IntArray) -> None:
        # An event that starts before its predecessor also starts before the predecessor ends.
        overlapping = self._rows_starting_before(row, cut, start, end, self._last_end)
        self._overlapping[overlapping] = True
        if len(overlapping):
            unsorted = self._rows_starting_before(row, cut, start, start, self._last_start)
            self._unsorted[unsorted] = True
        self._last_start[row] = start[cut[1:] - 1]

    @staticmethod
    def _rows_starting_before(
        row: IntArray, cut: IntArray, start: IntArray, times: IntArray, last: IntArray
    ) -> IntArray:
        """Return the rows with an event that starts before the time of its predecessor.

        ``times`` has one time per event. ``last`` has the time of the last event seen of each row,
        and is updated.
        """
        begin = cut[:-1]
        late = start[1:] < times[:-1]
        late[begin[1:] - 1] = False
        first = row[start[begin] < last[row]]
        last[row] = times[cut[1:] - 1]
        if not late.any():
            return first
        range_of = np.searchsorted(cut, np.flatnonzero(late) + 1, "right") - 1
        return np.concatenate([first, row[range_of]])

    def finish(self) -> list[int]:
        """Set the summary columns of the rows; return the rows that are not sorted by start."""
        event_rows = self._event_rows
        event_rows.block_start = event_rows.start[event_rows.order[::BLOCK]]
        event_rows.longest = self._longest
        event_rows.overlapping = self._overlapping
        event_rows.time_bounds = (self._low, self._high) if len(event_rows.order) else (0, 0)
        _count_overlaps_once(event_rows, self._covered)
        event_rows.covered_ns = np.concatenate(([0], np.cumsum(self._covered)))
        return np.flatnonzero(self._unsorted).tolist()


def _count_overlaps_once(event_rows: EventRows, covered: IntArray) -> None:
    """Subtract overlaps from the blocks' sums; set the running maxima of overlapping rows."""
    event_rows.running_max_offset = np.zeros(len(event_rows), np.int64)
    event_rows.latest = np.zeros(len(covered), np.int64)
    running_max_ends = [np.empty(0, np.int64)]
    size = 0
    for row in np.flatnonzero(event_rows.overlapping).tolist():
        low, high = int(event_rows.first[row]), int(event_rows.first[row + 1])
        start, end = event_rows.between(low, high)
        running_max_end = np.maximum.accumulate(end)
        event_rows.running_max_offset[row] = size - low
        size += high - low
        running_max_ends.append(running_max_end)
        first, last = -(-low // BLOCK), high // BLOCK
        if first < last:
            whole = end[first * BLOCK - low : last * BLOCK - low].reshape(-1, BLOCK)
            event_rows.latest[first:last] = whole.max(axis=1)
        length = end - start
        start[1:] = np.maximum(start[1:], running_max_end[:-1])
        overlap = length - np.maximum(end - start, 0)
        np.subtract.at(covered, np.arange(low, high) // BLOCK, overlap)
    event_rows.running_max_end = np.concatenate(running_max_ends)
