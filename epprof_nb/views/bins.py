"""The events of one series by bins of time: those that start in one bin become one rectangle.

What is dense is taken by blocks, by blocks of blocks and so on, and only what is not by single
events: so a window costs what its bins cost, whatever it holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

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
    """Blocks and single events, in order.

    Attributes
    ----------
    at
        Position of the first event of each.
    level
        How coarse each is: 0 for a single event, 1 for a block, 2 for a block of blocks.
    start, longest, latest, gain
        Start of the first event, greatest length, latest end, and time covered, ns. Only where
        events overlap there is a ``latest``.
    """

    at: Ints
    level: npt.NDArray[np.int8]
    start: Ints
    longest: Ints
    latest: Ints
    gain: Ints


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
    wide = top[(most >= bins.width) & (found.level[top] == 0)]
    if len(wide):
        edge[wide] = edge[wide + 1] = True
        first = np.flatnonzero(edge[:-1])
        most, top = _tops(found.longest, first)
    begin = found.at[first]
    end = np.append(begin[1:], stretch[1])
    event = found.at[top]
    _descend(series, event, found.level[top])
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
    # Where a bin has no more than one of them, hardly a block is short enough to stay whole.
    coarsest = 0
    while coarsest < len(series.levels) and high - low > _size(coarsest + 1) * len(bins.times):
        coarsest += 1
    parts: list[tuple[Any, ...]] = []
    inner, loose = (low, low), _NONE
    for level in range(coarsest, 0, -1):
        size = _size(level)
        outer = -(-low // size), high // size
        items = _parts(outer, inner if level < coarsest else (outer[1], outer[1]), loose)
        blocks = series.levels[level - 1]
        opening, longest = blocks.opening[items], blocks.longest[items]
        is_loose = blocks.opening.take(items + 1, mode="clip") - opening > _TIGHT * bins.width
        is_loose[items == outer[1] - 1] = True
        if lapping:
            is_loose |= _long(longest, np.searchsorted(opening, bins.times), bins.width)
        if len(keep):
            is_loose |= np.isin(items, keep // size)
        whole = np.flatnonzero(~is_loose)
        at = items[whole]
        latest = blocks.latest[at] if lapping else _NONE
        gain = blocks.covered[at + 1] - blocks.covered[at]
        levels = np.full(len(at), level, np.int8)
        parts.append((at * size, levels, opening[whole], longest[whole], latest, gain))
        inner, loose = (outer[0] * BLOCK, outer[1] * BLOCK), items[is_loose]
    at = _parts(stretch, inner if coarsest else (high, high), loose)
    parts.append((at, np.zeros(len(at), np.int8), *_single(series, which, at, lapping=lapping)))
    if len(parts) == 1:
        return _Elements(*parts[0])
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return _Elements(*(column[order] if len(column) else column for column in columns))


def _size(level: int) -> int:
    return int(BLOCK**level)


def _parts(outer: tuple[int, int], inner: tuple[int, int], loose: Ints) -> Ints:
    """Return the numbers of `outer` outside of `inner`, and those that are parts of `loose`."""
    within = (loose[:, None] * BLOCK + np.arange(BLOCK)).reshape(-1)
    return np.concatenate([np.arange(outer[0], inner[0]), within, np.arange(inner[1], outer[1])])


def _descend(series: Series, at: Ints, level: npt.NDArray[np.int8]) -> None:
    """From the first event of blocks go to the longest in them."""
    for above in range(int(level.max(initial=0)), 0, -1):
        mine = np.flatnonzero(level >= above)
        parts = at[mine, None] // _size(above - 1) + np.arange(BLOCK)
        if above > 1:
            length = series.levels[above - 2].longest[parts]
        else:
            length = series.ends(parts) - series.starts(parts)
        at[mine] = parts[np.arange(len(parts)), length.argmax(axis=1)] * _size(above - 1)


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
