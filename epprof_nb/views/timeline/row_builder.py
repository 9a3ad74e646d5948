"""Sorts the events of a table into the rows of the timeline.

It passes through the columns in chunks that fit the CPU cache, and builds rows and block summaries
in one pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.chunks import chunks, concat_ranges
from epprof_nb.arrays.intervals import EARLIEST, LATEST, clip_times
from epprof_nb.arrays.small_codes import count_codes
from epprof_nb.views.timeline.block_summaries import BlockSummaries
from epprof_nb.views.timeline.rows import EventRows

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray

_CHUNK = 1 << 15
"""Events per chunk."""
_FEW_ROWS = 12
"""Up to this many rows, one scan per row is faster than a sort."""


def build_rows(
    code: npt.NDArray[Any], lane: IntArray, row: IntArray, start_ns: IntArray, end_ns: IntArray
) -> EventRows:
    """Sort events into rows.

    Parameters
    ----------
    code
        Index of each event's row; ``len(lane)`` for an event that is not drawn. A small unsigned
        dtype sorts fastest.
    lane, row
        Lane of each row, and its number within the lane.
    start_ns, end_ns
        Times, clipped by `times` if the clock overflowed.
    """
    first = _first_positions(code, len(lane))
    order = np.empty(first[-1], np.int32 if len(code) < 2**31 else np.int64)
    event_rows = EventRows(start_ns, end_ns, lane, row, first, order)
    unsorted = _fill(event_rows, code)
    if event_rows.time_bounds[0] < EARLIEST or event_rows.time_bounds[1] > LATEST:
        return build_rows(code, lane, row, *clip_times(start_ns, end_ns))
    for index in unsorted:
        within = slice(first[index], first[index + 1])
        rows = order[within]
        # Among events that start together, the longest comes first: it encloses the others.
        order[within] = rows[np.lexsort((-end_ns[rows], start_ns[rows]))]
    if unsorted:
        _summarise(event_rows)
    return event_rows


def _first_positions(code: npt.NDArray[Any], count: int) -> IntArray:
    """Return the first position of each of `count` rows, and the number of events."""
    sizes = np.zeros(count, np.int64)
    for chunk in chunks(len(code), _CHUNK):
        sizes += count_codes(code[chunk], count)
    return np.concatenate(([0], np.cumsum(sizes)))


def _fill(event_rows: EventRows, code: npt.NDArray[Any]) -> list[int]:
    """Fill `order` and the block summaries; return the rows that are not sorted by start."""
    blocks = BlockSummaries(event_rows)
    free = event_rows.first.copy()
    starts, ends = np.empty((2, min(len(code), _CHUNK)), np.int64)
    for chunk in chunks(len(code), _CHUNK):
        rows, row_index, cut = _grouped(code[chunk], len(event_rows))
        if not len(row_index):
            continue
        at, size = free[row_index], np.diff(cut)
        free[row_index] += size
        start, end = starts[: len(rows)], ends[: len(rows)]
        # All rows are in range; mode="clip" only avoids a buffered copy.
        np.take(event_rows.start[chunk], rows, out=start, mode="clip")
        np.take(event_rows.end[chunk], rows, out=end, mode="clip")
        rows += chunk.start
        if len(row_index) < _FEW_ROWS:
            for to, low, high in zip(at.tolist(), cut[:-1].tolist(), cut[1:].tolist(), strict=True):
                event_rows.order[to : to + high - low] = rows[low:high]
        else:
            event_rows.order[concat_ranges(at, size)] = rows
        blocks.add(row_index, at, cut, start, np.maximum(end, start, out=end))
    return blocks.finish()


def _grouped(code: npt.NDArray[Any], count: int) -> tuple[IntArray, IntArray, IntArray]:
    """Group the events of a chunk by row, each group in table order.

    Returns
    -------
    rows
        Table rows of the drawn events, group by group.
    row_index
        Rows that occur, ascending.
    cut
        Offset of each group in `rows`, and the end of the last one.
    """
    if 0 < count < _FEW_ROWS:
        groups = [np.flatnonzero(code == number) for number in range(count)]
        rows, sizes = np.concatenate(groups), np.array([len(rows) for rows in groups])
    else:
        rows, sizes = np.argsort(code, kind="stable"), count_codes(code, count)
    row_index = np.flatnonzero(sizes)
    cut = np.concatenate(([0], np.cumsum(sizes[row_index])))
    return rows[: cut[-1]], row_index, cut


def _summarise(event_rows: EventRows) -> None:
    """Compute the block summaries again, from the sorted events."""
    blocks = BlockSummaries(event_rows)
    for chunk in chunks(len(event_rows.order), _CHUNK):
        begin, end = np.clip((event_rows.first[:-1], event_rows.first[1:]), chunk.start, chunk.stop)
        row_index = np.flatnonzero(begin < end)
        cut = np.append(begin[row_index], chunk.stop) - chunk.start
        times_of = event_rows.between(chunk.start, chunk.stop)
        blocks.add(row_index, begin[row_index], cut, *times_of)
    blocks.finish()
