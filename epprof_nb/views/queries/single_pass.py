"""Single-pass queries over all events, for cases where sorting them would take too long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.chunks import chunks

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.views.timeline.lanes import EventLayout

Rows = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


class EvenSample:
    """Samples rows from chunks: the longest one, and others evenly spread.

    Parameters
    ----------
    size
        Maximum number of rows.

    Attributes
    ----------
    total
        Number of rows added.
    """

    def __init__(self, size: int) -> None:
        self.total = 0
        self._size = size
        self._longest = self._max_length = -1
        self._near: list[Rows] = [np.empty(0, np.int64)]
        self._far: list[Rows] = [np.empty(0, np.int64)]

    def add(self, first: int, length: IntArray, mask: Mask, is_near: Mask | None = None) -> None:
        """Add the rows of a chunk for which `mask` is True.

        Parameters
        ----------
        first
            First row of the chunk.
        length
            Duration of each row of the chunk.
        mask
            Whether to add each row.
        is_near
            Rows to prefer; None for all.
        """
        if not len(mask):
            return
        length = np.where(mask, np.maximum(length, 0), -1)
        at = int(length.argmax())
        if length[at] > self._max_length:
            self._longest, self._max_length = at + first, int(length[at])
        parts = [(self._near, mask)]
        if is_near is not None:
            parts = [(self._near, mask & is_near), (self._far, mask & ~is_near)]
        for kept, mask_of in parts:
            rows = np.flatnonzero(mask_of) + first
            self.total += len(rows)
            kept.append(_narrow(rows))

    @property
    def rows(self) -> IntArray:
        """The sampled rows, ascending.

        They are spread evenly in table order. Within a stream that is usually time order.
        """
        if self.total <= self._size:
            return np.sort(np.concatenate(self._near + self._far)).astype(np.int64)
        sample = [self._longest]
        for kept in (self._near, self._far):
            sample += _evenly_spaced(kept, self._longest, self._size - len(sample))
        return np.sort(sample)


def _evenly_spaced(chunks: list[Rows], excluded: int, size: int) -> list[int]:
    """Return evenly spaced values of ascending chunks, without concatenating them."""
    ends = np.cumsum([len(chunk) for chunk in chunks])
    begins = ends - [len(chunk) for chunk in chunks]
    offsets = [int(np.searchsorted(chunk, excluded)) for chunk in chunks]
    excluded_at = [
        int(begin) + offset
        for chunk, begin, offset in zip(chunks, begins, offsets, strict=True)
        if offset < len(chunk) and chunk[offset] == excluded
    ]
    others = int(ends[-1]) - len(excluded_at)
    ranks = np.linspace(0, others - 1, min(size, others)).round().astype(np.int64)
    for at in excluded_at:
        ranks[ranks >= at] += 1
    chunk_of = np.searchsorted(ends, ranks, "right")
    return [int(chunks[k][rank - begins[k]]) for k, rank in zip(chunk_of, ranks, strict=True)]


def _narrow(rows: IntArray) -> Rows:
    return rows.astype(np.int32) if rows[-1:].max(initial=0) < 2**31 else rows


class NameNeighbours(NamedTuple):
    """Neighbours of an event among the events of its name, its number from 1, and the count."""

    before: int | None
    after: int | None
    number: int
    total: int


def same_name_neighbours(codes: npt.NDArray[Any], layout: EventLayout, row: int) -> NameNeighbours:
    """Find the neighbours in time of an event among the drawn events of its name.

    Parameters
    ----------
    codes
        Name code of each event.
    layout
        Layout of the events.
    row
        The event.
    """
    start, event_rows = layout.event_rows.start, layout.event_rows
    time_ns, all_drawn = start[row], len(event_rows.order) == len(codes)
    before, after, number, total = None, None, 1, 0
    for chunk in chunks(len(codes)):
        is_same = codes[chunk] == codes[row]
        if not all_drawn:
            is_same &= layout.row_index[chunk] < len(event_rows)
        rows = np.flatnonzero(is_same) + chunk.start
        begin = start[rows]
        # Events that start together are in table order.
        is_earlier = (begin < time_ns) | ((begin == time_ns) & (rows < row))
        total += len(rows)
        number += int(np.count_nonzero(is_earlier))
        earlier = rows[is_earlier]
        if len(earlier):
            last = earlier[begin[is_earlier] == begin[is_earlier].max()][-1]
            before = last if before is None or start[last] >= start[before] else before
        later = rows[~is_earlier & (rows != row)]
        if len(later):
            first = later[np.argmin(start[later])]
            after = first if after is None or start[first] < start[after] else after
    return NameNeighbours(
        None if before is None else int(before), None if after is None else int(after),
        number, total,
    )  # fmt: skip
