"""A static image of the profile, for front ends that show no HTML."""

from __future__ import annotations

import io
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.counters import busy_ns
from epprof_nb.util import palette
from epprof_nb.util.format import duration, shorten
from epprof_nb.views.plots.style import printable
from epprof_nb.views.plots.timeline import draw_lanes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

    from epprof_nb.views.view_model import ViewModel

_TEXT, _FAINT, _LINE = palette.TEXT, palette.FAINT, palette.RULE
_WIDTH, _DPI = 9.6, 192
_BINS = 960
_MAX_LANES, _MAX_ROWS, _MAX_BARS = 10, 8, 6
_BOTTOM, _GAP = 0.1, 0.34


def as_png(view_model: ViewModel) -> bytes:
    """Draw utilisation, host ops, streams and the top ops; return PNG data, about 1840 px wide."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    top = view_model.by_op
    top = top[(top["self_device_ns"] > 0)].nlargest(_MAX_BARS, "self_device_ns")
    lanes = _lanes_to_draw(view_model)
    height = sum(rows for _, rows, _ in lanes) * 0.19 + len(lanes) * 0.06
    heights = (0.34, max(height, 0.2), max(len(top), 1) * 0.21)
    notes = [view_model.summary.line, *(finding.text for finding in view_model.findings)]
    head = 0.2 + 0.17 * len(notes)
    total = _BOTTOM + heights[2] + _GAP + heights[1] + 0.06 + heights[0] + 0.1 + head
    # Not created by pyplot, so that the user's pyplot state stays as it is.
    figure = Figure(figsize=(_WIDTH, total), dpi=_DPI, facecolor="white")
    FigureCanvasAgg(figure)
    for i, note in enumerate(notes):
        # Shrink a long line rather than cut it off.
        points = min(7.5 if i else 8.5, 1000 / max(len(note), 1))
        figure.text(0.015, 1 - (0.2 + 0.17 * i) / total, printable(note).replace("`", ""),
                    color=_FAINT if i else _TEXT, fontsize=points, va="center",
                    parse_math=False)  # fmt: skip
    bottoms = (
        _BOTTOM + heights[2] + _GAP + heights[1] + 0.06,
        _BOTTOM + heights[2] + _GAP,
        _BOTTOM,
    )
    utilisation, timeline, bars = (
        figure.add_axes((0.17, bottom / total, 0.815, size / total))
        for bottom, size in zip(bottoms, heights, strict=True)
    )
    low, high = view_model.time_range
    _draw_utilisation(utilisation, view_model, low, high)
    _draw_lanes(timeline, view_model, lanes, low, high)
    _draw_bars(bars, top.to_dict("records"))
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # The user cannot help a name with characters that the font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure.savefig(buffer, format="png", dpi=_DPI)
    return buffer.getvalue()


def _hide_frame(axes: Axes) -> None:
    axes.set_yticks([])
    axes.tick_params(axis="x", length=0, labelsize=7, labelcolor=_FAINT, pad=1)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _draw_utilisation(axes: Axes, view_model: ViewModel, low: int, high: int) -> None:
    _hide_frame(axes)
    edges = np.linspace(low, high, _BINS + 1)
    axes.set_xlim(low, high)
    axes.set_ylim(0, 1)
    axes.set_xticks([])
    axes.axhline(0, color=_LINE, linewidth=1)
    summary = view_model.summary
    share = np.zeros(_BINS)
    for device in summary.busy:
        curve = busy_ns(view_model.index, device.device_id)
        if len(curve.t):
            until = np.interp(edges, curve.t, curve.value)
            share += np.diff(until) / np.diff(edges) / len(summary.busy)
    axes.fill_between(edges[:-1], share, step="post", color=palette.KERNEL, alpha=0.75, linewidth=0)
    axes.text(-0.01, 0.4, f"{summary.device_word} busy", transform=axes.transAxes, ha="right",
              va="center", fontsize=7.5, color=_TEXT)  # fmt: skip


def _lanes_to_draw(view_model: ViewModel) -> list[tuple[int, int, str]]:
    """Return the first lanes of ops and streams as (number, rows, label)."""
    lanes = [
        (number, min(lane.rows, _MAX_ROWS), lane.label)
        for number, lane in enumerate(view_model.layout.lanes)
        if lane.kind != "api" and lane.rows
    ]
    return lanes[:_MAX_LANES]


def _draw_lanes(
    axes: Axes, view_model: ViewModel, lanes: list[tuple[int, int, str]], low: int, high: int
) -> None:
    _hide_frame(axes)
    draw_lanes(axes, view_model, lanes, low, high)
    axes.tick_params(axis="y", length=0, labelsize=7.5, labelcolor=_TEXT, pad=4)
    step = _round_step((high - low) / 6)
    ticks = np.arange(-(-low // step), high // step + 1) * step
    axes.set_xticks(ticks, [duration(tick) for tick in ticks.tolist()])


def _round_step(rough: float) -> int:
    """Return the smallest of 1, 2 or 5 times a power of ten, in ns, that is at least `rough`."""
    power = 10 ** int(np.floor(np.log10(max(rough, 1))))
    return int(next(m * power for m in (1, 2, 5, 10) if m * power >= rough))


def _draw_bars(axes: Axes, rows: Sequence[Mapping[Any, Any]]) -> None:
    _hide_frame(axes)
    axes.set_xticks([])
    axes.set_ylim(max(len(rows), 1) - 0.4, -0.6)
    axes.set_xlim(0, 1.35)
    largest = max((row["self_device_ns"] for row in rows), default=1)
    for i, row in enumerate(rows):
        axes.barh(i, row["self_device_ns"] / largest, height=0.62, color=palette.KERNEL)
        axes.text(-0.01, i, printable(shorten(str(row["name"]), 26)), ha="right", va="center",
                  fontsize=7.5, color=_TEXT, transform=axes.get_yaxis_transform(),
                  parse_math=False)  # fmt: skip
        text = f"{duration(row['self_device_ns'])}   {row['count']:,} \N{MULTIPLICATION SIGN}"
        axes.text(row["self_device_ns"] / largest + 0.008, i, text, va="center", fontsize=7,
                  color=_FAINT, parse_math=False)  # fmt: skip
    if not rows:
        axes.text(0, 0, "No device time was recorded.", va="center", fontsize=7.5, color=_FAINT)
