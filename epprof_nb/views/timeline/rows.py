"""The events of a table put in order for drawing: by lane and row, each in order of its starts.

Ten million events must be ready within a second, so nothing of their number is made but one
permutation, four bytes an event; the rest is kept for blocks of `BLOCK` events. Passes go
through the columns in pieces that fit the cache.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.chunks import chunks, concat_ranges
from epprof_nb.arrays.intervals import EARLIEST, LATEST, clip_times
from epprof_nb.arrays.small_codes import count_codes
from epprof_nb.views.timeline.mip_levels import Level, levels
from epprof_nb.views.timeline.mipmap import BLOCK, Blocks

Ints = npt.NDArray[np.int64]
Positions = npt.NDArray[Any]

_UNKNOWN = 255
_PIECE = 1 << 15
_FEW = 12
"""So few series are found one by one faster than by a sort."""


@dataclass(slots=True)
class Series:
    """One table's events by series (a row of a lane), each series in order of the starts.

    A *position* counts events in that order; series ``s`` holds the positions from ``first[s]``
    up to ``first[s + 1]``.

    Attributes
    ----------
    start, end
        The table's columns, int64 ns; an event that ends before it starts has no length.
    lane, row
        int64, shape ``(series,)``.
    first
        int64, shape ``(series + 1,)``.
    order
        Row of the table at each position, int32 where that holds them.
    overlapping
        bool, shape ``(series,)``: whether an event of the series starts before an earlier one
        ends.
    reach, reach_at
        int64: the latest end among the events up to each position, of the overlapping series
        alone; that of position ``p`` of series ``s`` is ``reach[reach_at[s] + p]``.
    span
        The earliest start and the latest end; both 0 where there is no event.
    covered
        int64, shape ``(blocks + 1,)``: running sum of the time that the events of the blocks
        cover; where events overlap, that counts once.
    opening, longest
        int64, shape ``(blocks,)``: start of the first event of each block, greatest length of its
        events.
    latest
        int64, shape ``(blocks,)``: latest end of the events of each block that lies wholly in an
        overlapping series.
    """

    start: Ints
    end: Ints
    lane: Ints
    row: Ints
    first: Ints
    order: Positions
    overlapping: npt.NDArray[np.bool_] = field(init=False)
    reach: Ints = field(init=False)
    reach_at: Ints = field(init=False)
    span: tuple[int, int] = field(init=False)
    covered: Ints = field(init=False)
    opening: Ints = field(init=False)
    longest: Ints = field(init=False)
    latest: Ints = field(init=False)
    _levels: tuple[Level, ...] = field(init=False, default=())
    _holders: npt.NDArray[np.uint8] | None = field(init=False, default=None)

    def __len__(self) -> int:
        return len(self.lane)

    @property
    def levels(self) -> tuple[Level, ...]:
        """The blocks, and the blocks of blocks; see `epprof_nb.views.timeline.mip_levels`."""
        if not self._levels:
            self._levels = levels(self)
        return self._levels

    def starts(self, positions: Positions) -> Ints:
        """Start of the event at each position."""
        values: Ints = self.start[self.order[positions]]
        return values

    def ends(self, positions: Positions) -> Ints:
        """End of the event at each position."""
        rows = self.order[positions]
        values: Ints = np.maximum(self.end[rows], self.start[rows])
        return values

    def holders(self, blocks: Ints) -> Ints:
        """Position of the longest event of each block; noted, for the next time it is asked for."""
        if self._holders is None:
            self._holders = np.full(len(self.opening), _UNKNOWN, np.uint8)
        found = self._holders[blocks]
        new = np.flatnonzero(found == _UNKNOWN)
        if len(new):
            rows = self.order[blocks[new, None] * BLOCK + np.arange(BLOCK)]
            found[new] = (self.end[rows] - self.start[rows]).argmax(axis=1)
            self._holders[blocks[new]] = found[new]
        return blocks * BLOCK + found

    def between(self, low: int, high: int) -> tuple[Ints, Ints]:
        """Starts and ends at the positions from `low` up to `high`."""
        rows = self.order[low:high]
        start = self.start[rows]
        end = self.end[rows]
        return start, np.maximum(end, start, out=end)

    def gain(self, positions: Positions, series: Ints) -> Ints:
        """Time each event covers that none before it in its series did."""
        start, end = self.starts(positions), self.ends(positions)
        second = np.flatnonzero(self.overlapping[series] & (positions > self.first[series]))
        before = self.reach[self.reach_at[series[second]] + positions[second] - 1]
        start[second] = np.maximum(start[second], before)
        values: Ints = np.maximum(end - start, 0)
        return values


def put_in_order(
    code: npt.NDArray[Any], lane: Ints, row: Ints, start_ns: Ints, end_ns: Ints
) -> Series:
    """Sort events into their series.

    Parameters
    ----------
    code
        The number of each event's series; ``len(lane)`` for one that is not drawn. A short
        unsigned dtype sorts fastest.
    lane, row
        Lane and row of each series.
    start_ns, end_ns
        Times; of a clock that has overflown they are moved as `clip_times` says.
    """
    first = _firsts(code, len(lane))
    order = np.empty(first[-1], np.int32 if len(code) < 2**31 else np.int64)
    series = Series(start_ns, end_ns, lane, row, first, order)
    unsorted = _fill(series, code)
    if series.span[0] < EARLIEST or series.span[1] > LATEST:
        return put_in_order(code, lane, row, *clip_times(start_ns, end_ns))
    for s in unsorted:
        mine = slice(first[s], first[s + 1])
        rows = order[mine]
        # The longer first: what it holds comes after it.
        order[mine] = rows[np.lexsort((-end_ns[rows], start_ns[rows]))]
    if unsorted:
        _refill(series)
    return series


def _firsts(code: npt.NDArray[Any], count: int) -> Ints:
    """Return where each of `count` series begins, and where the last one ends."""
    sizes = np.zeros(count, np.int64)
    for piece in chunks(len(code), _PIECE):
        sizes += count_codes(code[piece], count)
    return np.concatenate(([0], np.cumsum(sizes)))


def _fill(series: Series, code: npt.NDArray[Any]) -> list[int]:
    """Put the events of each series after another; return the series that are not in order.

    What is kept of the blocks is found while a piece of the columns is in the cache.
    """
    blocks = Blocks(series)
    free = series.first.copy()
    starts, ends = np.empty((2, min(len(code), _PIECE)), np.int64)
    for piece in chunks(len(code), _PIECE):
        rows, which, cut = _grouped(code[piece], len(series))
        if not len(which):
            continue
        at, size = free[which], np.diff(cut)
        free[which] += size
        start, end = starts[: len(rows)], ends[: len(rows)]
        # All rows are in range: what says so saves NumPy a copy.
        np.take(series.start[piece], rows, out=start, mode="clip")
        np.take(series.end[piece], rows, out=end, mode="clip")
        rows += piece.start
        if len(which) < _FEW:
            for to, low, high in zip(at.tolist(), cut[:-1].tolist(), cut[1:].tolist(), strict=True):
                series.order[to : to + high - low] = rows[low:high]
        else:
            series.order[concat_ranges(at, size)] = rows
        blocks.add(which, at, cut, start, np.maximum(end, start, out=end))
    return blocks.finish()


def _grouped(code: npt.NDArray[Any], count: int) -> tuple[Ints, Ints, Ints]:
    """Put a piece's events together by series, each in the table's order.

    Returns
    -------
    rows
        The drawn events, those of a series after another.
    which
        The series that occur, ascending.
    cut
        Where each of them begins among `rows`, and where the last one ends.
    """
    if 0 < count < _FEW:
        found = [np.flatnonzero(code == number) for number in range(count)]
        rows, sizes = np.concatenate(found), np.array([len(rows) for rows in found])
    else:
        rows, sizes = np.argsort(code, kind="stable"), count_codes(code, count)
    which = np.flatnonzero(sizes)
    cut = np.concatenate(([0], np.cumsum(sizes[which])))
    return rows[: cut[-1]], which, cut


def _refill(series: Series) -> None:
    """Find once more what is kept of the blocks, of events that are in order by now."""
    blocks = Blocks(series)
    for piece in chunks(len(series.order), _PIECE):
        begin, end = np.clip((series.first[:-1], series.first[1:]), piece.start, piece.stop)
        which = np.flatnonzero(begin < end)
        cut = np.append(begin[which], piece.stop) - piece.start
        blocks.add(which, begin[which], cut, *series.between(piece.start, piece.stop))
    blocks.finish()
