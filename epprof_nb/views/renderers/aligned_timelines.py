"""The timelines of both sides of a comparison as SVG, one above the other, on one time axis.

The picture needs no script. Text and rules take the colour of the page, light or dark.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.data.schema import ACTIVITY_KINDS
from epprof_nb.util import palette
from epprof_nb.util.format import duration, plural, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from epprof_nb.analysis.compare.aligned import AlignedTimelines, Row

    Verdicts = Mapping[tuple[int, str | None], str]
    FloatArray = npt.NDArray[np.floating[Any]]

_WIDTH, _LEFT, _ROW, _TITLE, _AXIS, _GAP = 900, 150, 15, 18, 22, 8
_PLOT = _WIDTH - _LEFT - 8
_MIN_NAMED = 34
_CHARACTER = 6.2
_NARROW = 2
"""Least width of a rectangle with a name, the width of a character, and the width below which
neighbours are joined, in pixels."""
_TICKS = 6
VERDICTS = {"slower": "#c24e00", "faster": "#00855f"}
"""Colours that are legible on white and on black."""
_OP = "#8b95a3"


def as_svg(timelines: AlignedTimelines, verdicts: Verdicts, anchor: str) -> str:
    """Return an SVG element.

    Parameters
    ----------
    timelines
        The timelines.
    verdicts
        The verdict on the op of each pair, and on its kernels by their names, if they changed.
    anchor
        Name of the op at time 0; empty if there is none.
    """
    sides = (("before", timelines.old), ("after", timelines.new))
    rows = [row for _, timeline in sides for row in timeline.rows if len(row.starts)]
    if not rows:
        return ""
    low = min(0, *(int(row.starts.min()) for row in rows))
    high = max(int(row.ends.max()) for row in rows)
    scale = _PLOT / max(high - low, 1)
    parts = []
    y = 0
    for title, timeline in sides:
        span = max((int(row.ends.max()) for row in timeline.rows if len(row.ends)), default=0)
        parts.append(_text(0, y + 12, f"{title}: {duration(span)}", "font-weight:600"))
        if timeline.more:
            parts.append(_text(_LEFT, y + 12, f"{plural(timeline.more, 'more row')}", "opacity:.7"))
        y += _TITLE
        for row in timeline.rows:
            parts.append(_text(0, y + 11, shorten(row.label, 22), "opacity:.7"))
            parts += _rects(row, low, scale, y, verdicts)
            y += _ROW
        y += _GAP
    parts += _axis(low, high, scale, y)
    about = f"0: start of {anchor or 'the repeat'}"
    parts.append(_text(0, y + 14, shorten(about, 24), "opacity:.7", title=about))
    label = escape("Timelines of a typical repeat before and after. " + about)
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {_WIDTH} {y + _AXIS}" '
        f'style="display:block;width:100%;max-width:{_WIDTH}px;height:auto;'
        f'font:11px system-ui,sans-serif" fill="currentColor">{"".join(parts)}</svg>'
    )


def _rects(row: Row, low: int, scale: float, y: int, verdicts: Verdicts) -> Iterator[str]:
    """Yield the rectangles of a row; events that share a pixel are one."""
    left = _LEFT + (row.starts - low) * scale
    right = np.maximum(_LEFT + (row.ends - low) * scale, left + 1)
    for first, last in _merged(left, right):
        x, width = left[first], max(right[first : last + 1].max() - left[first], 1.0)
        count = last - first + 1
        name = row.name(first) if count == 1 else f"{count:,} events"
        took = duration(int((row.ends[first : last + 1] - row.starts[first : last + 1]).sum()))
        colour, opacity, what = _OP, 0.45, ""
        if row.kinds is not None:
            kind = int(row.kinds[first])
            colour, opacity = palette.KINDS.get(kind, palette.OTHER), 1.0
            what = f"{ACTIVITY_KINDS[kind]} " if count == 1 else ""
        title = escape(f"{what}{shorten(name, 200)}: {took}")
        place = f'x="{x:.1f}" width="{width:.1f}"'
        yield (
            f'<rect {place} y="{y}" height="{_ROW - 2}" fill="{colour}" '
            f'fill-opacity="{opacity}"><title>{title}</title></rect>'
        )
        found = {
            verdicts.get((int(row.paths[i]), None if row.kinds is None else row.name(i)), "")
            for i in (range(first, last + 1) if verdicts else ())
        }
        for changed in VERDICTS.keys() & found:
            yield (
                f'<rect {place} y="{y + _ROW - 4}" height="3" fill="{VERDICTS[changed]}">'
                f"<title>{escape(f'{changed}: {shorten(name, 200)}')}</title></rect>"
            )
        if row.kinds is None and count == 1 and width >= _MIN_NAMED:
            text = shorten(name, int((width - 6) / _CHARACTER))
            yield _text(x + 3, y + 10, text, "pointer-events:none")


def _merged(left: FloatArray, right: FloatArray) -> Iterator[tuple[int, int]]:
    """Yield the first and last event of each rectangle; narrow neighbours share one."""
    if not len(left):
        return
    is_narrow = right - left < _NARROW
    joined = is_narrow[1:] & is_narrow[:-1] & (left[1:] <= right[:-1] + 1)
    firsts = np.concatenate([[0], np.flatnonzero(~joined) + 1])
    yield from zip(firsts.tolist(), [*(firsts[1:] - 1).tolist(), len(left) - 1], strict=True)


def _axis(low: int, high: int, scale: float, bottom: int) -> Iterator[str]:
    zero = _LEFT - low * scale
    yield (
        f'<line x1="{zero:.1f}" x2="{zero:.1f}" y1="{_TITLE}" y2="{bottom}" stroke="currentColor" '
        'stroke-opacity=".5" stroke-dasharray="3 3"/>'
    )
    step = _round_step((high - low) / _TICKS)
    first = int(np.ceil(low / step))
    for number in range(first, int(high // step) + 1):
        time = number * step
        x = _LEFT + (time - low) * scale
        yield (
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}" '
            'stroke="currentColor" stroke-opacity=".5"/>'
        )
        sign = "-" if time < 0 else ""
        anchor = "end" if x > _WIDTH - 40 else "middle"
        label = f"{sign}{duration(abs(time))}"
        yield _text(x, bottom + 15, label, f"opacity:.7;text-anchor:{anchor}")


def _round_step(width: float) -> int:
    """Return 1, 2 or 5 times a power of ten, at least `width`."""
    power = 10 ** max(int(np.floor(np.log10(max(width, 1)))), 0)
    return int(next(power * n for n in (1, 2, 5, 10) if power * n >= width))


def _text(x: float, y: float, text: str, style: str, *, title: str = "") -> str:
    hover = f"<title>{escape(title)}</title>" if title else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" style="{style}">{escape(text)}{hover}</text>'
