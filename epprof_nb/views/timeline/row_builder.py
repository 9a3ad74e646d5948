"""Sorts the events of a table into the rows of the timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb import _native
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.intervals import EARLIEST, LATEST, clip_times
from epprof_nb.arrays.small_codes import count_codes
from epprof_nb.views.timeline.block_summaries import summarise
from epprof_nb.views.timeline.rows import EventRows

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray


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
    order = np.empty(first[-1], np.int32)
    _native.order_rows(order, first[:-1].copy(), np.ascontiguousarray(code), code.itemsize)
    event_rows = EventRows(start_ns, end_ns, lane, row, first, order)
    unsorted = summarise(event_rows)
    if event_rows.time_bounds[0] < EARLIEST or event_rows.time_bounds[1] > LATEST:
        return build_rows(code, lane, row, *clip_times(start_ns, end_ns))
    for index in unsorted:
        within = slice(first[index], first[index + 1])
        rows = order[within]
        # Among events that start together, the longest comes first: it encloses the others.
        order[within] = rows[np.lexsort((-end_ns[rows], start_ns[rows]))]
    if unsorted:
        summarise(event_rows)
    return event_rows


def _first_positions(code: npt.NDArray[Any], count: int) -> IntArray:
    """Return the first position of each of `count` rows, and the number of events."""
    sizes = np.zeros(count, np.int64)
    for chunk in chunks(len(code)):
        sizes += count_codes(code[chunk], count)
    return np.concatenate(([0], np.cumsum(sizes)))
