"""The explanation below a cell of JupyterLab that ran out of memory, and in the saved notebook."""

from __future__ import annotations

import pytest

from tests.browser.helpers.notebooks import in_lab, notebook, run_all, save

pytestmark = pytest.mark.browser

LOAD = """%load_ext epprof_nb
from epprof_nb import host
host.set_memory_limit(1_000_000_000)"""
CACHE = "cache = [host.empty((1000, 25_000)) for _ in range(4)]\nhost.empty(10_000_000)"
FORWARD = """def forward(x):
    hidden = host.empty(x.shape)
    return forward(hidden)"""
CELLS = (LOAD, CACHE, FORWARD, "x = host.empty(25_000_000)\nforward(x)")


def test_the_cell_is_explained_in_both_themes_and_in_the_saved_notebook(opened, lab):
    path = notebook(lab[1], "oom.ipynb", *CELLS)
    page = in_lab(opened, lab, path)
    run_all(page)
    shown = page.locator(".epprof-oom")
    shown.wait_for(timeout=60_000)
    rows = [row.inner_text().split("\n")[0] for row in shown.locator("tbody tr").all()]
    assert [row.split("\t")[0] for row in rows][:2] == ["cache", "hidden in forward (In[3]:3)"]
    colour = "e => getComputedStyle(e).color"
    headline = shown.locator("h4")
    light = headline.evaluate(colour)
    page.click("text=Settings >> nth=0")
    page.hover("text=Theme >> nth=0")
    page.click("text=JupyterLab Dark")
    page.wait_for_selector("body[data-jp-theme-light='false']", state="attached")
    assert headline.evaluate(colour) != light
    page.click("text=Settings >> nth=0")
    page.hover("text=Theme >> nth=0")
    page.click("text=JupyterLab Light")
    outputs = save(page, path, lambda found: any("text/html" in o.get("data", {}) for o in found))
    (data,) = [o["data"] for o in outputs if "text/html" in o.get("data", {})]
    text = "".join(data["text/plain"])
    assert text.startswith("Out of memory on host device: line 2 of In[3] in `forward` requested")
    html = "".join(data["text/html"])
    assert all(words in html for words in ("Too little was free: 60.0 MB.", "400 MB", "43 %"))
