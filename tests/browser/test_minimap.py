"""The minimap, by pointer and by keys."""

from __future__ import annotations

import numpy as np
import pytest

from tests.browser.helpers.moving import drag, focused, near, window

pytestmark = pytest.mark.browser


def test_the_minimap_moves_and_resizes_the_window(page):
    handle, strip = page.locator(".ep-window"), page.locator(".ep-minimap").bounding_box()
    y = strip["y"] + strip["height"] / 2

    def x(ms: float) -> float:
        return strip["x"] + strip["width"] * ms / 100

    drag(page, (x(99.9), y), (x(40), y))
    assert near(window(page), (0, 40))
    drag(page, (x(0.1), y), (x(20), y))
    assert near(window(page), (20, 40))
    drag(page, (x(30), y), (x(60), y))
    assert near(window(page), (50, 70))
    page.mouse.click(x(15), y)
    assert near(window(page), (5, 25))
    box = handle.bounding_box()
    assert abs(box["x"] - x(5)) < 1.5
    assert abs(box["width"] - strip["width"] / 5) < 2
    assert handle.get_attribute("aria-valuetext") == "5.00 ms to 25.0 ms"


def test_the_minimap_is_reached_and_moved_by_keys(page):
    page.keyboard.press("w")
    window(page)
    page.keyboard.press("Tab")
    assert focused(page, "e => e.getAttribute('aria-label')") == "Time window"
    length = np.diff(window(page))[0]
    page.keyboard.press("End")
    assert near(window(page), (100 - length, 100))
    page.keyboard.press("Home")
    assert near(window(page), (0, length))
    page.keyboard.press("PageDown")
    assert near(window(page), (100 - length, 100), 35)
    assert window(page)[0] > 10
    page.keyboard.press("ArrowUp")
    assert np.diff(window(page))[0] < length - 5
