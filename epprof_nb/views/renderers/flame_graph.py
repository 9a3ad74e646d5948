"""Flame graph of the difference by Python stack: for a page, for a notebook, and as a picture."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epprof_nb.util import palette
from epprof_nb.util.format import base_name, duration, plural, shorten, signed_percent
from epprof_nb.util.html import to_base64
from epprof_nb.util.text_controls import json_with_visible_controls
from epprof_nb.views.renderers.html import POLICY, framed, program_html
from epprof_nb.views.renderers.svg_drawing import CHARACTER, Drawing, Rectangle, Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.compare.compare_sides import Total

_TITLE = "Device time by Python stack: width is the new side, colour its change"
_WIDTH, _ROW, _TOP, _MAX_DEPTH = 900, 18, 54, 14
_NARROW, _MIN_NAMED = 1, 40
_HEIGHT = 420
"""Height of the frame in pixels until the flame graph reports its own."""
_OPACITY = 0.6
"""Texts on the rectangles are legible on all colours."""
_CHANGE_LIMITS = (0.05, 0.2, 0.5)
"""Changes from which a box is coloured more strongly; below the first one, it is grey."""
_CHANGE_SHARES = (0, 3 / 8, 5 / 8, 1)


def shown_change(
    tree: dict[str, Any], total: Total, idle_before: float | None, idle_after: float | None
) -> str:
    """Write the change of the device time next to the wall time, which includes idle time.

    Parameters
    ----------
    tree
        The tree of the flame graph.
    total
        Wall time per repeat of both sides.
    idle_before, idle_after
        Idle time of the devices per repeat of each side, ns; None if not known.
    """
    before, after = tree["old_device_ns"][0], tree["device_ns"][0]
    device = signed_percent(after / before - 1) if before else duration(after)
    wall = f"wall time {signed_percent(total.change)}"
    if idle_before is None or idle_after is None:
        return f"Device time {device}; {wall}, of which idle time is not shown."
    change = total.after_ns - total.before_ns
    is_most = abs(change) / 2 < (idle_after - idle_before) * (1 if change > 0 else -1)
    what = "most of it" if is_most else "which includes"
    idle = f"{duration(idle_before)} before, {duration(idle_after)} after"
    return f"Device time {device}; {wall}, {what} idle time of the device ({idle}), not shown."


@dataclass(frozen=True)
class FlameGraph:
    """The difference of two sides.

    Attributes
    ----------
    own, full
        Trees of the user's frames, and of all frames; see
        `epprof_nb.views.queries.stack_changes.stack_changes`.
    change
        The change that it shows, and the idle time that it does not; see `shown_change`.
    """

    own: dict[str, Any]
    full: dict[str, Any]
    change: str

    def html(self) -> str:
        """Return elements for a page with scripts; without them, a picture remains."""
        payload = json.dumps(
            {"own": self.own, "full": self.full, "change": self.change}, separators=(",", ":")
        )
        packed = zlib.compress(json_with_visible_controls(payload).encode("ascii"), 9)
        return f'<main id="epprof">{self._drawing().svg()}</main>' + program_html(
            "comparison.js", packed
        )

    def framed_html(self) -> str:
        """Return a frame with the flame graph, and a picture as its fallback."""
        document = (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
            "<style>html,body{margin:0;background:#fff;color:#1b2430}"
            "html[data-theme=dark],html[data-theme=dark] body{background:#14181d;color:#e6eaf0}"
            f"</style></head><body>{self.html()}</body></html>"
        )
        drawing = self._drawing()
        image = (
            f'<img alt="{drawing.label}" width="{drawing.width}" '
            f'src="data:image/png;base64,{to_base64(drawing.png())}">'
        )
        return framed(document, image, title="Flame graph of the difference", height=_HEIGHT)

    def _drawing(self) -> Drawing:
        """Return a picture of the largest frames."""
        tree = self.own
        children: list[list[int]] = [[] for _ in tree["parent"]]
        for node, above in enumerate(tree["parent"]):
            if above >= 0:
                children[above].append(node)
        scale = _WIDTH / max(tree["device_ns"][0], 1)
        items: list[Rectangle | Text] = [Text(0, 12, f"{_TITLE}."), Text(0, 28, self.change)]
        if tree["removed"]:
            removed = f"{plural(tree['removed'], 'removed stack')} not shown"
            items.append(Text(0, 44, f"{removed} ({duration(tree['removed_ns'])} before)."))
        deepest = 0
        waiting = [(0, 0.0, 0)]
        while waiting:
            node, x, depth = waiting.pop()
            deepest = max(deepest, depth)
            items += self._box(node, x, tree["device_ns"][node] * scale, depth)
            for child in sorted(children[node], key=lambda n: -tree["device_ns"][n]):
                width = tree["device_ns"][child] * scale
                if width >= _NARROW and depth < _MAX_DEPTH:
                    waiting.append((child, x, depth + 1))
                x += width
        return Drawing(_WIDTH, _TOP + (deepest + 1) * _ROW, f"{_TITLE}.", items)

    def _box(self, node: int, x: float, width: float, depth: int) -> Iterator[Rectangle | Text]:
        tree = self.own
        before, after = tree["old_device_ns"][node], tree["device_ns"][node]
        change = signed_percent(after / before - 1) if before else "new"
        name = self._name(node)
        times = f"{duration(before)} before, {duration(after)} after ({change})"
        colour = change_colour(before, after)
        y = _TOP + depth * _ROW
        title = f"{name}: {times}"
        yield Rectangle(x, y, max(width - 0.5, 0.5), _ROW - 1, colour, _OPACITY, title)
        if width >= _MIN_NAMED:
            text = name if before == after else f"{name} {change}"
            shown = shorten(text, int((width - 6) / CHARACTER))
            yield Text(x + 3, y + 12, shown, is_weak=False, is_on_rectangle=True)

    def _name(self, node: int) -> str:
        tree = self.own
        if tree["others"][node]:
            return f"({tree['others'][node]} smaller)"
        code = tree["name"][node]
        name = str(tree["short_names"].get(code, tree["names"][code]))
        if tree["cell"][node] < 0:
            return name
        return f"{name} ({base_name(tree['names'][tree['cell'][node]])}:{tree['line'][node]})"


def change_colour(before: float, after: float) -> str:
    """Return the colour of a change: blue for less, orange for more, grey within 5 %.

    The viewer has the same in ``render/event_colours.ts``.

    Examples
    --------
    >>> change_colour(10, 10), change_colour(10, 0), change_colour(0, 10)
    ('#e9ecf0', '#0072b2', '#d55e00')
    """
    size = abs(after / before - 1) if before else float(after > 0)
    share = _CHANGE_SHARES[sum(size >= limit for limit in _CHANGE_LIMITS)]
    grey, end = (
        [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
        for colour in (palette.OPS[0], palette.KERNEL if after < before else palette.SERIES[1])
    )
    mixed = (int(a + (b - a) * share + 0.5) for a, b in zip(grey, end, strict=True))
    return "#" + "".join(f"{byte:02x}" for byte in mixed)
