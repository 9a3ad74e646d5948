"""Jobs in JupyterLab: in a notebook that it trusts, and in one that it does not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.browser.helpers.compared import pixels

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect

SHOW = "from tests.helpers.ranks import job_view\njob_view(4, absent=[(4, 'started before')])"
SENTENCE = "The others waited for rank 1"
BUSY, WAITING = (0, 114, 178), (213, 94, 0)


def _share(png: bytes, colour: tuple[int, int, int]) -> float:
    return (np.abs(pixels(png) - colour).max(axis=2) <= 8).mean()


def test_a_notebook_shows_strips_that_follow_its_theme(in_jupyterlab):
    in_jupyterlab.run(4, SHOW)
    page, cell = in_jupyterlab.page, in_jupyterlab.cell(4)
    frame = cell.locator("iframe.epprof-frame")
    strips = frame.content_frame.locator(".epprof-strips")
    strips.wait_for()
    assert cell.locator(".epprof-fallback").is_hidden()
    assert SENTENCE in cell.inner_text()
    assert "started before" in cell.locator("table").inner_text()
    busy = "getComputedStyle(document.querySelector('.epprof-busy')).fill"
    assert strips.evaluate(busy) == "rgb(0, 114, 178)"
    page.evaluate("document.body.setAttribute('data-jp-theme-light', 'false')")
    try:
        expect(frame.content_frame.locator("html")).to_have_attribute("data-theme", "dark")
        assert strips.evaluate(busy) == "rgb(86, 180, 233)"
    finally:  # other tests use the same notebook
        page.evaluate("document.body.setAttribute('data-jp-theme-light', 'true')")
    in_jupyterlab.run(4, "None")


def test_a_notebook_that_is_not_trusted_shows_a_picture_and_the_table(untrusted):
    shown = untrusted.nth(1)
    shown.locator("table").wait_for()
    assert shown.locator("iframe, svg, script, style").count() == 0
    assert SENTENCE in shown.inner_text()
    assert "started before" in shown.locator("table").inner_text()
    png = shown.locator("img").screenshot()
    assert _share(png, BUSY) > 0.1
    assert _share(png, WAITING) > 0.05
