"""Views in saved notebooks, in JupyterLab and Notebook 7: run, look, save, open again."""

from __future__ import annotations

import pytest

from tests.browser.helpers.notebooks import (
    LIVE,
    STATIC,
    no_error,
    no_widget,
    notebook,
    reload,
    run_all,
    save,
)
from tests.browser.helpers.settling import wait_until

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect


def test_a_static_view_is_saved_and_a_live_one_takes_the_place_of_one_that_is(front_end):
    """One notebook has both, because opening a notebook takes seconds of processor time."""
    folder, open_notebook = front_end
    path = notebook(folder, "views.ipynb", STATIC, LIVE, "print(len(live.selection), 'rows')")
    page = open_notebook(path)
    run_all(page)
    viewer = page.locator(".epprof-output .ep-live")
    viewer.wait_for(timeout=60_000)
    expect(page.locator("iframe.epprof-frame")).to_have_count(1)
    frame = page.frame_locator("iframe.epprof-frame")
    frame.locator(".ep-timeline canvas").wait_for(timeout=60_000)
    assert page.locator(".epprof-fallback:visible").count() == 0
    # The frame takes the height it asks for: nothing to scroll inside.
    embedded = page.locator("iframe.epprof-frame").element_handle().content_frame()
    wait_until(embedded, "document.documentElement.scrollHeight <= window.innerHeight + 1")
    frame.locator("[role=tab][data-tab=breakdown]").click()
    expect(frame.locator(".ep-breakdown")).to_contain_text("z = y.get()")

    static, *_ = save(page, path, no_widget)
    assert set(static["data"]) == {"text/html", "image/png", "text/plain"}
    # The notebook has disposed of the widget's own view: the moved viewer remains.
    page.wait_for_timeout(200)
    assert viewer.is_visible()
    box = viewer.locator("canvas").bounding_box()
    label = viewer.locator(".ep-label:has-text('main thread')").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.15, label["y"] + 17 * 2 + 8)
    viewer.locator(".ep-chain").wait_for()
    page.click(".jp-Notebook .jp-CodeCell .jp-InputArea-editor >> nth=2")
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector("text=2 rows", timeout=60_000)

    save(page, path, no_widget)
    reload(page)
    frames = page.locator("iframe.epprof-frame")
    # While it builds the notebook, JupyterLab may show an output twice.
    expect(frames).to_have_count(2, timeout=90_000)
    for number in range(2):
        canvas = frames.nth(number).content_frame.locator(".ep-timeline canvas")
        canvas.wait_for(timeout=90_000)
    no_error(page)
