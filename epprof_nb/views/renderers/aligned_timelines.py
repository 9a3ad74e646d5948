"""A picture of the timelines of both sides of a comparison, one above the other, on one axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.data.schema import ACTIVITY_KINDS
from epprof_nb.util import palette
from epprof_nb.util.format import duration, plural, shorten
from epprof_nb.views.renderers.svg_drawing import CHARACTER, Drawing, Line, Rectangle, Text
from epprof_nb.views.renderers.time_axis import round_step

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy.typing as npt

    from epprof_nb.analysis.compare.aligned_repeats import AlignedTimelines, Row

    Verdicts = Mapping[tuple[int, str | None], str]
    FloatArray = npt.NDArray[np.floating[Any]]

_WIDTH, _LEFT, _ROW, _TITLE, _AXIS, _GAP = 900, 150, 15, 18, 22, 8
_PLOT = _WIDTH - _LEFT - 8
_MIN_NAMED = 34
_NARROW = 2
"""Minimum width of a rectangle with a name, and the width below which neighbours are joined, in
pixels."""
_TICKS = 6
VERDICTS = {"slower": "#c24e00", "faster": "#00855f"}
"""Colours that are legible on white and on black."""
_OP = "#8b95a3"


def draw(timelines: AlignedTimelines, verdicts: Verdicts, anchor: str) -> Drawing | None:
    """Return the picture; None if there is nothing to show.

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
        return None
    low = min(0, *(int(row.starts.min()) for row in rows))
    high = max(int(row.ends.max()) for row in rows)
    scale = _PLOT / max(high - low, 1)
    items: list[Rectangle | Text | Line] = []
    y = 0
    for title, timeline in sides:
        longest = max((int(row.ends.max()) for row in timeline.rows if len(row.ends)), default=0)
        heading = f"{title}: {duration(longest)}"
        items.append(Text(0, y + 12, heading, is_bold=True, is_weak=False))
        if timeline.more:
            items.append(Text(_LEFT, y + 12, plural(timeline.more, "more row")))
        y += _TITLE
        for row in timeline.rows:
            items.append(Text(0, y + 11, shorten(row.label, 22)))
            items += _rects(row, low, scale, y, verdicts)
            y += _ROW
        y += _GAP
    items += _axis(low, high, scale, y)
    about = f"0: start of {anchor or 'the repeat'}"
    items.append(Text(0, y + 14, shorten(about, 24), title=about))
    label = "Timelines of a typical repeat before and after. " + about
    return Drawing(_WIDTH, y + _AXIS, label, items)


def _rects(
    row: Row, low: int, scale: float, y: int, verdicts: Verdicts
) -> Iterator[Rectangle | Text]:
    """Yield the rectangles of a row; events that share a pixel are merged."""
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
        title = f"{what}{shorten(name, 200)}: {took}"
        yield Rectangle(x, y, width, _ROW - 2, colour, opacity, title)
        found = {
            verdicts.get((int(row.paths[i]), None if row.kinds is None else row.name(i)), "")
            for i in (range(first, last + 1) if verdicts else ())
        }
        for changed in VERDICTS.keys() & found:
            title = f"{changed}: {shorten(name, 200)}"
            yield Rectangle(x, y + _ROW - 4, width, 3, VERDICTS[changed], title=title)
        if row.kinds is None and count == 1 and width >= _MIN_NAMED:
            text = shorten(name, int((width - 6) / CHARACTER))
            yield Text(x + 3, y + 10, text, is_weak=False, is_on_rectangle=True)


def _merged(left: FloatArray, right: FloatArray) -> Iterator[tuple[int, int]]:
    """Yield the first and last event of each rectangle; narrow neighbours share one."""
    if not len(left):
        return
    is_narrow = right - left < _NARROW
    joined = is_narrow[1:] & is_narrow[:-1] & (left[1:] <= right[:-1] + 1)
    firsts = np.concatenate([[0], np.flatnonzero(~joined) + 1])
    yield from zip(firsts.tolist(), [*(firsts[1:] - 1).tolist(), len(left) - 1], strict=True)


def _axis(low: int, high: int, scale: float, bottom: int) -> Iterator[Line | Text]:
    yield Line(_LEFT - low * scale, _TITLE, bottom, is_dashed=True)
    step = round_step((high - low) / _TICKS)
    first = int(np.ceil(low / step))
    for number in range(first, int(high // step) + 1):
        time = number * step
        x = _LEFT + (time - low) * scale
        yield Line(x, bottom, bottom + 4)
        label = f"{'-' if time < 0 else ''}{duration(abs(time))}"
        yield Text(x, bottom + 15, label, "end" if x > _WIDTH - 40 else "middle")
