"""Views in a real JupyterLab: run, look, save, open again."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.browser

STATIC = """from conftest import known_profile
from epprof_nb.views.page import View
View(known_profile())"""
LIVE = STATIC.replace("View(known_profile())", "live = View(known_profile()).widget()")


def _notebook(folder, name: str, *sources: str):
    cells = [
        {"cell_type": "code", "id": f"cell{i}", "metadata": {}, "outputs": [], "source": source,
         "execution_count": None}
        for i, source in enumerate(sources)
    ]  # fmt: skip
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path = folder / name
    path.write_text(
        json.dumps(
            {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
        )
    )
    return path


def _open(opened, lab, path, **options):
    address, _ = lab
    page = opened(f"{address}/lab/tree/{path.name}?reset", **options)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=90_000)
    page.wait_for_selector("text=Python 3 (ipykernel) | Idle", timeout=90_000)
    return page


def _run_all(page) -> None:
    page.click(".jp-Notebook .jp-CodeCell .jp-InputArea-editor >> nth=0")
    page.keyboard.press("Escape")
    for _ in range(page.locator(".jp-Notebook .jp-CodeCell").count()):
        page.keyboard.press("Shift+Enter")


def _save(page, path, done) -> list[dict]:
    """Save until the file's outputs please `done`; give them back."""
    for _ in range(40):
        page.keyboard.press("Control+s")
        page.wait_for_timeout(400)
        outputs = [o for cell in json.loads(path.read_text())["cells"] for o in cell["outputs"]]
        if done(outputs):
            return outputs
    raise AssertionError(outputs)


def _no_error(page) -> None:
    text = page.inner_text(".jp-Notebook")
    for trouble in ("not found", "Error", "Traceback", "Loading widget"):
        assert trouble not in text


def test_a_static_view_is_shown_saved_and_shown_again(opened, lab):
    _, folder = lab
    path = _notebook(folder, "static.ipynb", STATIC)
    page = _open(opened, lab, path)
    _run_all(page)
    frame = page.frame_locator("iframe.epprof-frame")
    frame.locator(".ep-timeline canvas").wait_for(timeout=60_000)
    assert page.locator(".epprof-fallback").is_hidden()
    # The frame took the height it asked for: nothing to scroll inside.
    page.wait_for_timeout(500)
    inner = frame.locator("html").evaluate("e => [e.scrollHeight, window.innerHeight]")
    assert inner[0] <= inner[1] + 1
    outputs = _save(page, path, bool)
    assert set(outputs[0]["data"]) == {"text/html", "image/png", "text/plain"}

    page.reload()
    frame.locator(".ep-timeline canvas").wait_for(timeout=90_000)
    _no_error(page)


def test_the_theme_of_the_notebook_reaches_the_frame(opened, lab):
    _, folder = lab
    path = _notebook(folder, "theme.ipynb", STATIC)
    page = _open(opened, lab, path)
    _run_all(page)
    frame = page.frame_locator("iframe.epprof-frame")
    frame.locator(".ep-timeline canvas").wait_for(timeout=60_000)
    viewer = frame.locator(".ep-viewer")
    assert viewer.get_attribute("data-theme") == "light"
    page.evaluate("document.body.setAttribute('data-jp-theme-light', 'false')")
    page.wait_for_timeout(300)
    assert viewer.get_attribute("data-theme") == "dark"


def test_a_live_view_takes_the_static_ones_place_and_is_never_saved(opened, lab):
    _, folder = lab
    path = _notebook(folder, "live.ipynb", LIVE, "print(len(live.selection), 'rows')")
    page = _open(opened, lab, path)
    _run_all(page)
    viewer = page.locator(".epprof-output .ep-live")
    viewer.wait_for(timeout=60_000)
    assert page.locator("iframe.epprof-frame").count() == 0

    def no_widget(outputs):
        kinds = {kind for o in outputs for kind in o.get("data", {})}
        return "text/html" in kinds and not any("widget-view" in kind for kind in kinds)

    _save(page, path, no_widget)
    # The notebook disposed of the widget's own view by now: the moved viewer lives on.
    page.wait_for_timeout(500)
    assert viewer.is_visible()
    box = viewer.locator("canvas").bounding_box()
    label = viewer.locator(".ep-label:has-text('main thread')").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.15, label["y"] + 17 * 2 + 8)
    viewer.locator(".ep-chain").wait_for()
    page.click(".jp-Notebook .jp-CodeCell .jp-InputArea-editor >> nth=1")
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector("text=2 rows", timeout=20_000)

    _save(page, path, no_widget)
    page.reload()
    frame = page.frame_locator("iframe.epprof-frame")
    frame.locator(".ep-timeline canvas").wait_for(timeout=90_000)
    _no_error(page)


def test_a_live_view_loads_what_was_thinned_out(opened, lab):
    _, folder = lab
    source = (
        "from epprof_nb.testing import synthetic_profile\n"
        "from epprof_nb.views.page import View\n"
        "live = View(synthetic_profile(activities=150_000)).widget()"
    )
    path = _notebook(folder, "large.ipynb", source)
    page = _open(opened, lab, path)
    _run_all(page)
    viewer = page.locator(".epprof-output .ep-live")
    viewer.wait_for(timeout=90_000)
    note = viewer.locator(".ep-panel .ep-note")
    assert "150,000 activities" in note.text_content()
    viewer.locator("canvas").click(position={"x": 200, "y": 8})
    for _ in range(18):
        page.keyboard.press("w")
    page.wait_for_timeout(1500)
    assert "Drawn is every event of this window" in viewer.locator(".ep-panel").text_content()
    # Keys of the viewer are no commands of the notebook: A would insert a cell, D D delete one.
    for key in "addbs":
        page.keyboard.press(key)
    assert page.locator(".jp-Notebook .jp-CodeCell").count() == 2
