"""Merged rectangles of streams: numbers of the tooltip, of the panel, and of the tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from epprof_nb.util.format import duration
from tests.browser.helpers.pixels import canvas, lane_y

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from epprof_nb.data.profile_data import ProfileData

_TOLD = re.compile(
    r"([\d,]+) (?:events|activities) from ([\d.]+) (m?s) to ([\d.]+) (m?s), spanning ([\d.]+ \S?s)"
)
_UNITS = {"s": 1e9, "ms": 1e6}
_ROUNDING_NS = 501
"""The page rounds times to microseconds."""


class Rectangle(NamedTuple):
    """Numbers of a merged rectangle, as the page shows them."""

    members: int
    start_ns: float
    end_ns: float
    span: str


def hover(page: Page, stream: int, x: float) -> Rectangle | None:
    """Point at a stream; return the merged rectangle of the tooltip."""
    canvas(page).hover(position={"x": x, "y": lane_y(page, f"stream {stream}")})
    return _parse(page.locator(".ep-tip").text_content() or "")


def click(page: Page, stream: int, x: float) -> None:
    """Click at a stream, and wait until all details are there."""
    canvas(page).click(position={"x": x, "y": lane_y(page, f"stream {stream}")})
    page.locator(".ep-panel .ep-seek-bar").wait_for()


def in_panel(page: Page) -> Rectangle | None:
    """Return the merged rectangle of the panel."""
    note = page.locator(".ep-panel .ep-note:visible", has_text="Drawn as one rectangle")
    return _parse(note.text_content() or "") if note.count() else None


def true_rectangle(profile: ProfileData, stream: int, told: Rectangle) -> tuple[Rectangle, str]:
    """Return the rectangle of the activities in a time range, and the longest one's duration."""
    table = profile.tables["activities"]
    start, end = table["start_ns"], table["end_ns"]
    inside = (
        (table["stream_id"] == stream)
        & (start >= told.start_ns - _ROUNDING_NS)
        & (end <= told.end_ns + _ROUNDING_NS)
    )
    first, last = int(start[inside].min()), int(end[inside].max())
    assert abs(first - told.start_ns) < _ROUNDING_NS
    assert abs(last - told.end_ns) < _ROUNDING_NS
    truth = Rectangle(int(inside.sum()), told.start_ns, told.end_ns, duration(last - first))
    return truth, duration(int((end - start)[inside].max()))


def _parse(text: str) -> Rectangle | None:
    told = _TOLD.search(text)
    if told is None:
        return None
    members, start, start_unit, end, end_unit, span = told.groups()
    return Rectangle(
        int(members.replace(",", "")),
        float(start) * _UNITS[start_unit],
        float(end) * _UNITS[end_unit],
        span,
    )
