"""The viewer on the whole screen, and on pages that may not use it."""

from __future__ import annotations

from html import escape

import pytest

from tests.browser.helpers.settling import settled, wait_until

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect

IS_FULL = "!!document.fullscreenElement?.matches('.ep-viewer')"


def test_the_viewer_fills_the_screen_and_comes_back(exported):
    page = exported("loop")
    page.set_viewport_size({"width": 1100, "height": 500})
    page.reload()
    timeline = page.locator(".ep-timeline[data-start]")
    timeline.wait_for()
    before = timeline.bounding_box()["height"]
    page.set_viewport_size({"width": 1100, "height": 900})
    page.click(".ep-full")
    wait_until(page, IS_FULL)
    settled(page)
    assert timeline.bounding_box()["height"] > before
    timeline.press("Shift+F")
    wait_until(page, f"!({IS_FULL})")
    settled(page)
    assert timeline.bounding_box()["height"] == before


@pytest.mark.parametrize("allowed", [False, True])
def test_a_frame_has_the_button_only_where_it_works(opened, page_file, tmp_path, allowed):
    path = tmp_path / "frame.html"
    allow = "allowfullscreen" if allowed else ""
    document = escape(page_file.read_text())
    path.write_text(
        f'<iframe sandbox="allow-scripts" {allow} width=1000 height=600 srcdoc="{document}">'
    )
    page = opened(path.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator(".ep-timeline[data-start]").wait_for()
    expect(frame.locator(".ep-full")).to_have_count(int(allowed))
    if allowed:
        frame.locator(".ep-full").click()
        wait_until(page, "document.fullscreenElement?.localName === 'iframe'")
