"""Rows for events that overlap: each in the first row where it meets none that began before."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

_FEW = 64
"""So few clusters are gone through one by one: an array operation costs as much."""


def stack(start: Ints, end: Ints, least: Ints, rows: int) -> Ints:
    """Return the row of each event.

    Parameters
    ----------
    start, end
        int64 ns; no event ends before it starts.
    least
        The first row that each event may take.
    rows
        How many rows there are. What finds no room shares the last one.

    Returns
    -------
    numbers
        int64, from 0. Events of one row, the last one apart, do not overlap.
    """
    numbers = np.full(len(start), rows - 1, np.int64)
    left = np.lexsort((-end, start))
    for row in range(rows - 1):
        able = least[left] <= row
        candidates = left[able]
        taken = first_fit(start[candidates], end[candidates])
        numbers[candidates[taken]] = row
        keep = np.ones(len(left), np.bool_)
        keep[np.flatnonzero(able)[taken]] = False
        left = left[keep]
        if not len(left):
            break
    return numbers


def first_fit(start: Ints, end: Ints) -> npt.NDArray[np.bool_]:
    """Return which events are taken where each is that begins after the last taken one ended.

    Parameters
    ----------
    start, end
        int64, in order of the starts.
    """
    taken = np.zeros(len(start), np.bool_)
    if not len(start):
        return taken
    reach = np.maximum.accumulate(end)
    # What meets none before it is taken in any case, and opens a cluster.
    opens = np.flatnonzero(np.concatenate(([True], start[1:] >= reach[:-1])))
    close = np.append(opens[1:], len(start))
    taken[opens] = True
    at, until = opens[close - opens > 1], close[close - opens > 1]
    while len(at) > _FEW:
        at = np.maximum(np.searchsorted(start, end[at]), at + 1)
        at, until = at[at < until], until[at < until]
        taken[at] = True
    for first, stop in zip(at.tolist(), until.tolist(), strict=True):
        _follow(start[first:stop], end[first:stop], taken[first:stop])
    return taken


def _follow(start: Ints, end: Ints, taken: npt.NDArray[np.bool_]) -> None:
    starts, ends = start.tolist(), end.tolist()
    at = 0
    while at < len(starts):
        taken[at] = True
        at = max(bisect_left(starts, ends[at], at), at + 1)
