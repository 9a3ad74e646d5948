"""What is kept of the blocks of a series' events, so that a window need not look at each event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.chunks import concat_ranges

if TYPE_CHECKING:
    from epprof_nb.views.timeline.rows import Series

Ints = npt.NDArray[np.int64]

BLOCK = 16
"""Events of a block."""
_BEFORE, _AFTER = -(2**63), 2**63 - 1


class Blocks:
    """Fills in a series' blocks from stretches of its events, and notes what is out of order.

    Parameters
    ----------
    series
        The series; its order must be right by the time it is finished, and its length at once.
    """

    def __init__(self, series: Series) -> None:
        self._series = series
        blocks = -(-len(series.order) // BLOCK)
        self._longest, self._gains = np.zeros((2, blocks), np.int64)
        self._low, self._high = _AFTER, _BEFORE
        # Of each series, the event before those that come next.
        self._started, self._ended = np.full((2, len(series)), _BEFORE)
        self._unsorted, self._overlapping = np.zeros((2, len(series)), np.bool_)

    def add(self, which: Ints, at: Ints, cut: Ints, start: Ints, end: Ints) -> None:
        """Take in stretches of events; of one series they must come one after another.

        Parameters
        ----------
        which
            The series of each stretch, none twice.
        at
            The position of its first event.
        cut
            Where it begins in `start` and `end`; one more says where the last one ends.
        start, end
            Times of the events; `start` is overwritten.
        """
        self._low = min(self._low, int(start.min()))
        self._high = max(self._high, int(end.max()))
        self._look_at_order(which, cut, start, end)
        size = np.diff(cut)
        first = at // BLOCK
        count = (at + size - 1) // BLOCK - first + 1
        blocks = concat_ranges(first, count)
        edges = blocks * BLOCK - np.repeat(at - cut[:-1], count)
        edges[np.cumsum(count) - count] = cut[:-1]
        length = np.subtract(end, start, out=start)
        # A block may have begun in another stretch, of its series or of the one before.
        np.maximum.at(self._longest, blocks, np.maximum.reduceat(length, edges))
        np.add.at(self._gains, blocks, np.add.reduceat(length, edges))

    def _look_at_order(self, which: Ints, cut: Ints, start: Ints, end: Ints) -> None:
        # What starts before the one before it starts does before that one ends as well.
        met = self._found(which, cut, start, end, self._ended)
        self._overlapping[met] = True
        if len(met):
            self._unsorted[self._found(which, cut, start, start, self._started)] = True
        self._started[which] = start[cut[1:] - 1]

    @staticmethod
    def _found(which: Ints, cut: Ints, start: Ints, earlier: Ints, before: Ints) -> Ints:
        """Series in which an event starts below the `earlier` of the event before it."""
        begin = cut[:-1]
        late = start[1:] < earlier[:-1]
        late[begin[1:] - 1] = False
        first = which[start[begin] < before[which]]
        before[which] = earlier[cut[1:] - 1]
        if not late.any():
            return first
        found = np.searchsorted(cut, np.flatnonzero(late) + 1, "right") - 1
        return np.concatenate([first, which[found]])

    def finish(self) -> list[int]:
        """Hand the series its columns; return the series that are not in order."""
        series = self._series
        series.opening = series.start[series.order[::BLOCK]]
        series.longest = self._longest
        series.overlapping = self._overlapping
        series.span = (self._low, self._high) if len(series.order) else (0, 0)
        _count_once(series, self._gains)
        series.covered = np.concatenate(([0], np.cumsum(self._gains)))
        return np.flatnonzero(self._unsorted).tolist()


def _count_once(series: Series, gains: Ints) -> None:
    """Take from the blocks' sums what overlaps; note how far the overlapping series reach."""
    series.reach_at = np.zeros(len(series), np.int64)
    series.latest = np.zeros(len(gains), np.int64)
    reaches = [np.empty(0, np.int64)]
    size = 0
    for s in np.flatnonzero(series.overlapping).tolist():
        low, high = int(series.first[s]), int(series.first[s + 1])
        start, end = series.between(low, high)
        reach = np.maximum.accumulate(end)
        series.reach_at[s] = size - low
        size += high - low
        reaches.append(reach)
        first, last = -(-low // BLOCK), high // BLOCK
        if first < last:
            whole = end[first * BLOCK - low : last * BLOCK - low].reshape(-1, BLOCK)
            series.latest[first:last] = whole.max(axis=1)
        gain = end - start
        start[1:] = np.maximum(start[1:], reach[:-1])
        twice = gain - np.maximum(end - start, 0)
        np.subtract.at(gains, np.arange(low, high) // BLOCK, twice)
    series.reach = np.concatenate(reaches)
