"""Selection between a live view and Python, in a real JupyterLab."""

from __future__ import annotations

import pytest

from tests.browser.notebooks import in_lab, notebook, run_all

pytestmark = pytest.mark.browser

LIVE = """from tests.browser.known import known_profile
from epprof_nb.views.page import View
profile = known_profile()
live = View(profile).widget()"""
TOLD = "print('chosen', sorted(live.selection.index), live.selected_span)"
COPIES = "frame = profile.activities\nlive.select(frame[frame['kind'] == 'memcpy'][::-1])"


@pytest.fixture
def lab_view(opened, lab):
    """The page, and the live view in it, of a notebook with the cells above."""
    _, folder = lab
    path = notebook(folder, "selection.ipynb", LIVE, TOLD, COPIES)
    page = in_lab(opened, lab, path)
    run_all(page)
    viewer = page.locator(".epprof-output .ep-live")
    viewer.wait_for(timeout=60_000)
    # The last cell selected the copies; the tests begin with nothing.
    viewer.locator(".ep-many").wait_for(timeout=20_000)
    viewer.locator(".ep-timeline").press("Escape")
    viewer.locator(".ep-timeline").press("0")
    page.wait_for_timeout(400)
    return page, viewer


def _run(page, number: int, expect: str) -> None:
    page.click(f".jp-Notebook .jp-CodeCell .jp-InputArea-editor >> nth={number}")
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector(f"text={expect}", timeout=20_000)


def _place(viewer, label: str) -> tuple[dict, float]:
    viewer.locator(".ep-tabs").scroll_into_view_if_needed()
    box = viewer.locator(".ep-stage canvas").first.bounding_box()
    lane = viewer.locator(f".ep-label:has-text('{label}')").first.bounding_box()
    return box, lane["y"] + 8


def test_what_is_chosen_is_a_dataframe_in_python(lab_view):
    page, viewer = lab_view
    box, y = _place(viewer, "stream 7")
    page.mouse.click(box["x"] + box["width"] * 0.37, y)
    viewer.locator(".ep-leaf").wait_for()
    assert "gemm" in viewer.locator(".ep-panel").inner_text()
    _run(page, 1, "chosen [2] None")
    box, _ = _place(viewer, "stream 7")
    page.mouse.move(box["x"] + box["width"] * 0.41, box["y"] + 9)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 9, steps=4)
    page.mouse.up()
    viewer.locator(".ep-timeline").press("Escape")  # the event; the span stays
    kernels = viewer.locator(".ep-span-numbers > div:has(dt:text-is('kernels')) dd")
    kernels.wait_for()
    assert kernels.inner_text() == "1"
    # From 41 to 70 ms: the end of a kernel, a set, and a wait.
    _run(page, 1, "chosen [2, 3, 5] (4")


def test_python_lights_the_rows_of_a_dataframe(lab_view):
    page, viewer = lab_view
    box, copies = _place(viewer, "stream 13")
    page.mouse.move(5, 5)
    page.click(".jp-Notebook .jp-CodeCell .jp-InputArea-editor >> nth=2")
    page.keyboard.press("Shift+Enter")
    viewer.locator(".ep-many").wait_for(timeout=20_000)
    assert "2 rows of a DataFrame" in viewer.locator(".ep-panel").inner_text().replace("\n", " ")
    viewer.locator(".ep-timeline").press("0")
    page.wait_for_timeout(400)
    _, stream = _place(viewer, "stream 7")
    colours = viewer.locator(".ep-stage canvas").first.evaluate(
        """(canvas, places) => places.map(([x, y]) => {
          const ratio = canvas.width / canvas.clientWidth;
          const data = canvas.getContext("2d").getImageData(x * ratio, y * ratio, 8, 1).data;
          return [...data];
        })""",
        [[box["width"] * 0.84, copies - box["y"]], [box["width"] * 0.22, stream - box["y"] + 6]],
    )
    lit = {tuple(colours[0][i : i + 3]) for i in range(0, 32, 4)}
    dim = {tuple(colours[1][i : i + 3]) for i in range(0, 32, 4)}
    assert (230, 159, 0) in lit
    assert (0, 114, 178) not in dim
    _run(page, 1, "chosen [0, 4] None")
