"""Views in a real JupyterLab: themes, progress, a kernel that ends, several views."""

from __future__ import annotations

import numpy as np
import pytest

from tests.browser.helpers.notebooks import (
    STATIC,
    ask,
    in_lab,
    kernel_of,
    no_widget,
    notebook,
    run_all,
    save,
)
from tests.browser.helpers.settling import settled

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect


def test_the_theme_of_the_notebook_reaches_the_frame(in_jupyterlab):
    page = in_jupyterlab.page
    in_jupyterlab.run(3, STATIC)
    frame = in_jupyterlab.cell(3).locator("iframe.epprof-frame").last.content_frame
    frame.locator(".ep-timeline canvas").wait_for(timeout=60_000)
    viewer = frame.locator(".ep-viewer")
    expect(viewer).to_have_attribute("data-theme", "light")
    try:
        page.evaluate("document.body.setAttribute('data-jp-theme-light', 'false')")
        expect(viewer).to_have_attribute("data-theme", "dark")
    finally:  # other tests use the same notebook
        page.evaluate("document.body.setAttribute('data-jp-theme-light', 'true')")
        in_jupyterlab.run(3, "None")


def test_a_live_view_loads_what_was_thinned_out(in_jupyterlab):
    page = in_jupyterlab.show_by(
        "from epprof_nb.testing import synthetic_profile\n"
        "from epprof_nb.views.view import View\n"
        "live = View(synthetic_profile(activities=150_000)).widget()"
    )
    viewer = page.locator(".epprof-output .ep-live")
    note = viewer.locator(".ep-panel .ep-note")
    assert "150,000 activities" in note.text_content()
    cells = page.locator(".jp-Notebook .jp-CodeCell").count()
    viewer.locator("canvas").click(position={"x": 200, "y": 8})
    for _ in range(18):
        page.keyboard.press("w")
    expect(viewer.locator(".ep-panel")).to_contain_text(
        "Every event of this window is drawn", timeout=60_000
    )
    # Keys of the viewer are not commands of the notebook: A would insert a cell, D D delete one.
    for key in "addbs":
        page.keyboard.press(key)
    assert page.locator(".jp-Notebook .jp-CodeCell").count() == cells


PROGRESS = """%%gpuprofile --live prof
import pathlib, numpy as np, epprof_nb
from epprof_nb import host
x = host.empty((200_000,), np.float32)
while not pathlib.Path("progress.seen").exists():
    with epprof_nb.op("attention"):
        for _ in range(20):
            host.launch(np.sin, x, x, name="sin")
    host.synchronize()
"""


def test_progress_moves_while_the_cell_runs_and_is_gone_after_it(opened, lab):
    _, folder = lab
    (folder / "progress.seen").unlink(missing_ok=True)
    path = notebook(folder, "progress.ipynb", "%load_ext epprof_nb", PROGRESS)
    page = in_lab(opened, lab, path)
    run_all(page)
    progress = page.locator("[aria-label='Profile in progress']")
    progress.locator("text=attention").wait_for(timeout=60_000)
    first, place = progress.text_content(), progress.bounding_box()
    expect(progress).not_to_have_text(first)  # the clock, at least
    second = progress.text_content()
    assert "kernels/s" in second
    assert "no records dropped" in second
    # Each update replaces the display, so the picture is taken of its place.
    picture = pixels(page.screenshot(clip=place))
    assert ((picture == (0, 114, 178)).all(axis=2)).sum() > 100  # the bars
    (folder / "progress.seen").touch()
    frame = page.frame_locator("iframe.epprof-frame")
    frame.locator(".ep-timeline canvas").wait_for(timeout=60_000)
    assert progress.count() == 0
    assert "Profile in progress" not in str(save(page, path, no_widget))


def pixels(png: bytes):
    import io

    from matplotlib import image

    return (image.imread(io.BytesIO(png))[..., :3] * 255).round().astype(np.uint8)


def drawn(canvas) -> str:
    """All pixels of a canvas, wherever it lies on the page."""
    return canvas.evaluate("e => e.toDataURL()")


def set_theme(page, theme: str) -> None:
    """Choose one of JupyterLab's own themes, as its menu does."""
    page.click("text=Settings")
    page.hover(".lm-Menu-item:has-text('Theme')")
    page.click(f".lm-Menu-item:has-text('JupyterLab {theme.capitalize()}') >> nth=0")
    value = "true" if theme == "light" else "false"
    page.wait_for_selector(f"body[data-jp-theme-light='{value}']", state="attached")


def test_a_live_view_follows_the_theme_while_it_is_on_the_screen(in_jupyterlab):
    page = in_jupyterlab.show()
    viewer = page.locator(".epprof-output .ep-live")
    try:
        for theme, background in (("dark", (20, 24, 29)), ("light", (255, 255, 255))):
            set_theme(page, theme)
            expect(viewer).to_have_attribute("data-theme", theme)
            for _ in range(100):  # a shade covers it until the window is loaded
                settled(page)
                picture = pixels(viewer.locator(".ep-timeline canvas").screenshot())
                values, counts = np.unique(picture.reshape(-1, 3), axis=0, return_counts=True)
                if tuple(values[counts.argmax()]) == background:
                    break
                page.wait_for_timeout(100)
            else:
                raise AssertionError(values[counts.argmax()])
    finally:  # other tests use the same notebook
        set_theme(page, "light")


def test_a_view_outlives_its_kernel_and_says_that_python_is_silent(opened, lab):
    """First the kernel restarts; then it ends, below a view of the new one."""
    _, folder = lab
    source = (
        "from epprof_nb.testing import synthetic_profile\n"
        "live = synthetic_profile(activities=60_000).timeline().widget()"
    )
    path = notebook(folder, "kernel.ipynb", source)
    page = in_lab(opened, lab, path)
    for method, what in (("POST", "kernels/{}/restart"), ("DELETE", "kernels/{}")):
        run_all(page)
        viewer = page.locator(".epprof-output .ep-live")
        expect(viewer.locator(".ep-silent")).to_have_text("", timeout=60_000)  # a new view
        viewer.locator(".ep-timeline[data-start]").wait_for(timeout=90_000)
        viewer.locator(".ep-headline .ep-count").first.wait_for(timeout=60_000)
        ask(lab, method, what.format(kernel_of(lab, path)))
        settled(page)
        canvas = viewer.locator(".ep-timeline canvas")
        before = pixels(canvas.screenshot())
        canvas.hover(position={"x": 300, "y": 100})
        viewer.locator(".ep-timeline").focus()
        for _ in range(6):
            page.keyboard.press("w")
        settled(page)
        assert (pixels(canvas.screenshot()) != before).any()  # it still zooms
        viewer.locator("text=Python does not answer").wait_for(timeout=60_000)
        viewer.locator("[role=tab][data-tab=timeline]").click()
        assert canvas.is_visible()


def test_two_views_are_apart_and_a_closed_one_gives_its_place_back(in_jupyterlab):
    page = in_jupyterlab.page
    both = (
        "from tests.browser.helpers.known import known_profile\n"
        "one = known_profile().timeline().widget()\n"
        "two = known_profile().timeline().widget()"
    )
    in_jupyterlab.run(0, both)
    viewers = page.locator(".epprof-output .ep-live")
    viewers.nth(1).locator(".ep-timeline[data-start]").wait_for(timeout=60_000)
    settled(page)
    second = viewers.nth(1).locator(".ep-timeline canvas")
    first = viewers.nth(0).locator(".ep-timeline canvas")
    before = drawn(first), drawn(second)
    viewers.nth(0).locator(".ep-timeline").focus()
    for _ in range(6):
        page.keyboard.press("w")
    settled(page)
    assert drawn(first) != before[0]
    assert drawn(second) == before[1]

    in_jupyterlab.run(1, "one.close()")
    page.frame_locator("iframe.epprof-frame").locator("canvas").first.wait_for(timeout=60_000)
    assert page.locator("iframe.epprof-frame").count() == 1
    assert viewers.count() == 1
    assert drawn(viewers.nth(0).locator(".ep-timeline canvas")) == before[1]
    viewers.nth(0).locator("[role=tab][data-tab=source]").click()
    viewers.nth(0).locator(".ep-source tbody tr").nth(2).wait_for()  # Python still answers
