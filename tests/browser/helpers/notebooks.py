"""Notebooks in a real front end: made, opened, run and saved as a user would."""

from __future__ import annotations

import json
import urllib.request

KNOWN = "from tests.browser.helpers.known import known_profile"
STATIC = f"""{KNOWN}
from epprof_nb.views.view import View
View(known_profile())"""
LIVE = STATIC.replace("View(known_profile())", "live = View(known_profile()).widget()")


def notebook(folder, name: str, *sources: str, shown=()):
    """A notebook of code cells, the first of which have shown these MIME bundles; its path."""
    outputs = [[{"output_type": "display_data", "metadata": {}, "data": data}] for data in shown]
    cells = [
        {"cell_type": "code", "id": f"cell{i}", "metadata": {}, "source": source,
         "outputs": outputs[i] if i < len(outputs) else [], "execution_count": None}
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


def in_lab(opened, lab, path, **options):
    """The notebook in JupyterLab, its kernel idle."""
    address, _ = lab
    page = opened(f"{address}/lab/tree/{path.name}?reset", **options)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=90_000)
    page.wait_for_selector("text=Python 3 (ipykernel) | Idle", timeout=90_000)
    return page


def in_notebook7(opened, served, path, **options):
    """The notebook in Notebook 7, its kernel idle."""
    address, _ = served
    page = opened(f"{address}/notebooks/{path.name}?reset", **options)
    page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=90_000)
    for _ in range(900):
        sessions = ask(served, "GET", "sessions")
        states = [s["kernel"]["execution_state"] for s in sessions if s["path"] == path.name]
        if "idle" in states:
            break
        page.wait_for_timeout(100)
    else:
        raise AssertionError(sessions)
    return page


def reload(page) -> None:
    """Load the notebook of the page again, and no notebook that another page has opened."""
    page.goto(f"{page.url.partition('?')[0]}?reset")


def run_all(page) -> None:
    """Run every cell, one after the other."""
    page.click(".jp-Notebook .jp-CodeCell .jp-InputArea-editor >> nth=0")
    page.keyboard.press("Escape")
    for _ in range(page.locator(".jp-Notebook .jp-CodeCell").count()):
        page.keyboard.press("Shift+Enter")


def save(page, path, done) -> list[dict]:
    """Save until the outputs in the file satisfy `done`; return them."""
    page.click(".jp-Notebook .jp-CodeCell .jp-InputArea-editor >> nth=0")  # not into a frame
    outputs: list[dict] = []
    for _ in range(60):
        before = path.stat().st_mtime_ns
        page.keyboard.press("Control+s")
        for _ in range(20):
            page.wait_for_timeout(50)
            if path.stat().st_mtime_ns == before:
                continue
            try:
                saved = json.loads(path.read_text())
            except json.JSONDecodeError:  # the server is still writing
                continue
            outputs = [output for cell in saved["cells"] for output in cell["outputs"]]
            if done(outputs):
                return outputs
            break
    raise AssertionError(outputs)


def no_error(page) -> None:
    """The notebook shows no error."""
    text = page.inner_text(".jp-Notebook")
    for trouble in ("not found", "Error", "Traceback", "Loading widget"):
        assert trouble not in text


def no_widget(outputs) -> bool:
    """Whether the saved outputs hold the static view, and no widget."""
    kinds = {kind for o in outputs for kind in o.get("data", {})}
    return "text/html" in kinds and not any("widget-view" in kind for kind in kinds)


def ask(lab, method: str, what: str) -> object:
    """Ask the server's REST interface."""
    request = urllib.request.Request(f"{lab[0]}/api/{what}", method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def kernel_of(lab, path) -> str:
    """Id of the kernel that runs a notebook."""
    sessions = ask(lab, "GET", "sessions")
    return next(s["kernel"]["id"] for s in sessions if s["path"] == path.name)
