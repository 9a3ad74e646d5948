"""The events of one row by bins of time: those that start in one bin become one rectangle.

What is dense is taken by blocks, by blocks of blocks and so on, and only what is not by single
events: so a window costs what its bins cost, whatever it holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from epprof_nb.views.timeline.block_summaries import BLOCK
from epprof_nb.views.timeline.mipmap import FAN, parts, size

if TYPE_CHECKING:
    from epprof_nb.views.timeline.rows import EventRows

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
        How coarse each is; see `epprof_nb.views.timeline.mipmap`.
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


def binned(
    event_rows: EventRows, which: int, stretch: tuple[int, int], bins: Bins, keep: Ints
) -> Groups:
    """Return the rectangles of some events of one row.

    Parameters
    ----------
    event_rows, which
        The events, and the number of the row.
    stretch
        First position and last + 1; at least one event.
    bins
        The bins. An event as long as one stays by itself.
    keep
        Positions of events that stay by themselves, ascending, within the stretch.
    """
    found = _elements(event_rows, which, stretch, bins, keep)
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
    _descend(event_rows, event, found.level[top])
    if event_rows.overlapping[which]:
        latest = np.maximum.reduceat(found.latest, first)
    else:
        latest = event_rows.ends(end - 1)
    cover = np.add.reduceat(found.gain, first)
    return Groups(begin, end, event, found.start[first], latest, cover)


def _elements(
    event_rows: EventRows, which: int, stretch: tuple[int, int], bins: Bins, keep: Ints
) -> _Elements:
    low, high = stretch
    lapping = bool(event_rows.overlapping[which])
    # Where a bin has no more than one of them, hardly a block is short enough to stay whole.
    coarsest = 0
    while coarsest < len(event_rows.levels) and high - low > size(coarsest + 1) * len(bins.times):
        coarsest += 1
    found: list[tuple[Any, ...]] = []
    # Numbers of the level's blocks that those of the level above do not stand for.
    top = size(coarsest)
    items = np.arange(-(-low // top), high // top)
    for level in range(coarsest, 0, -1):
        blocks, each, last = event_rows.levels[level - 1], size(level), high // size(level)
        block_start, longest = blocks.block_start[items], blocks.longest[items]
        is_loose = (
            blocks.block_start.take(items + 1, mode="clip") - block_start > _TIGHT * bins.width
        )
        is_loose[items == last - 1] = True
        if lapping:
            is_loose |= _long(longest, np.searchsorted(block_start, bins.times), bins.width)
        if len(keep):
            is_loose |= np.isin(items, keep // each)
        whole = np.flatnonzero(~is_loose)
        at = items[whole]
        latest = blocks.latest[at] if lapping else _NONE
        gain = blocks.covered_ns[at + 1] - blocks.covered_ns[at]
        coarse = np.full(len(at), level, np.int8)
        found.append((at * each, coarse, block_start[whole], longest[whole], latest, gain))
        items = _below(level, stretch, items[is_loose])
    columns = (
        items,
        np.zeros(len(items), np.int8),
        *_single(event_rows, which, items, lapping=lapping),
    )
    if not found:
        return _Elements(*columns)
    joined = [np.concatenate(column) for column in zip(*found, columns, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return _Elements(*(column[order] if len(column) else column for column in joined))


def _below(level: int, stretch: tuple[int, int], loose: Ints) -> Ints:
    """Return what of the level below `loose` consists of, and what no block of `level` reaches."""
    low, high = stretch
    above, each, fan = size(level), size(level - 1), parts(level)
    head = np.arange(-(-low // each), -(-low // above) * fan)
    tail = np.arange(high // above * fan, high // each)
    return np.concatenate([head, (loose[:, None] * fan + np.arange(fan)).reshape(-1), tail])


def _descend(event_rows: EventRows, at: Ints, level: npt.NDArray[np.int8]) -> None:
    """From the first event of blocks go to the longest in them."""
    for above in range(int(level.max(initial=0)), 1, -1):
        mine = np.flatnonzero(level >= above)
        inside = at[mine, None] // size(above - 1) + np.arange(FAN)
        top = event_rows.levels[above - 2].longest[inside].argmax(axis=1)
        at[mine] = inside[np.arange(len(inside)), top] * size(above - 1)
    mine = np.flatnonzero(level)
    at[mine] = event_rows.longest_event(at[mine] // BLOCK)


def _single(
    event_rows: EventRows, which: int, at: Ints, *, lapping: bool
) -> tuple[Ints, Ints, Ints, Ints]:
    """Start, length, end where they overlap, and time covered of single events."""
    rows = event_rows.order[at[0] : at[-1] + 1] if _follow(at) else event_rows.order[at]
    start, end = event_rows.start[rows], event_rows.end[rows]
    length = np.maximum(end - start, 0)
    if not lapping:
        return start, length, _NONE, length
    return start, length, start + length, event_rows.new_coverage(at, np.full(len(at), which))


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
