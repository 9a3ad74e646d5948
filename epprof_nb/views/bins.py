"""The events of one series by bins of time: those that start in one bin become one rectangle.

What is dense is taken by runs of blocks, what is not by single events: so a window costs what its
bins and its blocks cost, and no event is looked at that lies deep within a rectangle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from epprof_nb.views.blocks import BLOCK

if TYPE_CHECKING:
    from epprof_nb.views.series import Series

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_NONE: Ints = np.empty(0, np.int64)
_TIGHT = 0.5
"""Blocks at most so many bins long stay whole: their rectangle may end so much later."""
_SEVERAL = 4
"""Of overlapping events, so many a bin are looked at one by one for being long."""


class Bins(NamedTuple):
    """Where the bins begin, int64 ns, ascending, and how long each is.

    What starts before the first belongs to it.
    """

    times: Ints
    width: float


class Groups(NamedTuple):
    """Stretches of positions, each a rectangle: int64, shape ``(groups,)``.

    ``event`` is the position of the longest, ``start`` that of the first in ns; ``latest`` is the
    latest end, and ``cover`` the time that they cover and none before them does.
    """

    begin: Ints
    end: Ints
    event: Ints
    start: Ints
    latest: Ints
    cover: Ints


class _Elements(NamedTuple):
    """A stretch of a series as runs of blocks and single events, in order.

    Attributes
    ----------
    at
        Position of the first event of each.
    run
        Position among the runs; -1 for a single event.
    start, longest, latest, gain
        Start of the first event, greatest length, latest end, and time covered, ns. Only where
        events overlap there is a ``latest``.
    holder
        The block with the longest event of each run.
    """

    at: Ints
    run: Ints
    start: Ints
    longest: Ints
    latest: Ints
    gain: Ints
    holder: Ints


def binned(series: Series, which: int, stretch: tuple[int, int], bins: Bins, keep: Ints) -> Groups:
    """Return the rectangles of some events of one series.

    Parameters
    ----------
    series, which
        The events, and the number of the series.
    stretch
        First position and last + 1; at least one event.
    bins
        The bins. An event as long as one stays by itself.
    keep
        Positions of events that stay by themselves, ascending, within the stretch.
    """
    found = _elements(series, which, stretch, bins, keep)
    edge = np.zeros(len(found.at) + 1, np.bool_)
    edge[0] = True
    edge[np.searchsorted(found.start, bins.times)] = True
    kept = np.searchsorted(found.at, keep)
    edge[kept] = edge[kept + 1] = True
    first = np.flatnonzero(edge[:-1])
    most, top = _tops(found.longest, first)
    wide = top[(most >= bins.width) & (found.run[top] < 0)]
    if len(wide):
        edge[wide] = edge[wide + 1] = True
        first = np.flatnonzero(edge[:-1])
        most, top = _tops(found.longest, first)
    begin = found.at[first]
    end = np.append(begin[1:], stretch[1])
    event = found.at[top]
    in_run = np.flatnonzero(found.run[top] >= 0)
    if len(in_run):
        inside = found.holder[found.run[top[in_run]], None] * BLOCK + np.arange(BLOCK)
        length = series.ends(inside) - series.starts(inside)
        event[in_run] = inside[np.arange(len(inside)), length.argmax(axis=1)]
    if series.overlapping[which]:
        latest = np.maximum.reduceat(found.latest, first)
    else:
        latest = series.ends(end - 1)
    cover = np.add.reduceat(found.gain, first)
    return Groups(begin, end, event, found.start[first], latest, cover)


def _elements(
    series: Series, which: int, stretch: tuple[int, int], bins: Bins, keep: Ints
) -> _Elements:
    low, high = stretch
    lapping = bool(series.overlapping[which])
    first, last = -(-low // BLOCK), high // BLOCK
    if last - first <= len(bins.times):
        # Hardly a block would be short enough to stay whole.
        at = np.arange(low, high)
        start, longest, latest, gain = _single(series, which, at, lapping=lapping)
        return _Elements(at, np.full(len(at), -1), start, longest, latest, gain, _NONE)
    opening, most = series.opening[first:last], series.longest[first:last]
    begins = np.searchsorted(opening, bins.times)
    loose = np.ones(last - first, np.bool_)
    np.greater(np.diff(opening), _TIGHT * bins.width, out=loose[:-1])
    if lapping:
        loose |= _long(most, begins, bins.width)
    kept = keep // BLOCK - first
    loose[kept[(kept >= 0) & (kept < len(loose))]] = True
    edge = np.zeros(len(loose) + 1, np.bool_)
    edge[0] = True
    edge[begins] = True
    edge[:-1] |= loose
    edge[1:] |= loose
    runs = np.flatnonzero(edge[:-1])
    is_run = ~loose[runs]
    sizes = np.where(is_run, 1, BLOCK)
    shift = np.cumsum(sizes) - sizes
    inner = np.repeat((runs + first) * BLOCK - shift, sizes)
    inner += np.arange(len(inner))
    at = np.concatenate([np.arange(low, first * BLOCK), inner, np.arange(last * BLOCK, high)])
    places = shift[is_run] + (first * BLOCK - low)
    run = np.full(len(at), -1)
    run[places] = np.arange(len(places))
    start, longest, latest, gain = columns = np.empty((4, len(at)), np.int64)
    single = np.flatnonzero(run < 0)
    each = _single(series, which, at[single], lapping=lapping)
    for column, values in zip(columns, each, strict=True):
        if len(values):
            column[single] = values
    length, holder = _tops(most, runs)
    start[places], longest[places] = opening[runs[is_run]], length[is_run]
    gain[places] = np.diff(series.covered[first + np.append(runs, len(loose))])[is_run]
    if lapping:
        latest[places] = np.maximum.reduceat(series.latest[first:last], runs)[is_run]
    return _Elements(at, run, start, longest, latest, gain, first + holder[is_run])


def _single(
    series: Series, which: int, at: Ints, *, lapping: bool
) -> tuple[Ints, Ints, Ints, Ints]:
    """Start, length, end where they overlap, and time covered of single events."""
    rows = series.order[at[0] : at[-1] + 1] if _follow(at) else series.order[at]
    start, end = series.start[rows], series.end[rows]
    length = np.maximum(end - start, 0)
    if not lapping:
        return start, length, _NONE, length
    return start, length, start + length, series.gain(at, np.full(len(at), which))


def _follow(at: Ints) -> bool:
    return len(at) > 0 and int(at[-1] - at[0]) == len(at) - 1


def _long(most: Ints, begins: Ints, width: float) -> Bools:
    """Which blocks to look into for events as long as a bin; few, however many there are."""
    long: Bools = most >= width
    if np.count_nonzero(long) > _SEVERAL * len(begins):
        _, top = _tops(most, np.unique(np.append(begins[begins < len(most)], 0)))
        only = np.zeros(len(long), np.bool_)
        only[top] = long[top]
        return only
    return long


def _tops(values: Ints, first: Ints) -> tuple[Ints, Ints]:
    """Greatest value of each stretch that begins at `first`, and where it is first."""
    most = np.maximum.reduceat(values, first)
    sizes = np.diff(first, append=len(values))
    at = np.flatnonzero(values == np.repeat(most, sizes))
    stretch = np.searchsorted(first, at, "right") - 1
    top = np.empty(len(first), np.int64)
    top[stretch[::-1]] = at[::-1]
    return most, top
