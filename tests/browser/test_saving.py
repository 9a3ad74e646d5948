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


def test_a_static_view_is_shown_saved_and_shown_again(front_end):
    folder, open_notebook = front_end
    path = notebook(folder, "static.ipynb", STATIC)
    page = open_notebook(path)
    run_all(page)
    frame = page.frame_locator("iframe.epprof-frame")
    frame.locator(".ep-timeline canvas").wait_for(timeout=60_000)
    assert page.locator(".epprof-fallback").is_hidden()
    # The frame takes the height it asks for: nothing to scroll inside.
    embedded = page.locator("iframe.epprof-frame").element_handle().content_frame()
    wait_until(embedded, "document.documentElement.scrollHeight <= window.innerHeight + 1")
    frame.locator("[role=tab][data-tab=breakdown]").click()
    expect(frame.locator(".ep-breakdown")).to_contain_text("z = y.get()")
    outputs = save(page, path, bool)
    assert set(outputs[0]["data"]) == {"text/html", "image/png", "text/plain"}

    reload(page)
    frame.locator(".ep-timeline canvas").wait_for(timeout=90_000)
    no_error(page)


def test_a_live_view_takes_the_static_ones_place_and_is_never_saved(front_end):
    folder, open_notebook = front_end
    path = notebook(folder, "live.ipynb", LIVE, "print(len(live.selection), 'rows')")
    page = open_notebook(path)
    run_all(page)
    viewer = page.locator(".epprof-output .ep-live")
    viewer.wait_for(timeout=60_000)
    assert page.locator("iframe.epprof-frame").count() == 0

    save(page, path, no_widget)
    # The notebook has disposed of the widget's own view: the moved viewer remains.
    page.wait_for_timeout(200)
    assert viewer.is_visible()
    box = viewer.locator("canvas").bounding_box()
    label = viewer.locator(".ep-label:has-text('main thread')").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.15, label["y"] + 17 * 2 + 8)
    viewer.locator(".ep-chain").wait_for()
    page.click(".jp-Notebook .jp-CodeCell .jp-InputArea-editor >> nth=1")
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector("text=2 rows", timeout=60_000)

    save(page, path, no_widget)
    reload(page)
    # While it builds the notebook, JupyterLab may show an output twice.
    expect(page.locator("iframe.epprof-frame")).to_have_count(1, timeout=90_000)
    frame = page.frame_locator("iframe.epprof-frame")
    frame.locator(".ep-timeline canvas").wait_for(timeout=90_000)
    no_error(page)
