"""Per-block summaries of event rows, so that a window query need not scan every event.

The summaries are level 1 of the mipmap; see `epprof_nb.views.timeline.mipmap`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb import _native
from epprof_nb.views.timeline.mipmap import BLOCK

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.views.timeline.rows import EventRows


def summarise(event_rows: EventRows) -> list[int]:
    """Set the summary columns of the rows; return the rows that are not sorted by start."""
    order = event_rows.order
    longest, covered = np.zeros((2, -(-len(order) // BLOCK)), np.int64)
    unsorted, overlapping = np.zeros((2, len(event_rows)), np.bool_)
    start, end = map(np.ascontiguousarray, (event_rows.start, event_rows.end))
    bounds = _native.summarise_rows(
        longest, covered, overlapping, unsorted, event_rows.first, order, start, end, BLOCK
    )
    event_rows.block_start = event_rows.start[order[::BLOCK]]
    event_rows.longest = longest
    event_rows.overlapping = overlapping
    event_rows.time_bounds = bounds if len(order) else (0, 0)
    _count_overlaps_once(event_rows, covered)
    event_rows.covered_ns = np.concatenate(([0], np.cumsum(covered)))
    return np.flatnonzero(unsorted).tolist()


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
