"""One pass over all events where a sort would take too long: the longest, those of one name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.chunks import chunks

if TYPE_CHECKING:
    from epprof_nb.views.timeline.lanes import Placement

Ints = npt.NDArray[np.int64]
Positions = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


class Some:
    """Some of many rows that come piece by piece: the longest, and others evenly spread.

    Parameters
    ----------
    most
        How many are wanted.

    Attributes
    ----------
    total
        How many there are.
    """

    def __init__(self, most: int) -> None:
        self.total = 0
        self._most = most
        self._longest = self._length = -1
        self._near: list[Positions] = [np.empty(0, np.int64)]
        self._far: list[Positions] = [np.empty(0, np.int64)]

    def add(self, first: int, length: Ints, which: Mask, near: Mask | None = None) -> None:
        """Take in some of the rows from `first` on, given the lengths of all.

        Those that are `near` come before others; None for all.
        """
        if not len(which):
            return
        length = np.where(which, np.maximum(length, 0), -1)
        at = int(length.argmax())
        if length[at] > self._length:
            self._longest, self._length = at + first, int(length[at])
        parts = [(self._near, which)]
        if near is not None:
            parts = [(self._near, which & near), (self._far, which & ~near)]
        for found, mask in parts:
            rows = np.flatnonzero(mask) + first
            self.total += len(rows)
            found.append(_short(rows))

    @property
    def rows(self) -> Ints:
        """All of them, ascending, or as many as are wanted.

        Those spread evenly are so in the order of the table, in which the rows of each stream
        ascend in time as a rule.
        """
        if self.total <= self._most:
            return np.sort(np.concatenate(self._near + self._far)).astype(np.int64)
        chosen = [self._longest]
        for found in (self._near, self._far):
            chosen += _spread(found, self._longest, self._most - len(chosen))
        return np.sort(chosen)


def _spread(parts: list[Positions], without: int, most: int) -> list[int]:
    """Return rows at even steps through ascending parts, which are not put together for it."""
    ends = np.cumsum([len(part) for part in parts])
    begins = ends - [len(part) for part in parts]
    places = [int(np.searchsorted(part, without)) for part in parts]
    left_out = [
        int(begin) + place
        for part, begin, place in zip(parts, begins, places, strict=True)
        if place < len(part) and part[place] == without
    ]
    others = int(ends[-1]) - len(left_out)
    ranks = np.linspace(0, others - 1, min(most, others)).round().astype(np.int64)
    for place in left_out:
        ranks[ranks >= place] += 1
    within = np.searchsorted(ends, ranks, "right")
    return [int(parts[k][rank - begins[k]]) for k, rank in zip(within, ranks, strict=True)]


def _short(rows: Ints) -> Positions:
    return rows.astype(np.int32) if rows[-1:].max(initial=0) < 2**31 else rows


class Among(NamedTuple):
    """An event among others: its neighbours in time, its number from 1, and how many they are."""

    before: int | None
    after: int | None
    number: int
    total: int


def among(codes: npt.NDArray[Any], place: Placement, row: int) -> Among:
    """Find an event among the drawn ones of its name, in the order of their starts.

    Parameters
    ----------
    codes
        Code of each event's name.
    place
        Where the events are drawn.
    row
        The event.
    """
    start, series = place.series.start, place.series
    mine, drawn = start[row], len(series.order) == len(codes)
    before, after, number, total = None, None, 1, 0
    for piece in chunks(len(codes)):
        same = codes[piece] == codes[row]
        if not drawn:
            same &= place.code[piece] < len(series)
        rows = np.flatnonzero(same) + piece.start
        begin = start[rows]
        earlier = (begin < mine) | ((begin == mine) & (rows < row))
        total += len(rows)
        number += int(np.count_nonzero(earlier))
        # Of those that start together the first in the table comes first.
        at = rows[earlier]
        if len(at):
            last = at[begin[earlier] == begin[earlier].max()][-1]
            before = last if before is None or start[last] >= start[before] else before
        at = rows[~earlier & (rows != row)]
        if len(at):
            first = at[np.argmin(start[at])]
            after = first if after is None or start[first] < start[after] else after
    return Among(
        None if before is None else int(before), None if after is None else int(after),
        number, total,
    )  # fmt: skip
