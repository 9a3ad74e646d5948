"""Level of detail: reduction of millions of events to what a screen can show.

Three stages reduce the events; each knows more about the screen than the one before.

1. *Window bins*, in Python. A window query knows the time range and its width in pixels. If a row
   has more events in the window than the width can show, the window is cut into bins, and the
   events that start in one bin become one rectangle. It records the number of its events, the time
   they cover and the longest of them. Events at least as long as a bin keep a separate rectangle.
   This module decides how many bins each row gets; `epprof_nb.views.timeline.merge` fills them. To
   take O(bins) time, not O(events), it reads dense time ranges from the mip levels that
   `epprof_nb.views.timeline.mipmap` and `epprof_nb.views.timeline.block_summaries` build once per
   profile.
2. *Mip levels*, in the viewer. The rectangles of a window stay in use while the reader pans and
   zooms. For each octave of zoom the viewer merges neighbours that share a pixel, once, and reuses
   the result from frame to frame.
3. *Pixel culling*, in the viewer. Each frame drops rectangles outside the canvas and draws those
   narrower than about two pixels as one opacity per pixel, from the time they cover.

No stage hides idle time: a rectangle spans from its first start to its last end, and its covered
time is the busy part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.chunks import chunks, concat_ranges
from epprof_nb.views.timeline.merge import Bins, MergedRects, merge_into_bins
from epprof_nb.views.timeline.mipmap import BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.views.timeline.rows import EventRows

_NONE: IntArray = np.empty(0, np.int64)
_PROBES = 16


class Rects(NamedTuple):
    """Rectangles sorted by position; all columns int64, shape ``(rectangles,)``.

    Attributes
    ----------
    row_index
        Row of each rectangle.
    begin
        Position of its first event.
    members
        Number of its events, which have consecutive positions.
    event
        Position of its longest event.
    start, dur
        Start of the first event, and time from there to the latest end, ns.
    cover
        Time within `dur` that its events cover and no event before them covers, ns.
    """

    row_index: IntArray
    begin: IntArray
    members: IntArray
    event: IntArray
    start: IntArray
    dur: IntArray
    cover: IntArray


def visible_positions(
    event_rows: EventRows, start_ns: int, end_ns: int
) -> tuple[IntArray, IntArray]:
    """Return the first and last + 1 position of each row in a window.

    Events that end where the window starts, or start where it ends, are included. In overlapping
    rows, some events that ended before the window may be included as well.
    """
    low, high = event_rows.first[:-1], event_rows.first[1:]
    begin = _first_at_or_after(event_rows, lambda at, _: event_rows.ends(at), low, high, start_ns)
    overlapping = np.flatnonzero(event_rows.overlapping)
    if len(overlapping):

        def running_max_end(at: IntArray, row_index: IntArray) -> IntArray:
            offset = event_rows.running_max_offset[overlapping[row_index]]
            latest: IntArray = event_rows.running_max_end[offset + at]
            return latest

        target = np.full(len(overlapping), start_ns)
        begin[overlapping] = _search(running_max_end, low[overlapping], high[overlapping], target)
    end = _first_at_or_after(
        event_rows, lambda at, _: event_rows.starts(at), begin, high, end_ns + 1
    )
    return begin, end


def allocate_bins(counts: IntArray, bins: npt.NDArray[np.float64], max_rects: int) -> IntArray:
    """Return the number of bins of each row, such that at most `max_rects` rectangles result.

    Parameters
    ----------
    counts
        Number of events of each row.
    bins
        Desired number of bins of each row, float64.
    max_rects
        Maximum number of rectangles of all rows. Each row gets at least one bin, so very many rows
        may exceed it.
    """
    low, high = 0.0, 1.0
    if _rects_of(counts, bins) <= max_rects:
        low = 1.0
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        if _rects_of(counts, bins * middle) <= max_rects:
            low = middle
        else:
            high = middle
        if high < 1e-5:
            break
    return np.maximum(bins * low, 1).astype(np.int64)


def _rects_of(counts: IntArray, bins: npt.NDArray[np.float64]) -> int:
    return int(np.minimum(counts, 2 * np.maximum(bins, 1)).sum())


def rects_in_window(
    event_rows: EventRows,
    start_ns: int,
    end_ns: int,
    bins: IntArray,
    *,
    keep: IntArray = _NONE,
    visible: tuple[IntArray, IntArray] | None = None,
) -> Rects:
    """Return the rectangles of a window.

    Parameters
    ----------
    event_rows
        The events.
    start_ns, end_ns
        Time range of the window.
    bins
        Number of bins of each row; int64, shape ``(rows,)``. The events of a row are not merged if
        there are at most twice as many as bins.
    keep
        Positions of events that keep a separate rectangle, ascending.
    visible
        The result of `visible_positions` for this window, if known.
    """
    if visible is None:
        visible = visible_positions(event_rows, start_ns, end_ns)
    low, high = visible
    merge = high - low > 2 * bins
    parts = [_unmerged(event_rows, np.where(merge, high, low), high)]
    for row in np.flatnonzero(merge).tolist():
        width = (end_ns - start_ns) / bins[row]
        times = np.ceil(start_ns + np.arange(bins[row]) * width).astype(np.int64)
        positions = int(low[row]), int(high[row])
        keep_here = keep[slice(*np.searchsorted(keep, positions))]
        merged = merge_into_bins(event_rows, row, positions, Bins(times, width), keep_here)
        parts.append(_rects(np.full(len(merged.begin), row), merged))
    if len(parts) == 1:
        return parts[0]
    joined = [np.concatenate(c) for c in zip(*parts, strict=True)]
    if len(parts[0].begin):
        order = np.argsort(joined[1], kind="stable")
        joined = [column[order] for column in joined]
    return Rects(*joined)


def _unmerged(event_rows: EventRows, low: IntArray, high: IntArray) -> Rects:
    """Return one rectangle per event of each row's positions [low, high)."""
    size = np.maximum(high - low, 0)
    at, row_index = concat_ranges(low, size), np.repeat(np.arange(len(low)), size)
    start, latest = event_rows.starts(at), event_rows.ends(at)
    cover = latest - start
    overlapping = np.flatnonzero(event_rows.overlapping[row_index])
    if len(overlapping):
        cover[overlapping] = event_rows.new_coverage(at[overlapping], row_index[overlapping])
    return _rects(row_index, MergedRects(at, at + 1, at, start, latest, cover))


def _rects(row_index: IntArray, merged: MergedRects) -> Rects:
    begin, end, event, start, latest, cover = merged
    dur = latest - start
    return Rects(row_index, begin, end - begin, event, start, dur, np.clip(cover, 0, dur))


def positions_of(event_rows: EventRows, mask: npt.NDArray[np.bool_]) -> IntArray:
    """Return the positions of the events whose table rows are set in `mask`, ascending."""
    positions = [
        np.flatnonzero(mask[event_rows.order[chunk]]) + chunk.start
        for chunk in chunks(len(event_rows.order))
    ]
    return np.concatenate(positions) if positions else _NONE


def contains_any(rects: Rects, positions: IntArray) -> npt.NDArray[np.bool_]:
    """Return whether each rectangle contains any of `positions`, which must be ascending."""
    first = np.searchsorted(positions, rects.begin)
    contains: npt.NDArray[np.bool_] = (
        np.searchsorted(positions, rects.begin + rects.members) > first
    )
    return contains


def _first_at_or_after(
    event_rows: EventRows,
    value: Callable[[IntArray, IntArray], IntArray],
    low: IntArray,
    high: IntArray,
    time_ns: int,
) -> IntArray:
    """Return the first position of each range [low, high) whose start, or end, is >= `time_ns`."""
    target = np.full(len(low), time_ns)
    first, last = -(-low // BLOCK), -(-high // BLOCK)
    # Find the block by its start first: no event of the blocks before it reaches the time.
    block = _search(lambda at, _: event_rows.block_start[at], first, last, target)
    begin, end = np.maximum((block - 1) * BLOCK, low), np.minimum(block * BLOCK, high)
    return _search(value, begin, end, target)


def _search(
    value: Callable[[IntArray, IntArray], IntArray], low: IntArray, high: IntArray, target: IntArray
) -> IntArray:
    """Return the first position of each range [low, high) whose value is >= its target.

    ``value(positions, ranges)`` returns the values at positions; ``ranges`` has the index of the
    range of each. Values must be ascending within a range.
    """
    low, high = low.copy(), high.copy()
    # A search with many probes per step: the number of steps dominates the cost.
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
