"""TimeChunks: the rows of a table within a time range, without a scan of the whole table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.chunks import chunks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table


class TimeChunks:
    """Row chunks of a table with their time bounds.

    Rows are roughly in time order, so a chunk covers a short interval.

    Parameters
    ----------
    table
        A table with ``start_ns`` and ``end_ns``.

    Attributes
    ----------
    chunks
        The rows of each chunk, a list of slices.
    """

    def __init__(self, table: Table) -> None:
        self._start, self._end = table["start_ns"], table["end_ns"]
        self.chunks = list(chunks(len(table)))
        bounds = [self._bounds(chunk) for chunk in self.chunks]
        bounds_array = np.array(bounds, np.int64).reshape(-1, 3)
        self._first_start, self._last_start, self._last_end = bounds_array.T

    def _bounds(self, chunk: slice) -> tuple[int, int, int]:
        start = self._start[chunk]
        last = int(start.max())
        return int(start.min()), last, max(last, int(self._end[chunk].max()))

    def fully_inside(self, start_ns: int, end_ns: int) -> BoolArray:
        """Return which chunks lie entirely in [start_ns, end_ns).

        The result is a bool array, one value per chunk.
        """
        inside: BoolArray = (
            (self._first_start >= start_ns)
            & (self._last_start < end_ns)
            & (self._last_end <= end_ns)
        )
        return inside

    def partial_rows(self, start_ns: int, end_ns: int) -> Iterator[IntArray]:
        """Yield the rows that overlap [start_ns, end_ns), for each chunk not `fully_inside`."""
        overlaps = (self._first_start < end_ns) & (self._last_end >= start_ns)
        overlaps &= ~self.fully_inside(start_ns, end_ns)
        for number in np.flatnonzero(overlaps).tolist():
            chunk = self.chunks[number]
            start, end = self._start[chunk], self._end[chunk]
            inside = (start < end_ns) & ((end > start_ns) | (start >= start_ns))
            yield np.flatnonzero(inside) + chunk.start

    def overlap_mask(self, start_ns: int, end_ns: int) -> BoolArray:
        """Return which rows overlap [start_ns, end_ns).

        An event without a duration counts if its start lies in the range.
        """
        mask = np.zeros(len(self._start), np.bool_)
        for number in np.flatnonzero(self.fully_inside(start_ns, end_ns)).tolist():
            mask[self.chunks[number]] = True
        for rows in self.partial_rows(start_ns, end_ns):
            mask[rows] = True
        return mask
