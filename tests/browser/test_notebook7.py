"""Views in a real Notebook 7: run, look, save, open again."""

from __future__ import annotations

import pytest

from tests.browser.notebooks import (
    LIVE,
    STATIC,
    in_notebook7,
    no_error,
    no_widget,
    notebook,
    run_all,
    save,
)

pytestmark = pytest.mark.browser


def test_a_static_view_works_is_saved_and_works_again(opened, notebook7):
    _, folder = notebook7
    path = notebook(folder, "static7.ipynb", STATIC)
    page = in_notebook7(opened, notebook7, path)
    run_all(page)
    frame = page.frame_locator("iframe.epprof-frame")
    frame.locator(".ep-timeline canvas").wait_for(timeout=60_000)
    assert page.locator(".epprof-fallback").is_hidden()
    frame.locator("[role=tab][data-tab=breakdown]").click()
    assert "z = y.get()" in frame.locator(".ep-breakdown").text_content()
    save(page, path, no_widget)
    page.reload()
    frame.locator(".ep-timeline canvas").wait_for(timeout=90_000)
    no_error(page)


def test_a_live_view_answers_and_leaves_the_static_one_in_the_file(opened, notebook7):
    _, folder = notebook7
    path = notebook(folder, "live7.ipynb", LIVE, "print(len(live.selection), 'rows')")
    page = in_notebook7(opened, notebook7, path)
    page.click(".jp-Notebook .jp-CodeCell .jp-InputArea-editor >> nth=0")
    page.keyboard.press("Shift+Enter")
    viewer = page.locator(".epprof-output .ep-live")
    viewer.wait_for(timeout=60_000)
    canvas = viewer.locator(".ep-timeline canvas")
    box = canvas.bounding_box()
    label = viewer.locator(".ep-label:has-text('main thread')").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.15, label["y"] + 17 * 2 + 8)
    viewer.locator(".ep-chain").wait_for()
    page.click(".jp-Notebook .jp-CodeCell .jp-InputArea-editor >> nth=1")
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector("text=2 rows", timeout=20_000)
    save(page, path, no_widget)
    page.reload()
    page.frame_locator("iframe.epprof-frame").locator(".ep-timeline canvas").wait_for(
        timeout=90_000
    )
    no_error(page)
