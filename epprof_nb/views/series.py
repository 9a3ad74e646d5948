"""The events of a table put in order for drawing: by lane and row, each in order of its starts.

Ten million events must be ready within a second, so nothing of their number is made but one
permutation, four bytes an event; the rest is kept for blocks of `BLOCK` events. Passes go
through the columns in pieces that fit the cache.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Iterator

Ints = npt.NDArray[np.int64]
Positions = npt.NDArray[Any]

BLOCK = 16
"""Events of a block."""
_PIECE = 1 << 16
_FEW = 12
"""So few series are found one by one faster than by a sort."""
EARLIEST, LATEST = -(2**61), 2**61
"""Times are kept between these, 73 years from the start: int64 holds their differences."""


def times(start_ns: Ints, end_ns: Ints) -> tuple[Ints, Ints]:
    """Return starts and ends whose differences int64 holds; the same arrays as a rule.

    An overflown clock can be off by centuries: such times are moved to 73 years from the start.
    """
    if len(start_ns) and (
        min(start_ns.min(), end_ns.min()) < EARLIEST or max(start_ns.max(), end_ns.max()) > LATEST
    ):
        return np.clip(start_ns, EARLIEST, LATEST), np.clip(end_ns, EARLIEST, LATEST)
    return start_ns, end_ns


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
    covered
        int64, shape ``(blocks + 1,)``: running sum of the time that the events of the blocks
        cover; where events overlap, that counts once.
    opening, longest, latest
        int64, shape ``(blocks,)``: start of the first event of each block, greatest length and
        latest end of its events.
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
    covered: Ints = field(init=False)
    opening: Ints = field(init=False)
    longest: Ints = field(init=False)
    latest: Ints = field(init=False)

    def __len__(self) -> int:
        return len(self.lane)

    def starts(self, positions: Positions) -> Ints:
        """Start of the event at each position."""
        values: Ints = self.start[self.order[positions]]
        return values

    def ends(self, positions: Positions) -> Ints:
        """End of the event at each position."""
        rows = self.order[positions]
        values: Ints = np.maximum(self.end[rows], self.start[rows])
        return values

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
        Times as `times` gives them.
    """
    order, first = _grouped(code, len(lane))
    series = Series(start_ns, end_ns, lane, row, first, order)
    unsorted = _add_blocks(series)
    for s in unsorted:
        mine = slice(first[s], first[s + 1])
        rows = order[mine]
        # The longer first: what it holds comes after it.
        order[mine] = rows[np.lexsort((-end_ns[rows], start_ns[rows]))]
    if unsorted:
        _add_blocks(series)
    return series


def _grouped(code: npt.NDArray[Any], count: int) -> tuple[Positions, Ints]:
    """Return the events by series, in the table's order, and where each series begins."""
    dtype = np.int32 if len(code) < 2**31 else np.int64
    sizes = np.zeros(count + 1, np.int64)
    for low in range(0, len(code), _PIECE):
        sizes += np.bincount(code[low : low + _PIECE], minlength=count + 1)
    first = np.concatenate(([0], np.cumsum(sizes)))
    if (sizes == len(code)).any():
        order = np.arange(len(code) if sizes[-1] == 0 else 0, dtype=dtype)
        return order, first[: count + 1]
    order = np.empty(len(code), dtype)
    free = first[:-1].copy()
    if count < _FEW:
        for low in range(0, len(code), _PIECE):
            piece = code[low : low + _PIECE]
            for number in range(count):
                rows = np.flatnonzero(piece == number)
                begin = free[number]
                free[number] += len(rows)
                np.add(rows, low, out=order[begin : free[number]], casting="same_kind")
        return order[: first[count]], first[: count + 1]
    steps = np.arange(_PIECE)
    for low in range(0, len(code), _PIECE):
        piece = code[low : low + _PIECE]
        rows = np.argsort(piece, kind="stable")
        found = np.bincount(piece, minlength=count + 1)
        shift = free - (np.cumsum(found) - found)
        order[steps[: len(piece)] + shift[piece[rows]]] = rows + low
        free += found
    return order[: first[count]], first[: count + 1]


def _pieces(series: Series) -> Iterator[tuple[int, int, npt.NDArray[np.bool_]]]:
    """Stretches of positions, with whether each position has one before it in its series."""
    total = len(series.order)
    for low in range(0, total, _PIECE):
        high = min(low + _PIECE, total)
        begins = series.first[:-1]
        begins = begins[np.searchsorted(begins, low) : np.searchsorted(begins, high)]
        follows = np.ones(high - low, np.bool_)
        follows[begins - low] = False
        yield low, high, follows


def _add_blocks(series: Series) -> list[int]:
    """Fill in what is kept of the blocks; return the series that are not in order."""
    total = len(series.order)
    blocks = -(-total // BLOCK)
    series.opening, series.longest, series.latest, gains = np.zeros((4, blocks), np.int64)
    unsorted, overlapping = np.zeros((2, len(series)), np.bool_)
    started = ended = 0
    for low, high, follows in _pieces(series):
        start, end = _of(series, low, high)
        before = np.concatenate(([started], start[:-1])), np.concatenate(([ended], end[:-1]))
        started, ended = int(start[-1]), int(end[-1])
        for wrong, earlier in zip((unsorted, overlapping), before, strict=True):
            at = np.flatnonzero((start < earlier) & follows)
            if len(at):
                wrong[np.searchsorted(series.first, at + low, "right") - 1] = True
        edges = np.arange(0, high - low, BLOCK)
        here = slice(low // BLOCK, -(-high // BLOCK))
        series.opening[here] = start[edges]
        length = np.subtract(end, start, out=start)
        series.longest[here] = np.maximum.reduceat(length, edges)
        series.latest[here] = np.maximum.reduceat(end, edges)
        gains[here] = np.add.reduceat(length, edges)
    series.overlapping = overlapping
    _count_once(series, gains)
    series.covered = np.concatenate(([0], np.cumsum(gains)))
    return np.flatnonzero(unsorted).tolist()


def _count_once(series: Series, gains: Ints) -> None:
    """Take from the blocks' sums what overlaps; note how far the overlapping series reach."""
    series.reach_at = np.zeros(len(series), np.int64)
    reaches = [np.empty(0, np.int64)]
    size = 0
    for s in np.flatnonzero(series.overlapping).tolist():
        low, high = int(series.first[s]), int(series.first[s + 1])
        start, end = _of(series, low, high)
        reach = np.maximum.accumulate(end)
        series.reach_at[s] = size - low
        size += high - low
        reaches.append(reach)
        gain = end - start
        start[1:] = np.maximum(start[1:], reach[:-1])
        twice = gain - np.maximum(end - start, 0)
        np.subtract.at(gains, np.arange(low, high) // BLOCK, twice)
    series.reach = np.concatenate(reaches)


def _of(series: Series, low: int, high: int) -> tuple[Ints, Ints]:
    """Starts and ends at the positions from `low` up to `high`."""
    rows = series.order[low:high]
    start = series.start[rows]
    end = series.end[rows]
    return start, np.maximum(end, start, out=end)
