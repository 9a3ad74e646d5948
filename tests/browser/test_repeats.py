"""Repeats of a cell in the viewer: the strip chart, and their boundaries on the time axis."""

from __future__ import annotations

import pytest

from epprof_nb.data.repeats import with_repeats
from epprof_nb.profiles import Profile
from tests.browser.helpers.known import MS, known_profile
from tests.browser.helpers.pixels import RULER, pixel, x_at

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect

BOUNDS = [[5 * MS, 30 * MS], [30 * MS, 70 * MS], [70 * MS, 95 * MS]]
FAINT = {"light": (0x5B, 0x66, 0x75), "dark": (0x9A, 0xA5, 0xB4)}


def repeated() -> Profile:
    known = known_profile()
    info = {**known.info, "repeats": BOUNDS}
    return Profile(with_repeats(known.tables, info), info, known.sources)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_repeats_have_a_strip_chart_and_boundaries(shown, theme):
    page = shown(repeated(), theme=theme)
    line = page.locator(".ep-repeats")
    expect(line).to_contain_text("3 repeats: mean 30.0 ms, median 25.0 ms")
    dots = line.locator(".ep-strip-dot")
    expect(dots).to_have_count(3)
    expect(dots.nth(1)).to_have_attribute("title", "repeat 1: 40.0 ms")
    boxes = [dots.nth(i).bounding_box() for i in range(3)]
    assert boxes[0]["x"] < boxes[1]["x"] < boxes[2]["x"]
    # Longer is higher.
    assert boxes[1]["y"] < boxes[0]["y"] == pytest.approx(boxes[2]["y"], abs=0.5)
    for start, _ in BOUNDS:
        x = round(x_at(page, start / MS))
        assert FAINT[theme] in {pixel(page, x + dx, RULER - 3) for dx in (-1, 0, 1)}


def test_a_profile_without_repeats_has_neither(shown):
    page = shown(known_profile())
    expect(page.locator(".ep-headline")).to_be_visible()
    expect(page.locator(".ep-repeats")).to_have_count(0)
    x = round(x_at(page, 30))
    assert FAINT["light"] not in {pixel(page, x + dx, RULER - 3) for dx in (-1, 0, 1)}
