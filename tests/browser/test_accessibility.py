"""Views without a mouse and for screen readers."""

from __future__ import annotations

import pytest

from epprof_nb.views.view import View
from tests.browser.helpers.pixels import canvas, click, lane_y, ready, x_at
from tests.browser.helpers.settling import settled
from tests.paths import ROOT

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect

AXE = ROOT / "epprof_nb/frontend/node_modules/axe-core/axe.min.js"


def _window(page, place=".ep-timeline") -> tuple[int, int]:
    """Return the window in ns, after zooming and panning have ended."""
    return tuple(settled(page).locator(place).evaluate("e => [+e.dataset.start, +e.dataset.end]"))


def _tab_to(page, selector: str) -> None:
    """Press Tab until the focus is there, as a reader without a mouse does."""
    for _ in range(60):
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {selector}")


def test_all_is_within_reach_of_the_keyboard(opened, page_file):
    page = ready(opened(page_file.as_uri()))
    _tab_to(page, "[role=tab][data-tab=timeline]")
    _tab_to(page, ".ep-timeline")
    whole = _window(page)
    for _ in range(4):
        page.keyboard.press("w")
    near = _window(page)
    assert near[1] - near[0] < (whole[1] - whole[0]) / 2
    page.keyboard.press("d")
    moved = _window(page)
    assert moved[0] > near[0]
    assert moved[1] - moved[0] == pytest.approx(near[1] - near[0], abs=2)
    page.keyboard.press("0")
    assert _window(page) == whole

    # Search leads to an event and its details; Escape closes it.
    page.keyboard.press("/")
    page.keyboard.type("gemm")
    page.keyboard.press("Enter")
    page.locator(".ep-panel .ep-groups").wait_for()
    assert "gemm" in page.text_content(".ep-panel")
    page.keyboard.press("Escape")
    assert page.locator(".ep-search").is_hidden()
    assert page.evaluate("document.activeElement.className") == "ep-timeline"

    page.keyboard.press("?")
    assert page.locator("dialog.ep-help").is_visible()
    page.keyboard.press("Escape")
    page.locator("dialog.ep-help").wait_for(state="hidden")
    assert page.evaluate("document.activeElement.className") == "ep-timeline"

    for _ in range(20):
        if page.evaluate("document.activeElement.matches('[role=tab]')"):
            break
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowRight")
    assert page.get_attribute("[data-tab=breakdown]", "aria-selected") == "true"
    _tab_to(page, "[data-by=kernel]")
    page.keyboard.press("Enter")
    assert page.get_attribute("[data-by=kernel]", "aria-pressed") == "true"
    _tab_to(page, ".ep-breakdown input[type=search]")
    page.keyboard.type("gemm")
    expect(page.locator(".ep-breakdown tbody tr")).to_have_count(1)
    _tab_to(page, "th[data-column=device_ns] button")
    page.keyboard.press("Enter")
    assert page.get_attribute("th[data-column=device_ns]", "aria-sort") == "ascending"
    _tab_to(page, ".ep-breakdown tbody *")
    page.keyboard.press("Enter")
    page.locator("[data-tab=timeline][aria-selected=true]").wait_for()
    expect(page.locator(".ep-panel")).to_contain_text("gemm")
    start, end = _window(page)
    assert start <= 30_000_000
    assert end >= 45_000_000


def test_of_two_timelines_only_the_focused_one_takes_keys(opened, profile, tmp_path):
    path = tmp_path / "notebook.html"
    path.write_text("\n".join([View(profile).mimebundle()["text/html"]] * 2))
    page = opened(path.as_uri())
    for i in range(2):
        page.locator("iframe").nth(i).scroll_into_view_if_needed()
        page.frames[i + 1].wait_for_selector(".ep-timeline[data-start]")
    first, second = page.frames[1:]
    whole = _window(first), _window(second)
    first.locator(".ep-timeline").focus()
    page.keyboard.press("w")
    zoomed = _window(first)
    assert zoomed != whole[0]
    assert _window(second) == whole[1]
    second.locator(".ep-timeline").focus()
    page.keyboard.press("w")
    page.keyboard.press("w")
    assert _window(first) == zoomed
    assert _window(second) not in (whole[1], zoomed)


def _tree(page):
    page.click("[role=tab][data-tab=breakdown]")
    page.click("[data-by=tree]")
    page.click(".ep-tree summary")
    page.locator("[role=treegrid] tbody tr").first.wait_for()


def _search(page):
    page.locator(".ep-timeline").press("/")
    page.keyboard.type("gemm|DtoH")
    page.keyboard.press("Enter")
    page.locator(".ep-leaf").wait_for()


def _details(page):
    click(page, 37, lane_y(page, "stream 7"))
    page.locator(".ep-group dl").first.wait_for()
    box = canvas(page).bounding_box()
    page.mouse.move(box["x"] + x_at(page, 20), box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + x_at(page, 60), box["y"] + 8, steps=3)
    page.mouse.up()
    page.locator(".ep-range-tables").wait_for()


STATES = {
    "timeline": lambda page: page.click("[role=tab][data-tab=timeline]"),
    "breakdown": lambda page: page.click("[role=tab][data-tab=breakdown]"),
    "source": lambda page: page.click("[role=tab][data-tab=source]"),
    "tree": _tree,
    "help": lambda page: page.locator(".ep-timeline").press("?"),
    "search": _search,
    "details": _details,
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened, page_file, state, theme):
    page = ready(opened(page_file.as_uri(), theme=theme))
    STATES[state](page)
    # The themes differ in their colours alone.
    _serious_faults_are_none(page, ["color-contrast"] if theme == "dark" else None)


def test_axe_finds_nothing_serious_in_jupyterlab(in_jupyterlab):
    page = in_jupyterlab.show()
    # The markup is that of the exported page, within the notebook's; these show most of it.
    for state in ("details", "tree", "help"):
        page.click("[role=tab][data-tab=timeline]")
        STATES[state](page)
        _serious_faults_are_none(page)
        page.keyboard.press("Escape")


def _serious_faults_are_none(page, rules: list[str] | None = None) -> None:
    if not AXE.exists():
        pytest.skip("needs axe-core: run npm install in epprof_nb/frontend")
    settled(page)
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(AXE.read_text())
    found = page.evaluate(
        "(rules) => axe.run(document.querySelector('#epprof, .epprof-output'),"
        " rules ? { runOnly: rules } : {})",
        rules,
    )
    serious = [
        (one["id"], [node["html"][:200] for node in one["nodes"]])
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert found["passes"]
