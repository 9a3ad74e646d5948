"""Figure: the timeline, host ops above the streams of the devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.base.device_work import KERNEL
from epprof_nb.arrays.intervals import LATEST
from epprof_nb.util import palette
from epprof_nb.util.format import elide, shorten, with_glyphs
from epprof_nb.views.plots.style import MANY, axes_or_new, explain_empty, time_axis
from epprof_nb.views.queries.window import WindowQuery, query_window
from epprof_nb.views.timeline.op_colours import COLOURS, op_colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.views.view_model import ViewModel


_STEPS = 2000
"""Resolution of the window, about as fine as print."""
_MAX_RECTS = 30_000
_MIN_WIDTH = 1 / 1500
"""Minimum width of a rectangle, as a share of the window."""
_MIN_ALPHA = 0.35
_MIN_EDGED = 1 / 250
"""Minimum width of a rectangle with an edge; the edge would hide a narrower one."""
_HEIGHTS = {0: 0.5, 1: 0.9, 2: 0.58, 3: 0.36}
"""Height of each kind in its row: kinds differ in height too, not only in hue."""
_KINDS = {1: "kernel", 2: "copy", 3: "memset"}
_LANE_GAP = 0.4
_MAX_LEGEND = 8
"""Number of operators in the legend: those with the most time."""
_FONT_POINTS, _CHARACTER_INCHES = 6.5, 0.058
_MIN_CHARACTERS, _MIN_BOTH_ENDS, _MAX_NAMES = 4, 16, 120


def timeline(
    model: ViewModel, ax: Axes | None, start_ns: int | None, end_ns: int | None, rows: int
) -> Axes:
    """Draw the timeline; see `epprof_nb.views.plots.figures.Figures.timeline`."""
    low, high = model.time_range
    low, high = low if start_ns is None else start_ns, high if end_ns is None else end_ns
    if not low < high:
        raise ValueError(f"the window must end after it starts, not at {high} after {low} ns")
    if not max(abs(low), abs(high)) <= LATEST:
        first, last = model.time_range
        raise ValueError(
            f"a window from {low} to {high} ns cannot be drawn: the profile is from {first} to "
            f"{last} ns"
        )
    lanes = [
        (number, min(lane.rows, rows), lane.full_label)
        for number, lane in enumerate(model.layout.lanes)
        if lane.kind != "api" and lane.rows
    ]
    height = sum(count + _LANE_GAP for _, count, _ in lanes)
    axes = axes_or_new(ax, (6.4, 0.7 + 0.2 * max(height, 2)))
    draw_lanes(axes, model, lanes, low, high)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    time_axis(axes.xaxis, max(abs(low), abs(high)), "time")
    _legend(axes, model)
    if not lanes:
        explain_empty(axes, "Nothing was recorded.")
    return axes


def _legend(axes: Axes, model: ViewModel) -> None:
    """Add a legend of the kinds of activity, if there are several, or of the operators."""
    from matplotlib.patches import Patch

    if model.colours_operators:
        legend = axes.legend(
            handles=[
                Patch(color=palette.OPERATORS[hue], label=with_glyphs(shorten(name, 24)))
                for name, hue in [*model.hue_of_name.items()][:_MAX_LEGEND]
            ],
            loc="lower right", bbox_to_anchor=(1, 1), ncols=4, frameon=False, fontsize="small",
            borderaxespad=0, handlelength=1,
        )  # fmt: skip
        for text in legend.get_texts():
            text.set_parse_math(False)
        return
    present = np.unique(model.index.kinds).tolist()
    kinds = [kind for kind in (1, 2, 3) if kind in present]
    if len(kinds) > 1:
        axes.legend(
            handles=[Patch(color=palette.KINDS[kind], label=_KINDS[kind]) for kind in kinds],
            loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False, fontsize="small",
            borderaxespad=0, handlelength=1,
        )  # fmt: skip


def draw_lanes(
    axes: Axes, model: ViewModel, lanes: list[tuple[int, int, str]], low: int, high: int
) -> None:
    """Draw `lanes`, (number, rows, label) from top to bottom, from `low` to `high` ns."""
    layout = model.layout
    top, tops = 0.0, {}
    for number, count, _ in lanes:
        tops[number] = (top, count)
        top += count + _LANE_GAP
    middles = [tops[number][0] + min(count, 2) / 2 - 0.05 for number, count, _ in lanes]
    axes.set_yticks(middles, [with_glyphs(label) for _, _, label in lanes])
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    axes.set_xlim(low, high)
    axes.set_ylim(max(top - _LANE_GAP, 1.0), -0.1)
    header, columns = query_window(model, WindowQuery(low, high, _STEPS), max_rects=_MAX_RECTS)
    names, short_names = header["names"], header["short_names"]
    for prefix, colours in (("op", COLOURS), ("act", palette.KINDS)):
        lane, row = _places(header["slices"][prefix], len(columns[f"{prefix}.start"]))
        shown = np.zeros(len(layout.lanes) + 1, np.int64)
        for number, count, _ in lanes:
            shown[number] = count
        # Waits have no row. The index -1 of such a lane selects the last element, 0 rows.
        rows = np.flatnonzero((row >= 0) & (row < shown[lane]))
        start, length, kind = (
            columns[f"{prefix}.{name}"][rows] for name in ("start", "dur", "kind")
        )
        tops_of = np.array([tops[number][0] for number in lane[rows].tolist()], np.float64)
        cover = columns.get(f"{prefix}.cover", columns[f"{prefix}.dur"])[rows]
        if prefix == "op":
            hues = columns.get("op.operator", np.full(len(row), -1))[rows]
            kind = op_colours(model, kind, hues)
        else:
            kind = np.where(kind > 3, 0, kind)  # a graph launch has no separate colour
        rects = _Rects(tops_of + row[rows], start, length, kind, cover)
        _draw(axes, rects, colours=colours)
        codes = columns.get(f"{prefix}.name", np.full(len(row), -1))[rows].tolist()
        shown_names = (
            names
            if prefix == "op"
            else [short_names.get(code, name) for code, name in enumerate(names)]
        )
        texts = [shown_names[code] if code >= 0 else "" for code in codes]
        # A merged rectangle has no label: its name belongs to one event only.
        single = columns.get(f"{prefix}.members", np.ones(len(row), np.int64))[rows] == 1
        if prefix == "op":
            _label(axes, rects, texts, np.flatnonzero(single), palette.TEXT)
        else:
            _label(axes, rects, texts, np.flatnonzero(single & (kind == KERNEL)), "white")


@dataclass(frozen=True, slots=True)
class _Rects:
    """Rectangles: top of the row, start and length (ns), kind, and time covered by events (ns)."""

    top: npt.NDArray[np.float64]
    start: IntArray
    length: IntArray
    kind: IntArray
    cover: IntArray


def _places(slices: list[list[int]], count: int) -> tuple[IntArray, IntArray]:
    """Return lane and row of each event from slices (lane, row, first, last + 1)."""
    lane, row = np.full((2, count), -1, np.int64)
    for number, level, first, end in slices:
        lane[first:end], row[first:end] = number, level
    return lane, row


def _draw(axes: Axes, rects: _Rects, *, colours: dict[int, str]) -> None:
    """Draw rectangles, one collection per kind."""
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import to_rgba

    is_op = colours is COLOURS
    low, high = axes.get_xlim()
    for code, colour in colours.items():
        rows = np.flatnonzero(rects.kind == code)
        if not len(rows):
            continue
        height = 0.9 if is_op else _HEIGHTS[code]
        x0, y0 = rects.start[rows], rects.top[rows] + (0.9 - height) / 2
        x1 = x0 + np.maximum(rects.length[rows], (high - low) * _MIN_WIDTH)
        corners = np.stack(
            [np.stack([x, y0 + y], axis=1) for x, y in
             ((x0, 0.0), (x1, 0.0), (x1, height), (x0, height))], axis=1,
        )  # fmt: skip
        # A merged rectangle that is partly idle is fainter.
        cover = rects.cover[rows] / np.maximum(rects.length[rows], 1)
        fills = np.tile(to_rgba(colour), (len(rows), 1))
        fills[:, 3] = _MIN_ALPHA + (1 - _MIN_ALPHA) * np.clip(cover, 0, 1)
        fills[rects.length[rows] <= 0, 3] = 1
        edges = np.where(x1 - x0 > (high - low) * _MIN_EDGED, 0.4, 0.0)
        axes.add_collection(
            PolyCollection(
                list(corners), facecolors=fills, edgecolors="white",
                linewidths=edges, rasterized=len(rows) > MANY,
            ),
            autolim=False,
        )  # fmt: skip


def _label(axes: Axes, rects: _Rects, names: list[str], rows: IntArray, colour: str) -> None:
    """Write the names of the events `rows` on the rectangles that are wide enough."""
    low, high = axes.get_xlim()
    inches = axes.get_window_extent().width / axes.figure.dpi
    start, end = np.maximum(rects.start, low), np.minimum(rects.start + rects.length, high)
    room = ((end - start) / (high - low) * inches / _CHARACTER_INCHES).astype(np.int64) - 1
    widest = rows[np.argsort(-room[rows], kind="stable")][:_MAX_NAMES]
    for i in widest[room[widest] >= _MIN_CHARACTERS].tolist():
        axes.text(
            start[i] + (high - low) * 0.004, rects.top[i] + 0.46,
            with_glyphs(_fitting(names[i], int(room[i]))), fontsize=_FONT_POINTS, va="center",
            color=colour, clip_on=True, parse_math=False,
        )  # fmt: skip


def _fitting(name: str, room: int) -> str:
    """Cut a name to `room` characters: in the middle, or at the end if few are left."""
    tail = room // 3 if room >= _MIN_BOTH_ENDS else 0
    return elide(" ".join(name.split()), room, tail=tail)
