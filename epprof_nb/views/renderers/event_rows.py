"""Rows of events in the static picture: rectangles by kind and coverage, and the names of ops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.util import palette
from epprof_nb.views.queries.window import WindowQuery, query_window
from epprof_nb.views.renderers.pixel_canvas import blend, fit
from epprof_nb.views.timeline.op_colours import COLOURS, op_colours

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.views.renderers.pixel_canvas import Canvas
    from epprof_nb.views.view_model import ViewModel

ROW = 18
"""Height of a row with the space below it, in pixels."""
_INNER = 16
_HEIGHTS = {0: 8, 1: 16, 2: 10, 3: 6}
"""Height of each kind of activity: kinds differ in height too, not only in hue."""
_SHADES, _MIN_SHADE = 5, 0.35
"""Shades of a rectangle that represents several events, by the share that they cover."""
_MIN_SEPARATED = 4
"""Minimum width of an op that is separated from the next one, in pixels."""
_MAX_NAMES, _MIN_NAMED, _MIN_CHARACTERS = 120, 24, 5
"""Maximum number of names per row, minimum width of an op with a name, and minimum length of a
shortened name."""
_TEXT, _PADDING = 11, 4


def draw_events(
    canvas: Canvas, view_model: ViewModel, rows: Mapping[tuple[int, int], int], x: int, width: int
) -> None:
    """Draw the ops and activities of the whole time range.

    Parameters
    ----------
    canvas
        The canvas to draw on.
    view_model
        The profile.
    rows
        Lane number and row to the y of its upper edge; other rows are left out.
    x, width
        Place of the time range.
    """
    low, high = view_model.time_range
    header, columns = query_window(view_model, WindowQuery(low, high, width), details=False)
    for prefix, colours in (("op", COLOURS), ("act", palette.KINDS)):
        start, length, kind = (columns[f"{prefix}.{name}"] for name in ("start", "dur", "kind"))
        if prefix == "op":
            kind = op_colours(view_model, kind, columns.get("op.operator", np.full(len(kind), -1)))
        else:
            kind = np.where(kind > max(colours), 0, kind)  # a graph launch has no colour of its own
        cover = columns.get(f"{prefix}.cover", length)
        codes = kind * _SHADES + _shades(length, cover)
        left, right = _pixels(start - low, length, width / (high - low), width)
        if prefix == "op":
            right -= right - left >= _MIN_SEPARATED
        shades = np.linspace(_MIN_SHADE, 1, _SHADES).tolist()
        lookup = np.array(
            [canvas.code(blend(colours[k], share)) for k in sorted(colours) for share in shades],
            np.uint8,
        )
        for lane, row, first, end in header["slices"][prefix]:
            y = rows.get((lane, row))
            if y is None:
                continue
            part = slice(first, end)
            drawn = _row_of_codes(left[part], right[part], codes[part], width)
            fill = lookup[drawn]
            for k in np.unique(kind[part]).tolist():
                height = _INNER if prefix == "op" else _HEIGHTS[k]
                canvas.paint(
                    x, y + (_INNER - height) // 2,
                    np.broadcast_to(fill, (height, width)), drawn // _SHADES == k,
                )  # fmt: skip
            if prefix == "op":
                names = [header["names"][n] if n >= 0 else "" for n in columns["op.name"][part]]
                _write_names(canvas, names, x + left[part], x + right[part], y + _INNER / 2)


def _write_names(
    canvas: Canvas, names: list[str], left: IntArray, right: IntArray, y: float
) -> None:
    """Write names on the ops of a row that have room for them, the widest first."""
    room = right - left
    named = np.flatnonzero(room >= _MIN_NAMED)
    for i in named[np.argsort(-room[named])][:_MAX_NAMES].tolist():
        shown = fit(names[i], _TEXT, int(room[i]) - 2 * _PADDING)
        if shown == names[i] or len(shown) >= _MIN_CHARACTERS:
            canvas.text(int(left[i]) + _PADDING, y, shown, _TEXT, palette.TEXT)


def _shades(length: IntArray, cover: IntArray) -> IntArray:
    """Return the shade of each rectangle, by the share that events cover."""
    share = np.where(length > 0, cover / np.maximum(length, 1), 1.0)
    shades: IntArray = np.rint(np.clip(share, 0, 1) * (_SHADES - 1)).astype(np.int64)
    return shades


def _pixels(
    start: IntArray, length: IntArray, scale: float, width: int
) -> tuple[IntArray, IntArray]:
    """Return the first and last + 1 pixel of each rectangle, at least one pixel in all."""
    left = np.clip(start * scale, 0, width - 1).astype(np.int64)
    right = np.clip(np.rint((start + length) * scale), 0, width).astype(np.int64)
    return left, np.maximum(right, left + 1)


def _row_of_codes(left: IntArray, right: IntArray, codes: IntArray, width: int) -> IntArray:
    """Return the code of each pixel of a row, -1 where there is none."""
    drawn = np.full(width, -1, np.int64)
    lengths = right - left
    offsets = np.repeat(left - np.cumsum(lengths) + lengths, lengths)
    drawn[offsets + np.arange(len(offsets))] = np.repeat(codes, lengths)
    return drawn
