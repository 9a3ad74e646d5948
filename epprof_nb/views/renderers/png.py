"""A static picture of the profile, for front ends without HTML and for fallbacks."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.utilisation.counters import busy_shares, known_mean
from epprof_nb.util import palette
from epprof_nb.util.format import duration
from epprof_nb.views.renderers.event_rows import ROW, draw_events
from epprof_nb.views.renderers.pixel_canvas import Canvas, blend, fit, text_width
from epprof_nb.views.renderers.time_axis import round_step
from epprof_nb.views.view_model import FINDINGS_LEFT_OUT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.views.view_model import ViewModel

WIDTH = 960
"""Width of the picture in pixels."""
_LEFT, _RIGHT, _EDGE = 164, 12, 14
_PLOT = WIDTH - _LEFT - _RIGHT
_LABEL = _LEFT - _EDGE - 8
"""Width of the labels at the left."""
_TITLE_TEXT, _NORMAL_TEXT, _SMALL_TEXT = 13, 12, 11
_FAINT = "#4a5463"
"""Secondary text; darker than on a white page."""
_LINE, _NOTE, _NOTE_CHARACTERS = 19, WIDTH - 2 * _EDGE, 135
_BUSY, _LANE_GAP, _AXIS, _BAR = 32, 6, 36, 21
_MAX_LANES, _MAX_ROWS, _MAX_BARS = 10, 8, 6
_BAR_SHARE = 0.74
"""Share of the plot's width that the longest bar takes."""


def as_png(view_model: ViewModel) -> bytes:
    """Draw the picture with the headline and the findings; see `as_pngs`."""
    return as_pngs(view_model)[0]


def as_pngs(view_model: ViewModel) -> tuple[bytes, bytes]:
    """Draw utilisation, host ops, streams and the top ops or operators as PNG data.

    Returns
    -------
    whole, body
        The picture with the headline and the findings, and without them, for HTML that has them.
    """
    by_operator = view_model.colours_operators
    top = (view_model.top_operators if by_operator else view_model.top_ops)(_MAX_BARS)
    notes = _notes(view_model)
    lanes = [
        (number, lane) for number, lane in enumerate(view_model.layout.lanes)
        if lane.kind != "api" and lane.rows
    ][:_MAX_LANES]  # fmt: skip
    y_busy = 10 + _LINE * len(notes) + 8
    y_lanes = y_busy if by_operator else y_busy + _BUSY + 8
    tops, y = {}, y_lanes
    for number, lane in lanes:
        tops[number] = y
        y += min(lane.rows, _MAX_ROWS) * ROW + _LANE_GAP
    y_bars = y + _AXIS
    canvas = Canvas(WIDTH, y_bars + max(len(top), 1) * _BAR + 8)
    for i, (text, largest, colour) in enumerate(notes):
        # Shrink a long line rather than shorten it.
        sizes = range(largest, _SMALL_TEXT, -1)
        size = next((s for s in sizes if text_width(text, s) <= _NOTE), _SMALL_TEXT)
        canvas.text(_EDGE, 10 + _LINE * (i + 0.5), fit(text, size, _NOTE), size, colour)
    if not by_operator:
        _draw_busy(canvas, view_model, y_busy)
    rows = {
        (number, row): tops[number] + row * ROW
        for number, lane in lanes
        for row in range(min(lane.rows, _MAX_ROWS))
    }
    for number, lane in lanes:
        _label(canvas, tops[number] + min(lane.rows, 2) * ROW / 2 - 1, lane.full_label)
    draw_events(canvas, view_model, rows, _LEFT, _PLOT)
    _draw_axis(canvas, view_model, y)
    _draw_bars(canvas, top, y_bars, _bar_colours(view_model, top))
    return canvas.png(), canvas.png(y_busy - 8)


def _notes(view_model: ViewModel) -> list[tuple[str, int, str]]:
    """Return the lines of the headline and of the findings, with their sizes and colours."""
    # The headline is wrapped between its parts only.
    headline = "   ".join(
        part.replace(" ", "\N{NO-BREAK SPACE}") for part in view_model.headline.line.split("   ")
    )
    texts = [(headline, _TITLE_TEXT, palette.TEXT)]
    texts += [(line, _NORMAL_TEXT, palette.TEXT) for line in view_model.headline.memory]
    found = [f.text for f in view_model.findings]
    if not view_model.with_findings:
        found.append(FINDINGS_LEFT_OUT)
    texts += [(text.replace("`", ""), _NORMAL_TEXT, _FAINT) for text in found]
    return [
        (line, size, colour)
        for text, size, colour in texts
        for line in textwrap.wrap(text, _NOTE_CHARACTERS)
    ]


def _label(canvas: Canvas, y: float, text: str) -> None:
    canvas.text(_LEFT - 8, y, fit(text, _NORMAL_TEXT, _LABEL), _NORMAL_TEXT, palette.TEXT,
                anchor="rm")  # fmt: skip


def _draw_busy(canvas: Canvas, view_model: ViewModel, y: int) -> None:
    headline = view_model.headline
    low, high = view_model.time_range
    edges = np.linspace(low, high, _PLOT + 1)
    shares = [busy_shares(view_model.index, device.device_id, edges) for device in headline.busy]
    if shares:  # there is none without a GPU
        levels = np.arange(_BUSY, 0, -1)[:, None] - 0.5
        codes = np.full((_BUSY, _PLOT), canvas.code(blend(palette.KERNEL, 0.75)), np.uint8)
        canvas.paint(_LEFT, y, codes, levels < known_mean(shares) * _BUSY)
    canvas.rectangle(_LEFT, y + _BUSY, _PLOT, 1, palette.RULE)
    _label(canvas, y + _BUSY / 2, f"{headline.device_word} busy")


def _draw_axis(canvas: Canvas, view_model: ViewModel, y: int) -> None:
    low, high = view_model.time_range
    step = round_step((high - low) / 6)
    for tick in range(-(-low // step) * step, high + 1, step):
        x = _LEFT + (tick - low) / (high - low) * _PLOT
        text = duration(tick)
        x = min(x, WIDTH - _EDGE / 2 - text_width(text, _SMALL_TEXT) / 2)
        canvas.text(x, y + 6, text, _SMALL_TEXT, _FAINT, anchor="mm")


def _bar_colours(view_model: ViewModel, rows: Sequence[tuple[str, int, int]]) -> list[str]:
    """Return the colour of each bar; operators have the colours of their nodes."""
    if not view_model.colours_operators:
        return [palette.KERNEL] * len(rows)
    return [palette.OPERATORS[view_model.hue_of_name[name]] for name, _, _ in rows]


def _draw_bars(
    canvas: Canvas, rows: Sequence[tuple[str, int, int]], y: int, colours: Sequence[str]
) -> None:
    largest = max((total_ns for _, total_ns, _ in rows), default=1)
    for i, (name, total_ns, count) in enumerate(rows):
        top = y + i * _BAR
        middle = top + _BAR / 2 - 1
        length = total_ns / largest * _PLOT * _BAR_SHARE
        canvas.rectangle(_LEFT, top + 3, length, _BAR - 8, colours[i])
        _label(canvas, middle, name)
        text = f"{duration(total_ns)}   {count:,} \N{MULTIPLICATION SIGN}"
        canvas.text(_LEFT + length + 6, middle, text, _SMALL_TEXT, _FAINT)
    if not rows:
        text = "No device time was recorded."
        canvas.text(_LEFT, y + _BAR / 2, text, _NORMAL_TEXT, _FAINT)
