"""Merges the events of one row by time bin: events that start in one bin become one rectangle.

Dense time ranges are read from the mip levels and only sparse ones event by event, so a query
costs O(bins), not O(events). This is the first stage of the level of detail; see
`epprof_nb.views.timeline.level_of_detail`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from epprof_nb.views.timeline.mipmap import BLOCK, FANOUT, children_per_block, events_per_block

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.views.timeline.rows import EventRows

Bools = npt.NDArray[np.bool_]

_NONE: IntArray = np.empty(0, np.int64)
_MAX_BLOCK_WIDTH = 0.5
"""Maximum length of a block, in bins, that is not split: a rectangle may end so much later."""
_MAX_LONG_PER_BIN = 4
"""Blocks of overlapping events per bin that are split because they contain a long event."""


class Bins(NamedTuple):
    """Time bins of a window.

    ``times`` are their starts, int64 ns, ascending; ``width`` is the length of each. The first bin
    has the events that start before it, too.
    """

    times: IntArray
    width: float


class MergedRects(NamedTuple):
    """Rectangles of consecutive events; all columns int64, shape ``(rectangles,)``.

    ``begin`` and ``end`` are the first and last + 1 position, ``event`` is the position of the
    longest event, ``start`` the start of the first, ``latest`` the latest end, and ``cover`` the
    time covered by these events and by none before them, all in ns.
    """

    begin: IntArray
    end: IntArray
    event: IntArray
    start: IntArray
    latest: IntArray
    cover: IntArray


class _Nodes(NamedTuple):
    """Mip blocks and single events that together make up a range of positions, in order.

    Attributes
    ----------
    at
        Position of the first event.
    level
        Mip level, 0 for a single event; see `epprof_nb.views.timeline.mipmap`.
    start, longest, latest, cover
        Start of the first event, longest duration, latest end and time covered, ns. ``latest`` is
        empty unless the row is overlapping.
    """

    at: IntArray
    level: npt.NDArray[np.int8]
    start: IntArray
    longest: IntArray
    latest: IntArray
    cover: IntArray


def merge_into_bins(
    event_rows: EventRows, row: int, positions: tuple[int, int], bins: Bins, keep: IntArray
) -> MergedRects:
    """Merge events of one row into rectangles.

    Parameters
    ----------
    event_rows, row
        The events, and the index of the row.
    positions
        First and last + 1 position; at least one event.
    bins
        The bins. Events at least as long as a bin are not merged.
    keep
        Positions, among these, of other events not to merge; ascending.
    """
    nodes = _nodes(event_rows, row, positions, bins, keep)
    is_edge = np.zeros(len(nodes.at) + 1, np.bool_)
    is_edge[0] = True
    is_edge[np.searchsorted(nodes.start, bins.times)] = True
    kept = np.searchsorted(nodes.at, keep)
    is_edge[kept] = is_edge[kept + 1] = True
    first = np.flatnonzero(is_edge[:-1])
    longest, node = _group_max(nodes.longest, first)
    long = node[(longest >= bins.width) & (nodes.level[node] == 0)]
    if len(long):
        is_edge[long] = is_edge[long + 1] = True
        first = np.flatnonzero(is_edge[:-1])
        longest, node = _group_max(nodes.longest, first)
    begin = nodes.at[first]
    end = np.append(begin[1:], positions[1])
    event = nodes.at[node]
    _drill_down(event_rows, event, nodes.level[node])
    if event_rows.overlapping[row]:
        latest = np.maximum.reduceat(nodes.latest, first)
    else:
        latest = event_rows.ends(end - 1)
    cover = np.add.reduceat(nodes.cover, first)
    return MergedRects(begin, end, event, nodes.start[first], latest, cover)


def _nodes(
    event_rows: EventRows, row: int, positions: tuple[int, int], bins: Bins, keep: IntArray
) -> _Nodes:
    """Cover a range of positions with the largest blocks that are fine enough for the bins."""
    low, high = positions
    overlapping = bool(event_rows.overlapping[row])
    # Start at the coarsest level with several blocks per bin: nearly all coarser blocks would have
    # to be split.
    coarsest = 0
    per_bin = (high - low) / len(bins.times)
    while coarsest < len(event_rows.levels) and per_bin > events_per_block(coarsest + 1):
        coarsest += 1
    parts: list[tuple[Any, ...]] = []
    # Blocks of the level that no block of the level above covers.
    top = events_per_block(coarsest)
    items = np.arange(-(-low // top), high // top)
    for level in range(coarsest, 0, -1):
        size = events_per_block(level)
        blocks, last = event_rows.levels[level - 1], high // size
        start, longest = blocks.block_start[items], blocks.longest[items]
        width = blocks.block_start.take(items + 1, mode="clip") - start
        is_split = width > _MAX_BLOCK_WIDTH * bins.width
        is_split[items == last - 1] = True
        if overlapping:
            is_split |= _with_long_event(longest, np.searchsorted(start, bins.times), bins.width)
        if len(keep):
            is_split |= np.isin(items, keep // size)
        whole = np.flatnonzero(~is_split)
        at = items[whole]
        latest = blocks.latest[at] if overlapping else _NONE
        cover = blocks.covered_ns[at + 1] - blocks.covered_ns[at]
        levels = np.full(len(at), level, np.int8)
        parts.append((at * size, levels, start[whole], longest[whole], latest, cover))
        items = _children(level, positions, items[is_split])
    events = _single_events(event_rows, row, items, overlapping=overlapping)
    columns = items, np.zeros(len(items), np.int8), *events
    if not parts:
        return _Nodes(*columns)
    joined = [np.concatenate(column) for column in zip(*parts, columns, strict=True)]
    order = np.argsort(joined[0], kind="stable")
    return _Nodes(*(column[order] if len(column) else column for column in joined))


def _children(level: int, positions: tuple[int, int], split: IntArray) -> IntArray:
    """Return the blocks of the level below in `split`, and the blocks at the two ends.

    The blocks at the ends are in range although their parents are not entirely.
    """
    low, high = positions
    above, size, count = (
        events_per_block(level),
        events_per_block(level - 1),
        children_per_block(level),
    )
    head = np.arange(-(-low // size), -(-low // above) * count)
    tail = np.arange(high // above * count, high // size)
    return np.concatenate([head, (split[:, None] * count + np.arange(count)).reshape(-1), tail])


def _drill_down(event_rows: EventRows, at: IntArray, level: npt.NDArray[np.int8]) -> None:
    """Replace the first position of blocks, in place, by the position of their longest event."""
    for above in range(int(level.max(initial=0)), 1, -1):
        nodes = np.flatnonzero(level >= above)
        children = at[nodes, None] // events_per_block(above - 1) + np.arange(FANOUT)
        top = event_rows.levels[above - 2].longest[children].argmax(axis=1)
        at[nodes] = children[np.arange(len(children)), top] * events_per_block(above - 1)
    nodes = np.flatnonzero(level)
    at[nodes] = event_rows.longest_event(at[nodes] // BLOCK)


def _single_events(
    event_rows: EventRows, row: int, at: IntArray, *, overlapping: bool
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return start, duration, end (if overlapping) and time covered of single events."""
    rows = event_rows.order[at[0] : at[-1] + 1] if _is_range(at) else event_rows.order[at]
    start, end = event_rows.start[rows], event_rows.end[rows]
    length = np.maximum(end - start, 0)
    if not overlapping:
        return start, length, _NONE, length
    return start, length, start + length, event_rows.new_coverage(at, np.full(len(at), row))


def _is_range(at: IntArray) -> bool:
    return len(at) > 0 and int(at[-1] - at[0]) == len(at) - 1


def _with_long_event(longest: IntArray, bin_begins: IntArray, width: float) -> Bools:
    """Return which blocks to split for an event at least as long as a bin; a bounded number."""
    is_long: Bools = longest >= width
    if np.count_nonzero(is_long) > _MAX_LONG_PER_BIN * len(bin_begins):
        first = np.unique(np.append(bin_begins[bin_begins < len(longest)], 0))
        _, top = _group_max(longest, first)
        only = np.zeros(len(is_long), np.bool_)
        only[top] = is_long[top]
        return only
    return is_long


def _group_max(values: IntArray, first: IntArray) -> tuple[IntArray, IntArray]:
    """Return the maximum of each group of consecutive values, and the index where it is first.

    ``first`` has the index of the first value of each group.
    """
    largest = np.maximum.reduceat(values, first)
    sizes = np.diff(first, append=len(values))
    at = np.flatnonzero(values == np.repeat(largest, sizes))
    group = np.searchsorted(first, at, "right") - 1
    top = np.empty(len(first), np.int64)
    top[group[::-1]] = at[::-1]
    return largest, top
