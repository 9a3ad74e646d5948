"""Comparisons in JupyterLab: in a notebook that it trusts, and in one that it does not."""

from __future__ import annotations

import pytest

from tests.browser.helpers.compared import LOADER, holds_the_table_alone, is_drawn
from tests.browser.helpers.settling import wait_until

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect

SHOW = "from tests.browser.helpers.compared import comparison\ncomparison()"


def _dark(page, is_dark: bool) -> None:
    theme = "false" if is_dark else "true"
    page.evaluate(f"document.body.setAttribute('data-jp-theme-light', '{theme}')")


def test_a_notebook_that_is_not_trusted_shows_a_picture_and_the_table(untrusted):
    output = untrusted.first
    output.locator("table").first.wait_for()
    assert output.locator("iframe, svg, script, style").count() == 0
    picture = output.locator("img")
    assert picture.is_visible()
    assert is_drawn(picture.screenshot())
    holds_the_table_alone(output.inner_text())
    first = output.locator("tbody tr").first.locator("td")
    assert first.first.inner_text() == LOADER
    assert first.nth(2).inner_text().replace("\N{NO-BREAK SPACE}", " ") == "-5.00 ms"


def test_the_frame_follows_the_theme_of_the_notebook(in_jupyterlab):
    in_jupyterlab.run(4, SHOW)
    page, cell = in_jupyterlab.page, in_jupyterlab.cell(4)
    frame = cell.locator("iframe.epprof-frame")
    drawing = frame.content_frame.locator("svg")
    drawing.wait_for()
    assert cell.locator(".epprof-fallback").is_hidden()
    colour = "getComputedStyle(document.body).color"
    try:
        _dark(page, True)
        expect(frame.content_frame.locator("html")).to_have_attribute("data-theme", "dark")
        assert drawing.evaluate(colour) == "rgb(230, 234, 240)"
    finally:  # other tests use the same notebook
        _dark(page, False)
    expect(frame.content_frame.locator("html")).to_have_attribute("data-theme", "light")
    assert drawing.evaluate(colour) == "rgb(27, 36, 48)"
    # The frame is as high as the drawing.
    height = drawing.evaluate("(svg) => svg.getBoundingClientRect().height")
    wait_until(
        page,
        "([frame, height]) => Math.abs(frame.offsetHeight - height) <= 1",
        arg=[frame.element_handle(), max(height, 80)],
    )
    in_jupyterlab.run(4, "None")
