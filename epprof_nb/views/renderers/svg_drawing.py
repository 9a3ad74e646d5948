"""A drawing of rectangles, areas, lines and texts, as SVG and as a PNG.

The SVG takes the colours of texts and lines from its page. The PNG is transparent, and its texts
have plates, so that it is legible on light and on dark pages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

from PIL import ImageColor

from epprof_nb.views.renderers.pixel_canvas import Canvas

if TYPE_CHECKING:
    from collections.abc import Sequence

_FONT, _SCALE = 11, 2
"""Size of texts in pixels, and pixels of the PNG for one of the drawing."""
CHARACTER = 6.2
"""Mean width of a character in pixels, by which callers shorten texts."""
_GREY = "#757f8c"
"""Lines of the PNG: as visible on white as on black."""
_TEXT = "#1b2430"
_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}
_WEAK = 0.7


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A rectangle; `title` is shown when the pointer is over it."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    opacity: float = 1
    title: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text that starts, ends, or has its middle at x; y is the baseline."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    is_bold: bool = False
    is_weak: bool = True
    is_on_rectangle: bool = False
    title: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A vertical line."""

    x: float
    top: float
    bottom: float
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class Area:
    """Bars side by side, each `step` wide, as one shape that rises from `bottom`.

    A style sheet may give the class another colour, such as on a dark page.
    """

    x: float
    bottom: float
    step: float
    heights: Sequence[float]
    colour: str
    css: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Stairs:
    """A line of horizontal and vertical parts through points ``(x, y)``; class as in `Area`."""

    points: Sequence[tuple[float, float]]
    colour: str
    css: str = ""


Item: TypeAlias = Rectangle | Text | Line | Area | Stairs


@dataclass(slots=True)
class Drawing:
    """Shapes and texts in drawing order; ``label`` describes them."""

    width: int
    height: int
    label: str
    items: Sequence[Item] = field(default_factory=list)

    def svg(self) -> str:
        """Return an SVG element."""
        return (
            f'<svg role="img" aria-label="{escape(self.label)}" '
            f'viewBox="0 0 {self.width} {self.height}" style="display:block;width:100%;'
            f'max-width:{self.width}px;height:auto;font:{_FONT}px system-ui,sans-serif" '
            f'fill="currentColor">{"".join(map(_element, self.items))}</svg>'
        )

    def png(self) -> bytes:
        """Return a PNG file, twice as wide and high as the drawing."""
        canvas = Canvas(_SCALE * self.width, _SCALE * self.height)
        for item in self.items:
            _draw(canvas, item)
        return canvas.png()


def _element(item: Item) -> str:
    if isinstance(item, Stairs):
        (x, y), *others = item.points
        path = f"M{x:.1f} {y:g}" + "".join(f"H{x:.1f}V{y:g}" for x, y in others)
        return f'<path class="{item.css}" d="{path}" fill="none" stroke="{item.colour}"/>'
    if isinstance(item, Area):
        return _area(item)
    if isinstance(item, Line):
        dashes = ' stroke-dasharray="3 3"' if item.is_dashed else ""
        return (
            f'<line x1="{item.x:.1f}" x2="{item.x:.1f}" y1="{item.top}" y2="{item.bottom}" '
            f'stroke="currentColor" stroke-opacity=".5"{dashes}/>'
        )
    hover = f"<title>{escape(item.title)}</title>" if item.title else ""
    if isinstance(item, Rectangle):
        opacity = f' fill-opacity="{item.opacity}"' if item.opacity < 1 else ""
        return (
            f'<rect x="{item.x:.1f}" y="{item.y}" width="{item.width:.1f}" '
            f'height="{item.height}" fill="{item.colour}"{opacity}>{hover}</rect>'
        )
    styles = {
        "font-weight:600": item.is_bold,
        f"opacity:{_WEAK}": item.is_weak,
        f"text-anchor:{item.anchor}": item.anchor != "start",
        "pointer-events:none": item.is_on_rectangle,
    }
    style = ";".join(text for text, applies in styles.items() if applies)
    style = f' style="{style}"' if style else ""
    return f'<text x="{item.x:.1f}" y="{item.y:.1f}"{style}>{escape(item.text)}{hover}</text>'


def _area(item: Area) -> str:
    """Return a path; neighbours of one height share a part of it."""
    path, run, last = [f"M{item.x:.1f} {item.bottom:g}"], 0.0, 0.0
    for height in item.heights:
        if height != last:
            path.append(f"h{run:g}" * (run > 0) + f"v{last - height:g}")
            run, last = 0.0, height
        run = round(run + item.step, 3)
    path.append(f"h{run:g}v{last:g}z")
    hover = f"<title>{escape(item.title)}</title>" if item.title else ""
    return f'<path class="{item.css}" d="{"".join(path)}" fill="{item.colour}">{hover}</path>'


def _draw(canvas: Canvas, item: Item) -> None:
    if isinstance(item, Stairs):
        for (x, y), (to_x, to_y) in pairwise(item.points):
            left, right, width = _SCALE * min(x, to_x), _SCALE * max(x, to_x), _SCALE / 2
            canvas.rectangle(left, _SCALE * y, right - left + width, width, item.colour)
            canvas.rectangle(_SCALE * to_x, _SCALE * y, width, _SCALE * (to_y - y), item.colour)
        return
    if isinstance(item, Area):
        for number, height in enumerate(item.heights):
            if height > 0:
                x, y, tall = item.x + number * item.step, item.bottom - height, _SCALE * height
                canvas.rectangle(_SCALE * x, _SCALE * y, _SCALE * item.step, tall, item.colour)
        return
    if isinstance(item, Line):
        step = 6 * _SCALE if item.is_dashed else _SCALE * (item.bottom - item.top)
        y = _SCALE * item.top
        while y < _SCALE * item.bottom:
            length = min(step / 2 if item.is_dashed else step, _SCALE * item.bottom - y)
            canvas.rectangle(_SCALE * item.x, y, _SCALE / 2, length, _GREY)
            y += step
        return
    if isinstance(item, Rectangle):
        x, y, width, height = (
            _SCALE * length for length in (item.x, item.y, item.width, item.height)
        )
        canvas.rectangle(x, y, width, height, _on_white(item.colour, item.opacity))
        return
    x, y, size = _SCALE * item.x, _SCALE * item.y, _SCALE * _FONT
    canvas.text(x, y, item.text, size, _TEXT, anchor=_ANCHORS[item.anchor])


def _on_white(colour: str, opacity: float) -> str:
    """Return a colour as it looks on white, because the rectangles have dark texts on any page."""
    channels = ImageColor.getrgb(colour)[:3]
    return "#" + "".join(f"{round(255 + (c - 255) * opacity):02x}" for c in channels)
