"""Which rows of a table lie in a stretch of time, without looking at all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.chunks import chunks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table


class Moments:
    """The pieces of a table by time; as tables are recorded, each holds a short stretch of it.

    Parameters
    ----------
    table
        A table with ``start_ns`` and ``end_ns``.

    Attributes
    ----------
    pieces
        The rows of each piece.
    """

    def __init__(self, table: Table) -> None:
        self._start, self._end = table["start_ns"], table["end_ns"]
        self.pieces = list(chunks(len(table)))
        bounds = [self._bounds(piece) for piece in self.pieces]
        self._first, self._last, self._latest = np.array(bounds, np.int64).reshape(-1, 3).T

    def _bounds(self, piece: slice) -> tuple[int, int, int]:
        start = self._start[piece]
        last = int(start.max())
        return int(start.min()), last, max(last, int(self._end[piece].max()))

    def whole(self, start_ns: int, end_ns: int) -> BoolArray:
        """Return the pieces all of whose events lie in [start_ns, end_ns) with all of their time.

        Bool, shape ``(pieces,)``.
        """
        found: BoolArray = (
            (self._first >= start_ns) & (self._last < end_ns) & (self._latest <= end_ns)
        )
        return found

    def parts(self, start_ns: int, end_ns: int) -> Iterator[IntArray]:
        """Yield the rows that lie in [start_ns, end_ns), of each piece that is not `whole`."""
        touched = (self._first < end_ns) & (self._latest >= start_ns)
        for number in np.flatnonzero(touched & ~self.whole(start_ns, end_ns)).tolist():
            piece = self.pieces[number]
            start, end = self._start[piece], self._end[piece]
            inside = (start < end_ns) & ((end > start_ns) | (start >= start_ns))
            yield np.flatnonzero(inside) + piece.start

    def marked(self, start_ns: int, end_ns: int) -> BoolArray:
        """Return which rows have a part in [start_ns, end_ns).

        An event without length counts where it stands.
        """
        found = np.zeros(len(self._start), np.bool_)
        for number in np.flatnonzero(self.whole(start_ns, end_ns)).tolist():
            found[self.pieces[number]] = True
        for rows in self.parts(start_ns, end_ns):
            found[rows] = True
        return found
