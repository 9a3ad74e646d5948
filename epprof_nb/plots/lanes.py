"""Figure: the timeline, host ops above the streams of the devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from epprof_nb.plots.merge import Ints, Merged, merge
from epprof_nb.plots.style import (
    KIND_COLOURS,
    MANY,
    OP_COLOURS,
    axes_of,
    plain,
    say,
    time_axis,
)
from epprof_nb.views.layout import MAX_ROWS
from epprof_nb.views.pack import time_range
from epprof_nb.views.units import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from epprof_nb.table import Table
    from epprof_nb.views.layout import Placement
    from epprof_nb.views.prepared import Prepared

_STEPS = 4000
"""Stretches of the window that are told apart: finer than print."""
_HEIGHTS = {0: 0.5, 1: 0.9, 2: 0.58, 3: 0.36}
"""Height of each kind in its row: kinds differ in shape, not only in hue."""
_KINDS = {1: "kernel", 2: "copy", 3: "set"}
_BETWEEN = 0.4
_TEXT = "#1b2430"
_LETTER_POINTS, _LETTER_INCHES = 6.5, 0.058
_LEAST_LETTERS, _MOST_NAMES = 4, 120


def timeline(
    prepared: Prepared, ax: Axes | None, start_ns: int | None, end_ns: int | None, rows: int
) -> Axes:
    """Draw the timeline; see `epprof_nb.plots.figures.Figures.timeline`."""
    low, high = time_range(prepared.profile)
    low, high = low if start_ns is None else start_ns, high if end_ns is None else end_ns
    if low >= high:
        raise ValueError(f"the window must end after it starts, not at {high} after {low} ns")
    lanes = [
        (number, min(lane.rows, rows), lane.label)
        for number, lane in enumerate(prepared.layout.lanes)
        if lane.kind != "api" and lane.rows
    ]
    height = sum(count + _BETWEEN for _, count, _ in lanes)
    axes = axes_of(ax, (6.4, 0.7 + 0.2 * max(height, 2)))
    draw_lanes(axes, prepared, lanes, low, high)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    time_axis(axes.xaxis, max(abs(low), abs(high)), "time")
    _legend(axes, prepared)
    if not lanes:
        say(axes, "Nothing was recorded.")
    return axes


def _legend(axes: Axes, prepared: Prepared) -> None:
    """Name the kinds of activity above the axes, where there is more than one."""
    from matplotlib.patches import Patch

    present = np.unique(prepared.work.kinds).tolist()
    kinds = [kind for kind in (1, 2, 3) if kind in present]
    if len(kinds) > 1:
        axes.legend(
            handles=[Patch(color=KIND_COLOURS[kind], label=_KINDS[kind]) for kind in kinds],
            loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False, fontsize="small",
            borderaxespad=0, handlelength=1,
        )  # fmt: skip


def draw_lanes(
    axes: Axes, prepared: Prepared, lanes: list[tuple[int, int, str]], low: int, high: int
) -> None:
    """Draw `lanes`, (number, rows, label) from top to bottom, from `low` to `high` ns."""
    tables, layout = prepared.profile.tables, prepared.layout
    top, tops = 0.0, {}
    for number, count, _ in lanes:
        tops[number] = (top, count)
        top += count + _BETWEEN
    middles = [tops[number][0] + min(count, 2) / 2 - 0.05 for number, count, _ in lanes]
    axes.set_yticks(middles, [plain(label) for _, _, label in lanes])
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    axes.set_xlim(low, high)
    axes.set_ylim(max(top - _BETWEEN, 1.0), -0.1)
    shown = np.zeros(len(layout.lanes) + 1, np.int64)
    for number, count, _ in lanes:
        shown[number] = count
    work = prepared.work
    window = (low, high)
    ops = _rects(tables["ops"], layout.ops, work.main_kind(slice(None)), shown, window)
    _draw(axes, ops, tops, colours=OP_COLOURS)
    activities = _rects(tables["activities"], layout.activities, work.kinds, shown, window)
    _draw(axes, activities, tops, colours=KIND_COLOURS)
    _name(axes, prepared, ops, tops, window)


def _rects(
    table: Table,
    place: Placement,
    kinds: npt.NDArray[np.uint8],
    shown: Ints,
    window: tuple[int, int],
) -> Merged:
    """Return the rectangles of a window; their key is ``(lane * MAX_ROWS + row) * 4 + kind``."""
    low, high = window
    start, end = table["start_ns"], np.maximum(table["end_ns"], table["start_ns"])
    # Lane -1 is not drawn: it finds the last count, 0.
    inside = (place.row < shown[place.lane]) & (end >= low) & (start <= high)
    rows = np.flatnonzero(inside)
    kind = np.where(kinds[rows] > 3, 0, kinds[rows]).astype(np.int64)
    key = (place.lane[rows] * MAX_ROWS + place.row[rows]) * 4 + kind
    found = merge(key, start[rows], end[rows], max((high - low) // _STEPS, 1))
    return Merged(found.key, found.start, found.end, rows[found.event])


def _draw(
    axes: Axes, rects: Merged, tops: dict[int, tuple[float, int]], *, colours: dict[int, str]
) -> None:
    """Draw rectangles, one collection a kind."""
    from matplotlib.collections import PolyCollection

    is_op = colours is OP_COLOURS
    lane, row, kind = _places(rects)
    top = np.array([tops[number][0] for number in lane.tolist()]) + row
    low, high = axes.get_xlim()
    least = (high - low) / 1500
    for code, colour in colours.items():
        mine = np.flatnonzero(kind == code)
        if not len(mine):
            continue
        height = 0.9 if is_op else _HEIGHTS[code]
        x0, y0 = rects.start[mine], top[mine] + (0.9 - height) / 2
        x1 = np.maximum(rects.end[mine], x0 + least)
        corners = np.stack(
            [np.stack([x, y0 + y], axis=1) for x, y in
             ((x0, 0.0), (x1, 0.0), (x1, height), (x0, height))], axis=1,
        )  # fmt: skip
        axes.add_collection(
            PolyCollection(
                list(corners), facecolors=colour, edgecolors="white",
                linewidths=0.4 if is_op else 0.0, rasterized=len(mine) > MANY,
            ),
            autolim=False,
        )  # fmt: skip


def _places(rects: Merged) -> tuple[Ints, Ints, Ints]:
    place = rects.key // 4
    return place // MAX_ROWS, place % MAX_ROWS, rects.key % 4


def _name(
    axes: Axes,
    prepared: Prepared,
    ops: Merged,
    tops: dict[int, tuple[float, int]],
    window: tuple[int, int],
) -> None:
    """Write the names of ops on those with room for some letters."""
    low, high = window
    names = prepared.profile.tables["ops"].names("name")
    lane, row, _ = _places(ops)
    inches = axes.get_window_extent().width / axes.figure.dpi
    start, end = np.maximum(ops.start, low), np.minimum(ops.end, high)
    room = ((end - start) / (high - low) * inches / _LETTER_INCHES).astype(np.int64) - 1
    widest = np.argsort(-room)[:_MOST_NAMES]
    for i in widest[room[widest] >= _LEAST_LETTERS].tolist():
        name = names.take(ops.event[i : i + 1]).to_list()[0] or ""
        axes.text(
            start[i] + (high - low) * 0.004, tops[int(lane[i])][0] + row[i] + 0.46,
            plain(shorten(name, int(room[i]))), fontsize=_LETTER_POINTS, va="center",
            color=_TEXT, clip_on=True, parse_math=False,
        )  # fmt: skip
