"""A picture of a job: a strip of utilisation per process, and collectives as lines across them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.util import palette
from epprof_nb.util.format import duration, percent, shorten
from epprof_nb.views.renderers.job_model import BINS
from epprof_nb.views.renderers.svg_drawing import Area, Drawing, Item, Line, Rectangle, Stairs, Text
from epprof_nb.views.renderers.time_axis import round_step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from epprof_nb.views.renderers.job_model import FloatArray, Front, Row, ShownJob

WIDTH, LEFT, RIGHT = 900, 116, 104
"""Width of the picture, of the labels and of the numbers at the right, in pixels."""
_LEGEND, _AXIS, _COLUMN = 24, 22, 52
_HIGHEST, _LOWEST, _ALL_ROWS = 28, 11, 640
"""Greatest and least height of a row, and the height that all rows share, in pixels."""
_TICKS = 7
_BUSY, _WAITING, _FRONT = palette.KERNEL, palette.SERIES[1], "#757f8c"
STYLE = (
    "html[data-theme=dark] .epprof-busy{fill:#56b4e9}"
    "html[data-theme=dark] .epprof-waiting{fill:#ff9d5c}"
)
"""Colours on a dark page."""
_GROUND = 0.12


def draw(job: ShownJob) -> Drawing:
    """Return the picture."""
    rows = job.rows
    height, plot = _row_height(job), WIDTH - LEFT - RIGHT
    scale = plot / job.span_ns
    items: list[Item] = [*_legend(has_waits=bool(job.fronts))]
    bottom = _LEGEND + height * len(rows)
    items += _axis(job.span_ns, scale, bottom)
    for number, row in enumerate(rows):
        items += _row(row, _LEGEND + number * height, height, plot)
    for front in job.fronts:
        points = _points(front, height, scale)
        if len(points) > 1:
            items.append(Stairs(points, _FRONT, "epprof-front"))
    shares = ", ".join(f"{row.label} {_percent(row.busy_share)}" for row in rows[:16])
    label = f"Utilisation of {len(rows)} rows over {duration(job.span_ns)}: {shares}"
    return Drawing(WIDTH, bottom + _AXIS, label, items)


def strips_data(job: ShownJob) -> dict[str, Any]:
    """Return the places and numbers of the strips for ``frontend/src/job/selection.ts``."""
    return {
        "left": LEFT,
        "top": _LEGEND,
        "plot": WIDTH - LEFT - RIGHT,
        "row": _row_height(job),
        "span": job.span_ns,
        "labels": [row.label for row in job.rows],
        "ranks": [[process.rank for process in row.processes] for row in job.rows],
        "busy": [_percentages(row.busy) for row in job.rows],
        "waiting": [_percentages(row.waiting) for row in job.rows],
    }


def _percentages(shares: FloatArray) -> list[int | None]:
    known = ~np.isnan(shares)
    values = np.rint(np.where(known, shares, 0) * 100).astype(np.int64).tolist()
    return [value if is_known else None for value, is_known in zip(values, known, strict=True)]


def _row_height(job: ShownJob) -> int:
    return min(max(_ALL_ROWS // max(len(job.rows), 1), _LOWEST), _HIGHEST)


def _legend(*, has_waits: bool) -> Iterator[Item]:
    x, y = float(LEFT), 11
    entries = [(_BUSY, "epprof-busy", "devices busy", 100)]
    if has_waits:
        text = "waiting in a collective for a later rank"
        entries.append((_WAITING, "epprof-waiting", text, 244))
        yield Text(WIDTH, y, "waiting", "end")
    for colour, css, text, width in entries:
        yield Area(x, y + 1, 10, [10], colour, css)
        yield Text(x + 15, y, text)
        x += width
    if has_waits:
        yield Line(x + 5, y - 10, y + 2)
        yield Text(x + 13, y, "arrival of each rank at a collective")
    yield Text(WIDTH - _COLUMN, y, "busy", "end")


def _row(row: Row, top: float, height: float, plot: float) -> Iterator[Item]:
    tall = height - (3 if height > 2 * _LOWEST else 1)
    bottom, step = top + tall, plot / BINS
    about = _about(row)
    baseline = top + tall / 2 + 4
    yield Text(
        LEFT - 8, baseline, shorten(row.label, 18), "end", row.is_late, is_weak=False, title=about
    )
    known = np.flatnonzero(~np.isnan(row.busy))
    if len(known):
        first, last = int(known[0]), int(known[-1]) + 1
        yield Rectangle(
            LEFT + first * step, top, (last - first) * step, tall, "#8b95a3", _GROUND, about
        )
    for shares, colour, css in (
        (row.busy, _BUSY, "epprof-busy"),
        (row.waiting, _WAITING, "epprof-waiting"),
    ):
        heights = np.nan_to_num(shares) * tall
        # Keep the smallest share visible.
        heights = np.where(heights > 0, np.maximum(heights, 1), 0).round(1)
        if heights.any():
            yield Area(LEFT, bottom, step, heights.tolist(), colour, css, about)
    yield Text(WIDTH - _COLUMN, baseline, _percent(row.busy_share), "end", is_weak=False)
    if row.waiting_share is not None:
        yield Text(WIDTH, baseline, percent(row.waiting_share), "end", is_weak=False)


def _about(row: Row) -> str:
    """Return the description of a row."""
    first = row.processes[0]
    busy = f"{row.label}: devices busy {_percent(row.busy_share)}"
    if row.waiting_share is not None:
        busy += f", waiting for later ranks {percent(row.waiting_share)}"
    if len(row.processes) > 1:
        return f"{busy}, on average"
    parts = [busy]
    parts += [f"pid {first.pid}"] if first.pid is not None else []
    parts += [text for text in (first.hostname, ", ".join(first.devices), first.command) if text]
    return "\n".join(parts)


def _percent(share: float | None) -> str:
    return "\N{EN DASH}" if share is None else percent(share)


def _points(front: Front, height: float, scale: float) -> Sequence[tuple[float, float]]:
    """Return the corners of the line of a collective, down the rows that took part."""
    places = [(LEFT + at * scale, i) for i, at in enumerate(front.arrivals) if at is not None]
    points = []
    for number, (x, row) in enumerate(places):
        if not number:
            points.append((x, float(_LEGEND + row * height)))
        points.append((x, float(_LEGEND + (row + 1) * height)))
    return points


def _axis(span: int, scale: float, bottom: float) -> Iterator[Item]:
    step = round_step(span / _TICKS)
    for time in range(0, span + 1, step):
        x = LEFT + time * scale
        yield Line(x, bottom, bottom + 4)
        yield Text(x, bottom + 15, duration(time), "middle")
