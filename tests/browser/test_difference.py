"""The flame graph of a comparison: widths, colours, removed stacks, keys, and without scripts."""

from __future__ import annotations

import re

import pytest

import epprof_nb
from tests.browser.helpers.github import sanitised
from tests.browser.helpers.settling import settled
from tests.helpers.changed_stacks import recording

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect


@pytest.fixture(scope="module")
def comparison():
    return epprof_nb.compare(recording(), recording(changed=True))


@pytest.fixture(params=["light", "dark"])
def page(opened, comparison, tmp_path, request):
    path = tmp_path / "page.html"
    comparison.to_html(path)
    page = opened(path.as_uri(), theme=request.param)
    page.wait_for_selector(".ep-icicle canvas")
    settled(page)
    return page


def _names(page):
    table = page.locator(".ep-tree:visible")
    if table.get_attribute("open") is None:
        table.locator("summary").click()
    table.locator("tbody th").first.wait_for()
    return table.locator("tbody th").all_inner_texts()


def test_removed_stacks_and_frames_of_libraries_are_shown_on_request(page):
    assert "log_metrics (log.py:3)" not in _names(page)
    page.click("text=removed stacks")
    assert "log_metrics (log.py:3)" in _names(page)
    assert "linear (nn.py:9)" not in _names(page)
    page.click("text=library frames")
    assert {"linear (nn.py:9)", "log_metrics (log.py:3)"} <= {*_names(page)}
    page.click("text=removed stacks")
    assert "log_metrics (log.py:3)" not in _names(page)


def test_it_says_what_it_does_not_show_and_counts_removed_stacks(page):
    text = page.locator(".ep-difference").inner_text()
    assert re.search(r"Device time \S+ %; wall time \S+", text)
    legend = page.locator(".ep-changes")
    assert re.search(r"\b1 stack removed \(.+\), hidden", legend.inner_text())
    page.click("text=removed stacks")
    assert re.search(r"\b1 stack removed \(.+\), shown", legend.inner_text())


def test_the_legend_has_the_colours_of_the_boxes(page):
    swatches = page.locator(".ep-changes .ep-swatch").evaluate_all(
        "all => all.map(e => getComputedStyle(e).backgroundColor)"
    )
    assert len(set(swatches)) == 7
    page.click("text=removed stacks")
    settled(page)
    drawn = page.locator(".ep-icicle canvas").evaluate(
        """(canvas) => {
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          const all = new Set();
          for (let i = 0; i < data.length; i += 4)
            all.add(`rgb(${data[i]}, ${data[i + 1]}, ${data[i + 2]})`);
          return [...all];
        }"""
    )
    removed, same, added = swatches[0], swatches[3], swatches[6]
    assert {removed, same, added} <= {*drawn}


def test_a_box_is_reached_by_key_and_tells_both_sides(page):
    page.focus(".ep-icicle-stage")
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    details = page.locator(".ep-icicle .ep-panel")
    expect(details).to_contain_text("train (In[3]:5)")
    expect(details).to_contain_text("y = forward(x)")
    expect(details).to_contain_text("60.0 µs → 97.1 µs (+62 %)")
    page.keyboard.press("Enter")
    assert page.locator(".ep-chain [aria-current]").inner_text() == "train (In[3]:5)"


def test_a_click_on_a_measure_changes_the_widths(page):
    page.click("[data-measure=waits]")
    settled(page)
    assert _names(page) == ["session", "<module> (In[8]:2)", "train (In[3]:8)"]


def test_a_notebook_without_scripts_has_a_picture(opened, comparison, tmp_path):
    path = tmp_path / "page.html"
    html = comparison._repr_mimebundle_()["text/html"]
    path.write_text(f'<!doctype html><meta charset="utf-8">{sanitised(html)}')
    page = opened(path.as_uri())
    assert page.locator("iframe, script, svg").count() == 0
    picture = page.get_by_alt_text(re.compile("^Device time by Python stack"))
    assert picture.bounding_box()["width"] > 500
    assert "removed stacks" not in page.inner_text("body")
