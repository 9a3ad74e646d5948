"""Level of detail: the rectangles of a window, no more than its pixels can show.

Where a series has more events in the window than fit, the window is cut into bins. The events
that start in one bin become one rectangle, which knows how many they are, how much of it they
cover and which is the longest; an event as long as a bin stays by itself. All is found by searches
and differences of running sums: a window costs what its pixels cost, whatever it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.lookup import pieces
from epprof_nb.views.series import BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.views.series import Series

Ints = npt.NDArray[np.int64]
_NONE: Ints = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Rects:
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

    def reach(at: Ints, which: Ints) -> Ints:
        ends = series.ends(at)
        lapping = np.flatnonzero(series.overlapping[which])
        ends[lapping] = series.reach[series.reach_at[which[lapping]] + at[lapping]]
        return ends

    begin = _search(reach, low, high, np.full(len(low), start_ns))
    return begin, _search(_starts(series), begin, high, np.full(len(low), end_ns + 1))


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
        Positions of events that stay by themselves.
    within
        What `reaching` returned for the window, where it is known.
    """
    low, high = reaching(series, start_ns, end_ns) if within is None else within
    width = (end_ns - start_ns) / bins
    edges = [low, high]
    for s in np.flatnonzero(low < high).tolist():
        if high[s] - low[s] <= 2 * bins[s]:
            edges.append(np.arange(low[s], high[s]))
        else:
            times = np.ceil(start_ns + np.arange(bins[s]) * width[s]).astype(np.int64)
            edges.append(_edges(series, int(low[s]), int(high[s]), times))
    begin = np.unique(np.concatenate([*edges, keep, keep + 1]))
    begin, end = begin[:-1], begin[1:]
    # Between the series' stretches, and among what is kept, lies what is not in the window.
    which = np.searchsorted(high, begin, "right")
    inside = which < len(low)
    inside[inside] = begin[inside] >= low[which[inside]]
    begin, end, which = begin[inside], end[inside], which[inside]
    groups = _Groups(begin, end, _longest(series, begin, end), which)
    length = series.ends(groups.event) - series.starts(groups.event)
    wide = (end - begin > 1) & (length >= width[which])
    if wide.any():
        groups = _parted(series, groups, wide)
    begin, end, event, which = groups
    start = series.starts(begin)
    dur = _latest(series, begin, end, which) - start
    cover = np.clip(_cover(series, begin, end, which), 0, dur)
    return Rects(which, begin, end - begin, event, start, dur, cover)


class _Groups(NamedTuple):
    """Positions from ``begin`` up to ``end``, the longest event of each, and its series."""

    begin: Ints
    end: Ints
    event: Ints
    which: Ints


def _parted(series: Series, groups: _Groups, wide: npt.NDArray[np.bool_]) -> _Groups:
    """Let the longest event of the `wide` groups stand alone, between what is left of them."""
    begin, end, event, which = (column[wide] for column in groups)
    parts = [
        tuple(column[~wide] for column in groups),
        (event, event + 1, event, which),
    ]
    for first, last in ((begin, event), (event + 1, end)):
        some = first < last
        left, right = first[some], last[some]
        parts.append((left, right, _longest(series, left, right), which[some]))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0])
    return _Groups(*(column[order] for column in columns))


def positions(series: Series, marked: npt.NDArray[np.bool_]) -> Ints:
    """Positions of the events whose rows are marked, ascending."""
    found = [
        np.flatnonzero(marked[series.order[piece]]) + piece.start
        for piece in pieces(len(series.order))
    ]
    return np.concatenate(found) if found else _NONE


def holding(rects: Rects, at: Ints) -> npt.NDArray[np.bool_]:
    """Which rectangles hold any of the positions `at`, which must ascend."""
    first = np.searchsorted(at, rects.begin)
    found: npt.NDArray[np.bool_] = np.searchsorted(at, rects.begin + rects.members) > first
    return found


def _starts(series: Series) -> Callable[[Ints, Ints], Ints]:
    return lambda at, _: series.starts(at)


def _edges(series: Series, low: int, high: int, times: Ints) -> Ints:
    """First position, from `low` up to `high`, of an event that starts at each time or later."""
    first, last = -(-low // BLOCK), -(-high // BLOCK)
    block = first + np.searchsorted(series.opening[first:last], times)
    begin = np.maximum((block - 1) * BLOCK, low)
    return _search(_starts(series), begin, np.minimum(block * BLOCK, high), times)


def _search(value: Callable[[Ints, Ints], Ints], low: Ints, high: Ints, target: Ints) -> Ints:
    """First position of each range [low, high) whose value is not below its target.

    ``value(positions, ranges)`` gives the values at positions of the ranges of these numbers.
    """
    low, high = low.copy(), high.copy()
    active = np.flatnonzero(low < high)
    while len(active):
        middle = (low[active] + high[active]) >> 1
        below = value(middle, active) < target[active]
        low[active] = np.where(below, middle + 1, low[active])
        high[active] = np.where(below, high[active], middle)
        active = active[low[active] < high[active]]
    return low


def _ragged(begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """All numbers of the ranges [begin, end) one after another, and the range of each."""
    size = np.maximum(end - begin, 0)
    owner = np.repeat(np.arange(len(begin)), size)
    shift = begin - (np.cumsum(size) - size)
    return np.arange(len(owner)) + shift[owner], owner


def _blocks(begin: Ints, end: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Whole blocks within each range, as [first, last), and the positions left over by them."""
    first, last = -(-begin // BLOCK), end // BLOCK
    whole = first < last
    head_end = np.where(whole, first * BLOCK, end)
    tail = np.where(whole, last * BLOCK, end)
    positions, owner = _ragged(np.concatenate([begin, tail]), np.concatenate([head_end, end]))
    return first, np.where(whole, last, first), positions, owner % max(len(begin), 1)


def _longest(series: Series, begin: Ints, end: Ints) -> Ints:
    """Position of the longest event of each range of positions."""
    event = begin.copy()
    many = np.flatnonzero(end - begin > 1)
    if not len(many):
        return event
    first, last, positions, owner = _blocks(begin[many], end[many])
    length = series.ends(positions) - series.starts(positions)
    best = np.full(len(many), -1, np.int64)
    np.maximum.at(best, owner, length)
    blocks, of = _ragged(first, last)
    whole = np.full(len(many), -1, np.int64)
    np.maximum.at(whole, of, series.longest[blocks])
    # The positions of the block that holds the longest join those left over by the blocks.
    hit = (whole[of] > best[of]) & (series.longest[blocks] == whole[of])
    found, at = np.unique(of[hit], return_index=True)
    extra = blocks[hit][at] * BLOCK
    more, whose = _ragged(extra, extra + BLOCK)
    positions, owner = np.concatenate([positions, more]), np.concatenate([owner, found[whose]])
    length = np.concatenate([length, series.ends(more) - series.starts(more)])
    best = np.maximum(best, whole)
    top = np.flatnonzero(length == best[owner])[::-1]
    chosen = np.empty(len(many), np.int64)
    chosen[owner[top]] = positions[top]
    event[many] = chosen
    return event


def _latest(series: Series, begin: Ints, end: Ints, which: Ints) -> Ints:
    """Latest end of each range of positions."""
    latest = series.ends(end - 1)
    lapping = np.flatnonzero(series.overlapping[which] & (end - begin > 1))
    if len(lapping):
        first, last, positions, owner = _blocks(begin[lapping], end[lapping])
        most = latest[lapping]
        np.maximum.at(most, owner, series.ends(positions))
        blocks, of = _ragged(first, last)
        np.maximum.at(most, of, series.latest[blocks])
        latest[lapping] = most
    return latest


def _cover(series: Series, begin: Ints, end: Ints, which: Ints) -> Ints:
    first, last, positions, owner = _blocks(begin, end)
    cover = series.covered[last] - series.covered[first]
    np.add.at(cover, owner, series.gain(positions, which[owner]))
    return cover
