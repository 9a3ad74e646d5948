"""The page of a job: numbers by pointer and keyboard, and a selection for the timeline."""

from __future__ import annotations

import pytest

from tests.browser.helpers.known import HOSTILE, known_profile
from tests.browser.helpers.pixels import ready
from tests.browser.helpers.settling import wait_until
from tests.helpers.ranks import job_view
from tests.paths import ROOT

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect

AXE = ROOT / "epprof_nb/frontend/node_modules/axe-core/axe.min.js"


@pytest.fixture
def job_page(opened, tmp_path):
    """A function that opens the page of a job of some ranks."""

    def show(count, *, window=None, options=None, **more):
        path = tmp_path / "job.html"
        job_view(count, window=window, **more).write_html(path)
        return opened(path.as_uri(), **(options or {}))

    return show


def _about(page) -> str:
    return page.locator(".epprof-about").inner_text()


def _cell(page, time: float, row: int) -> tuple[float, float]:
    """Position of a share of the time in a row of a job of 4 ranks."""
    box = page.locator(".epprof-strips svg").bounding_box()
    scale = box["width"] / 900
    return box["x"] + (116 + time * 680) * scale, box["y"] + (24 + (row + 0.5) * 28) * scale


def test_the_pointer_shows_the_numbers_of_a_strip(job_page):
    page = job_page(4)
    page.locator(".epprof-strips").wait_for()
    assert "drag over strips" in _about(page)
    page.mouse.move(*_cell(page, 0.07, 0))  # 14 of 200 ms
    expect(page.locator(".epprof-about")).to_contain_text(
        "devices busy 100 %, waiting for a later rank 100 %"
    )
    page.mouse.move(*_cell(page, 0.07, 1))
    assert _about(page).startswith("rank 1 at 14.0 ms: devices busy 100 %")
    assert "waiting" not in _about(page)
    page.mouse.move(5, 5)
    assert "drag over strips" in _about(page)


def test_a_drag_selects_a_window_whose_code_can_be_copied(job_page):
    page = job_page(4)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator(".epprof-strips").wait_for()
    page.mouse.move(*_cell(page, 0.2505, 1))
    page.mouse.down()
    page.mouse.move(*_cell(page, 0.4995, 2), steps=4)
    page.mouse.up()
    code = "job.window(50_000_000, 100_000_000, ranks=[1, 2]).timeline()"
    assert code in _about(page)
    page.get_by_role("button", name="copy").click()
    page.get_by_role("button", name="copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == code


def test_the_keyboard_reaches_each_cell_and_selects(job_page):
    page = job_page(4)
    page.locator(".epprof-strips").wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "epprof-strips"
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    assert _about(page).startswith("rank 2 at 0 s: devices busy 100 %")
    page.keyboard.press("Shift+End")
    assert "job.window(0, 200_000_000, ranks=[2])" in _about(page)
    page.keyboard.press("Shift+ArrowDown")
    assert "ranks=[2, 3])" in _about(page)
    page.keyboard.press("Escape")
    assert "job.window" not in _about(page)


def test_a_selection_zooms_the_timeline_of_the_page(job_page):
    page = ready(job_page(2, window=lambda ranks: known_profile()))
    assert "Timeline of 2 ranks: 0, 1." in page.locator(".epprof-page").inner_text()
    page.mouse.move(*_cell(page, 0.1005, 0))
    page.mouse.down()
    page.mouse.move(*_cell(page, 0.1995, 1), steps=4)
    page.mouse.up()
    wait_until(
        page,
        """() => {
          const { start, end } = document.querySelector(".ep-timeline").dataset;
          return Math.abs(start - 2e7) < 1e6 && Math.abs(end - 4e7) < 1e6;
        }""",
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [420, 1300])
@pytest.mark.skipif(
    not AXE.exists(), reason="needs axe-core: run npm install in epprof_nb/frontend"
)
def test_a_page_is_accessible_and_does_not_scroll_sideways(job_page, theme, width):
    for window in (None, lambda ranks: known_profile()):
        page = job_page(
            4,
            window=window,
            absent=[(4, "started before")],
            options={"theme": theme, "width": width},
        )
        page.locator(".epprof-strips").wait_for()
        if window:
            ready(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.add_script_tag(content=AXE.read_text())
        result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        assert [(v["id"], v["nodes"][0]["html"]) for v in result["violations"]] == []


def test_a_hostile_host_and_command_run_nothing(job_page):
    page = job_page(2, hostname=HOSTILE, command=HOSTILE, absent=[(2, HOSTILE)])
    page.locator(".epprof-strips").wait_for()
    assert page.locator("table").inner_text().count("<script>") == 3
    assert page.title() == "Job: 2 of 3 processes recorded"
