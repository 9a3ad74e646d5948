"""A picture of an experiment: what each op would save, with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.analysis.experiments.sentences import is_measured, wins_nothing
from epprof_nb.util import palette
from epprof_nb.util.format import duration, shorten
from epprof_nb.views.renderers.svg_drawing import Drawing, Line, Rectangle, Text
from epprof_nb.views.renderers.time_axis import round_step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.analysis.experiments.sensitivity import Sensitivity
    from epprof_nb.views.renderers.svg_drawing import Item

_WIDTH, _LEFT, _RIGHT = 720, 170, 28
_TOP, _ROW, _BAR, _AXIS = 40, 24, 10, 24
_TICKS = 6
_INTERVAL = 0.65
_KEY, _KEY_TOP = 14, 21
"""Width of a sign of the legend, and its top."""
_HIDDEN = palette.OTHER
_THIN = 2
"""Height of the bar of an op without measurements, or with uncertain ones."""
_ALONE = "replay alone"


def draw(rows: Sequence[Sensitivity]) -> Drawing:
    """Return the picture of the ops with known savings."""
    longest = max((row.saving.high for row in rows if row.saving), default=0.0)
    scale = (_WIDTH - _LEFT - _RIGHT) / max(longest, 1.0)
    bottom = _TOP + _ROW * len(rows)
    items: list[Item] = [Text(_LEFT, 11, "saving of a repeat in which the op takes no time")]
    items += _legend()
    for number, row in enumerate(rows):
        items += _row(row, _TOP + number * _ROW, scale)
    step = max(round_step(round(max(longest, 1.0) / _TICKS)), 1)
    for time in range(0, round(longest) + 1, step):
        x = _LEFT + time * scale
        items += [Line(x, bottom, bottom + 4), Text(x, bottom + 15, duration(time), "middle")]
    label = "Savings of ops: " + ", ".join(map(_about, rows))
    return Drawing(_WIDTH, bottom + _AXIS, label, items)


def _row(row: Sensitivity, top: float, scale: float) -> list[Item]:
    about, saving = _about(row), row.saving
    name = shorten(row.op.name, 26)
    items: list[Item] = [Text(_LEFT - 8, top + 15, name, "end", is_weak=False, title=about)]
    if saving is None:
        return items
    colour = _HIDDEN if wins_nothing(row) else palette.KERNEL
    y, low = top + (_ROW - _BAR) / 2, _LEFT + saving.low * scale
    width = max((saving.high - saving.low) * scale, 1)
    items.append(_bar(low, y, width, colour, is_thin=not is_measured(row), title=about))
    items.append(_mark(_LEFT + saving.ns * scale, y))
    return items


def _bar(
    x: float, top: float, width: float, colour: str, *, is_thin: bool = False, title: str = ""
) -> Rectangle:
    """Return the bar of an interval, a thin one if the replay alone has it."""
    height = _THIN if is_thin else _BAR
    return Rectangle(x, top + (_BAR - height) / 2, width, height, colour, _INTERVAL, title)


def _mark(x: float, top: float) -> Line:
    """Return the mark of a saving, in the colour of texts, which is visible on any page."""
    return Line(x, top - 3, top + _BAR + 3)


def _legend() -> list[Item]:
    base = _KEY_TOP + _BAR - 1
    items: list[Item] = [
        _mark(_LEFT + 1, _KEY_TOP),
        Text(_LEFT + 8, base, "replayed"),
        _bar(_LEFT + 76, _KEY_TOP, _KEY, palette.KERNEL),
        Text(_LEFT + 94, base, "95 % interval"),
        _bar(_LEFT + 186, _KEY_TOP, _KEY, _HIDDEN),
        Text(_LEFT + 204, base, "next to nothing in the replay"),
    ]
    thin = _bar(_LEFT + 376, _KEY_TOP, _KEY, palette.KERNEL, is_thin=True)
    return [*items, thin, Text(_LEFT + 394, base, f"{_ALONE}, or uncertain")]


def _about(row: Sensitivity) -> str:
    if row.saving is None:
        return f"{row.op.name}: not known"
    saving = row.saving
    low, high = duration(saving.low), duration(saving.high)
    mark = "" if is_measured(row) else f", {_ALONE}"
    return f"{row.op.name}: {duration(saving.ns)} ({low} to {high}){mark}"
