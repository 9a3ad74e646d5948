"""Comparisons after sanitizers, on narrow pages, and on dark ones."""

from __future__ import annotations

import re

import nh3
import numpy as np
import pytest

from tests.browser.helpers.compared import comparison, holds_the_table_alone, is_drawn, pixels
from tests.browser.helpers.github import sanitised

pytestmark = pytest.mark.browser

# Elements whose contents VS Code's sanitizer, DOMPurify, removes with them (FORBID_CONTENTS).
_WITH_CONTENTS = {"iframe", "noscript", "script", "style", "svg", "template", "title", "video"}


@pytest.fixture(scope="module")
def html() -> str:
    return comparison()._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize("width", [500, 700, 1200])
def test_names_are_legible_at_any_width(opened, html, tmp_path, width):
    path = tmp_path / "page.html"
    path.write_text(f'<!doctype html><meta charset="utf-8">{html}')
    page = opened(path.as_uri(), width=width)
    for name in page.locator(".epprof-table tbody td:first-child").all():
        assert name.bounding_box()["width"] > 110
    # The page itself does not scroll sideways.
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_picture_is_seen_on_light_and_on_dark_pages(opened, html, tmp_path, theme):
    path = tmp_path / "page.html"
    colour = {"light": "#ffffff", "dark": "#111111"}[theme]
    image = re.search(r"<img[^>]*>", html)[0]
    path.write_text(f'<!doctype html><body style="margin:0;background:{colour}">{image}')
    page = opened(path.as_uri())
    shown = pixels(page.locator("img").screenshot())
    paper = np.array([255, 255, 255])
    assert np.abs(shown[:, :140] - paper).max(axis=2).mean() > 1  # labels
    assert (np.abs(shown - paper).max(axis=2) <= 2).mean() > 0.3
    assert is_drawn(page.locator("img").screenshot())


def _vscode(html: str) -> str:
    everywhere = {"alt", "width", "src", "align", "class", "style", "title", "scope"}
    elements = {"div", "p", "strong", "em", "code", "img", "table", "thead", "tbody", "tr", "th"}
    elements |= {"td"}
    return nh3.clean(
        html, tags=elements, attributes=dict.fromkeys(elements, everywhere),
        clean_content_tags=_WITH_CONTENTS, url_schemes={"http", "https", "data"}, link_rel=None,
    )  # fmt: skip


@pytest.mark.parametrize("sanitizer", [sanitised, nh3.clean, _vscode])
def test_sanitizers_leave_the_table_and_nothing_of_the_picture(opened, html, tmp_path, sanitizer):
    path = tmp_path / "page.html"
    path.write_text(f'<!doctype html><meta charset="utf-8">{sanitizer(html)}')
    page = opened(path.as_uri())
    assert page.locator("iframe, svg, script, style").count() == 0
    holds_the_table_alone(page.inner_text("body"))
    assert page.locator("img").get_attribute("alt").startswith("Timelines of a typical repeat")
    if sanitizer is not nh3.clean:  # it removes embedded pictures
        assert is_drawn(page.locator("img").screenshot())


def test_github_shows_names_that_can_be_read(opened, html, tmp_path):
    path = tmp_path / "page.html"
    shown = sanitised(html)
    path.write_text(f'<!doctype html><meta charset="utf-8">{shown}')
    page = opened(path.as_uri(), width=700)
    assert page.locator("tbody td").first.bounding_box()["width"] > 110
