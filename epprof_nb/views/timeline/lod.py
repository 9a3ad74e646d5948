"""Level of detail: the rectangles of a window, no more than its pixels can show.

Where a series has more events in the window than fit, the window is cut into bins. The events
that start in one bin become one rectangle, which knows how many they are, how much of it they
cover and which is the longest; an event as long as a bin stays by itself (see
`epprof_nb.views.timeline.bins`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.chunks import chunks, concat_ranges
from epprof_nb.views.timeline.bins import Bins, Groups, binned
from epprof_nb.views.timeline.mipmap import BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.views.timeline.rows import Series

Ints = npt.NDArray[np.int64]
_NONE: Ints = np.empty(0, np.int64)
_PROBES = 16


class Rects(NamedTuple):
    """Rectangles in the order of their positions; all int64, shape ``(rectangles,)``.

    Attributes
    ----------
    series
        The series each lies in.
    begin
        Position of its first event.
    members
        Number of its events, which follow each other.
    event
        Position of the longest of them.
    start, dur
        From the start of the first to the end of the last, ns.
    cover
        Time within that its events cover, as far as no event before them does, ns.
    """

    series: Ints
    begin: Ints
    members: Ints
    event: Ints
    start: Ints
    dur: Ints
    cover: Ints


def reaching(series: Series, start_ns: int, end_ns: int) -> tuple[Ints, Ints]:
    """Return the positions, first and last + 1, that each series has in a window.

    An event that ends where the window starts, or starts where it ends, is in it. Where events
    overlap, some that ended before may be among them.
    """
    low, high = series.first[:-1], series.first[1:]
    begin = _at(series, lambda at, _: series.ends(at), low, high, start_ns)
    lapping = np.flatnonzero(series.overlapping)
    if len(lapping):

        def reach(at: Ints, which: Ints) -> Ints:
            latest: Ints = series.reach[series.reach_at[lapping[which]] + at]
            return latest

        target = np.full(len(lapping), start_ns)
        begin[lapping] = _search(reach, low[lapping], high[lapping], target)
    return begin, _at(series, lambda at, _: series.starts(at), begin, high, end_ns + 1)


def resolution(counts: Ints, bins: npt.NDArray[np.float64], most: int) -> Ints:
    """Return how many bins each series gets, so that there are at most `most` rectangles.

    Parameters
    ----------
    counts
        Events of each series.
    bins
        Bins that each should have, float64.
    most
        Rectangles of all series together at most; each series has one bin at least.
    """
    low, high = 0.0, 1.0
    if _rectangles(counts, bins) <= most:
        low = 1.0
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        if _rectangles(counts, bins * middle) <= most:
            low = middle
        else:
            high = middle
        if high < 1e-5:
            break
    return np.maximum(bins * low, 1).astype(np.int64)


def _rectangles(counts: Ints, bins: npt.NDArray[np.float64]) -> int:
    return int(np.minimum(counts, 2 * np.maximum(bins, 1)).sum())


def window(
    series: Series,
    start_ns: int,
    end_ns: int,
    bins: Ints,
    *,
    keep: Ints = _NONE,
    within: tuple[Ints, Ints] | None = None,
) -> Rects:
    """Return the rectangles of a window.

    Parameters
    ----------
    series
        The events.
    start_ns, end_ns
        The window.
    bins
        int64, shape ``(series,)``: how many bins the window has for each series. A series with
        at most twice as many events is sent as it is.
    keep
        Positions of events that stay by themselves, ascending.
    within
        What `reaching` returned for the window, where it is known.
    """
    low, high = reaching(series, start_ns, end_ns) if within is None else within
    many = high - low > 2 * bins
    parts = [_each(series, np.where(many, high, low), high)]
    for s in np.flatnonzero(many).tolist():
        width = (end_ns - start_ns) / bins[s]
        times = np.ceil(start_ns + np.arange(bins[s]) * width).astype(np.int64)
        stretch = int(low[s]), int(high[s])
        mine = keep[slice(*np.searchsorted(keep, stretch))]
        found = binned(series, s, stretch, Bins(times, width), mine)
        parts.append(_rects(np.full(len(found.begin), s), found))
    if len(parts) == 1:
        return parts[0]
    joined = [np.concatenate(c) for c in zip(*parts, strict=True)]
    if len(parts[0].begin):
        order = np.argsort(joined[1], kind="stable")
        joined = [column[order] for column in joined]
    return Rects(*joined)


def _each(series: Series, low: Ints, high: Ints) -> Rects:
    """Return every event of the stretches [low, high), one for each series."""
    size = np.maximum(high - low, 0)
    at, which = concat_ranges(low, size), np.repeat(np.arange(len(low)), size)
    start, latest = series.starts(at), series.ends(at)
    cover = latest - start
    lapping = np.flatnonzero(series.overlapping[which])
    if len(lapping):
        cover[lapping] = series.gain(at[lapping], which[lapping])
    return _rects(which, Groups(at, at + 1, at, start, latest, cover))


def _rects(which: Ints, found: Groups) -> Rects:
    begin, end, event, start, latest, cover = found
    dur = latest - start
    return Rects(which, begin, end - begin, event, start, dur, np.clip(cover, 0, dur))


def positions(series: Series, marked: npt.NDArray[np.bool_]) -> Ints:
    """Positions of the events whose rows are marked, ascending."""
    found = [
        np.flatnonzero(marked[series.order[piece]]) + piece.start
        for piece in chunks(len(series.order))
    ]
    return np.concatenate(found) if found else _NONE


def holding(rects: Rects, at: Ints) -> npt.NDArray[np.bool_]:
    """Which rectangles hold any of the positions `at`, which must ascend."""
    first = np.searchsorted(at, rects.begin)
    found: npt.NDArray[np.bool_] = np.searchsorted(at, rects.begin + rects.members) > first
    return found


def _at(
    series: Series, value: Callable[[Ints, Ints], Ints], low: Ints, high: Ints, time: int
) -> Ints:
    """First position of each range [low, high) whose start, or end, is not before a time."""
    target = np.full(len(low), time)
    first, last = -(-low // BLOCK), -(-high // BLOCK)
    # Nothing in the blocks before the one that the time falls in reaches so far.
    block = _search(lambda at, _: series.opening[at], first, last, target)
    begin, end = np.maximum((block - 1) * BLOCK, low), np.minimum(block * BLOCK, high)
    return _search(value, begin, end, target)


def _search(value: Callable[[Ints, Ints], Ints], low: Ints, high: Ints, target: Ints) -> Ints:
    """First position of each range [low, high) whose value is not below its target.

    ``value(positions, ranges)`` gives the values at positions of the ranges of these numbers.
    """
    low, high = low.copy(), high.copy()
    # Many probes a step rather than one: steps cost more than probes.
    steps = np.arange(_PROBES)
    while len(active := np.flatnonzero(low < high)):
        begin, end = low[active], high[active]
        probes = begin[:, None] + (end - begin)[:, None] * steps // _PROBES
        values = value(probes.reshape(-1), np.repeat(active, _PROBES)).reshape(probes.shape)
        below = np.count_nonzero(values < target[active, None], axis=1)
        first = np.arange(len(active))
        low[active] = np.where(below > 0, probes[first, below - 1] + 1, begin)
        high[active] = np.where(below < _PROBES, probes[first, np.minimum(below, _PROBES - 1)], end)
    return low
