"""One pass over all events where a sort would take too long: the longest, those of one name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.lookup import pieces

if TYPE_CHECKING:
    from epprof_nb.views.layout import Placement

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
        rows = np.flatnonzero(which)
        if not len(rows):
            return
        self.total += len(rows)
        lengths = np.maximum(length[rows], 0)
        if lengths.max() > self._length:
            at = lengths.argmax()
            self._longest, self._length = int(rows[at]) + first, int(lengths[at])
        rows += first
        if near is None:
            self._near.append(_short(rows))
        else:
            close = near[rows - first]
            self._near.append(_short(rows[close]))
            self._far.append(_short(rows[~close]))

    @property
    def rows(self) -> Ints:
        """All of them, ascending, or as many as are wanted.

        Those spread evenly are so in the order of the table, in which the rows of each stream
        ascend in time as a rule.
        """
        near, far = np.concatenate(self._near), np.concatenate(self._far)
        if self.total <= self._most:
            return np.sort(np.concatenate([near, far])).astype(np.int64)
        chosen = [np.array([self._longest])]
        left = self._most - 1
        for part in (near, far):
            others = part[part != self._longest]
            take = min(left, len(others))
            chosen.append(others[np.linspace(0, len(others) - 1, take).round().astype(np.int64)])
            left -= take
        return np.sort(np.concatenate(chosen)).astype(np.int64)


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
    for piece in pieces(len(codes)):
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
