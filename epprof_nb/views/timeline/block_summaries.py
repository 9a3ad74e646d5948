"""What is kept of the blocks of a row's events, so that a window need not look at each event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.groups import ragged

if TYPE_CHECKING:
    from epprof_nb.views.timeline.rows import EventRows

Ints = npt.NDArray[np.int64]

BLOCK = 16
"""Events of a block."""
_BEFORE, _AFTER = -(2**63), 2**63 - 1


class Blocks:
    """Fills in a row's blocks from stretches of its events, and notes what is out of order.

    Parameters
    ----------
    event_rows
        The rows; `order` has its length from the start and its values by `finish`.
    """

    def __init__(self, event_rows: EventRows) -> None:
        self._event_rows = event_rows
        blocks = -(-len(event_rows.order) // BLOCK)
        self._longest, self._gains = np.zeros((2, blocks), np.int64)
        self._low, self._high = _AFTER, _BEFORE
        # Of each row, the event before those that come next.
        self._started, self._ended = np.full((2, len(event_rows)), _BEFORE)
        self._unsorted, self._overlapping = np.zeros((2, len(event_rows)), np.bool_)

    def add(self, which: Ints, at: Ints, cut: Ints, start: Ints, end: Ints) -> None:
        """Take in stretches of events; of one row they must come one after another.

        Parameters
        ----------
        which
            The row of each stretch, none twice.
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
        blocks = ragged(first, count)
        edges = blocks * BLOCK - np.repeat(at - cut[:-1], count)
        edges[np.cumsum(count) - count] = cut[:-1]
        length = np.subtract(end, start, out=start)
        # A block may have begun in another stretch, of its row or of the one before.
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
        """EventRows in which an event starts below the `earlier` of the event before it."""
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
        """Hand the rows their columns; return the rows that are not in order."""
        event_rows = self._event_rows
        event_rows.block_start = event_rows.start[event_rows.order[::BLOCK]]
        event_rows.longest = self._longest
        event_rows.overlapping = self._overlapping
        event_rows.time_bounds = (self._low, self._high) if len(event_rows.order) else (0, 0)
        _count_once(event_rows, self._gains)
        event_rows.covered_ns = np.concatenate(([0], np.cumsum(self._gains)))
        return np.flatnonzero(self._unsorted).tolist()


def _count_once(event_rows: EventRows, gains: Ints) -> None:
    """Take from the blocks' sums what overlaps; note how far the overlapping row reach."""
    event_rows.running_max_offset = np.zeros(len(event_rows), np.int64)
    event_rows.latest = np.zeros(len(gains), np.int64)
    reaches = [np.empty(0, np.int64)]
    size = 0
    for s in np.flatnonzero(event_rows.overlapping).tolist():
        low, high = int(event_rows.first[s]), int(event_rows.first[s + 1])
        start, end = event_rows.between(low, high)
        reach = np.maximum.accumulate(end)
        event_rows.running_max_offset[s] = size - low
        size += high - low
        reaches.append(reach)
        first, last = -(-low // BLOCK), high // BLOCK
        if first < last:
            whole = end[first * BLOCK - low : last * BLOCK - low].reshape(-1, BLOCK)
            event_rows.latest[first:last] = whole.max(axis=1)
        gain = end - start
        start[1:] = np.maximum(start[1:], reach[:-1])
        twice = gain - np.maximum(end - start, 0)
        np.subtract.at(gains, np.arange(low, high) // BLOCK, twice)
    event_rows.running_max_end = np.concatenate(reaches)
