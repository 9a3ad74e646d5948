"""The breakdown's tree in a browser: widths, zooming, searching, keys, and as a table."""

from __future__ import annotations

from itertools import pairwise

import pytest

from epprof_nb.testing import synthetic_profile
from tests.browser.helpers.settling import settled

pytestmark = pytest.mark.browser


@pytest.fixture
def page(exported):
    """The tree of a training loop."""
    return _tree(exported("loop"))


def _tree(page):
    page.click("[role=tab][data-tab=breakdown]")
    page.click("[data-by=tree]")
    page.wait_for_selector(".ep-icicle canvas")
    settled(page)
    return page


def _width(page) -> float:
    return page.locator(".ep-icicle canvas").evaluate("e => e.clientWidth")


def _colour(page, share: float, depth: int) -> str:
    """Colour of the icicle at a share of its width, near the lower edge of a row."""
    red, green, blue = page.locator(".ep-icicle canvas").evaluate(
        """(canvas, [share, y]) => {
          const ratio = canvas.width / canvas.clientWidth;
          const at = [share * canvas.width, y * ratio, 1, 1];
          return [...canvas.getContext("2d").getImageData(...at).data].slice(0, 3);
        }""",
        [share, depth * 20 + 17],
    )
    return f"#{red:02x}{green:02x}{blue:02x}"


OP, KERNEL, EMPTY = "#c9e0f0", "#0072b2", "#ffffff"


def _click_box(page, share: float, depth: int) -> None:
    position = {"x": share * _width(page), "y": depth * 20 + 10}
    page.click(".ep-icicle canvas", position=position)
    settled(page)


def test_boxes_are_as_wide_as_their_device_time(page):
    by_path = synthetic_profile(activities=3000).by_path()
    backward = by_path[by_path["name"] == "loss.backward()"].iloc[0]
    edge = backward["device_ns"] / by_path["device_ns"].iloc[0]
    # The backward pass is the longest line: it comes first, its kernels right below it.
    assert _colour(page, edge - 0.01, 3) == OP
    assert _colour(page, edge - 0.003, 4) == KERNEL
    assert _colour(page, edge + 0.01, 4) == OP  # the range of the forward pass
    assert _colour(page, edge - 0.01, 5) == EMPTY


def test_a_click_shows_details_and_leaves_the_zoom(page):
    _click_box(page, 0.7, 3)
    assert "21.4 ms" in page.text_content(".ep-icicle .ep-panel")
    assert page.locator(".ep-icicle .ep-chain button").count() == 1
    page.click("text=zoom in")
    assert page.locator(".ep-icicle .ep-chain button").count() == 4


def test_a_double_click_zooms_into_a_subtree_and_crumbs_lead_out(page):
    position = {"x": 0.7 * _width(page), "y": 3 * 20 + 10}
    page.dblclick(".ep-icicle canvas", position=position)
    settled(page)
    crumbs = page.locator(".ep-icicle .ep-chain button").all_text_contents()
    assert crumbs == ["session", "In[3]", "for x, y in batches:", 'with epprof_nb…p("forward"):']
    assert _colour(page, 0.3, 6) == OP  # a range of the forward pass, now wide
    assert "21.4 ms" in page.text_content(".ep-icicle .ep-panel")
    page.click(".ep-icicle .ep-chain button >> text=session")
    settled(page)
    assert page.locator(".ep-icicle .ep-chain button").count() == 1
    assert _colour(page, 0.3, 6) == EMPTY


def test_the_tree_is_walked_by_keyboard(page):
    page.locator(".ep-icicle-stage").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    told = page.locator(".ep-icicle .ep-panel")
    assert "forward" in told.text_content()
    page.keyboard.press("Enter")
    assert page.locator(".ep-icicle [aria-current]").text_content().endswith('("forward"):')
    page.keyboard.press("Escape")
    assert page.locator(".ep-icicle [aria-current]").text_content() == "for x, y in batches:"
    page.keyboard.press("ArrowUp")
    assert "for x, y" in told.text_content()


def test_searching_the_tree_lights_what_fits(page):
    page.fill(".ep-tools input", "gemm")
    page.locator(".ep-filter-status >> text=found").wait_for()
    settled(page)
    frame = synthetic_profile(activities=3000).by_kernel()
    share = frame[frame["name"].str.contains("gemm")]["share"].sum()
    assert f"{share * 100:.0f} %" in page.text_content(".ep-filter-status")
    assert _colour(page, 0.01, 4) == KERNEL
    assert _colour(page, 0.3, 1) not in (OP, EMPTY)


def test_the_tree_measures_host_time_too(page):
    page.click("[data-measure=host]")
    settled(page)
    by_path = synthetic_profile(activities=3000).by_path()
    loop = by_path[by_path["name"] == "for x, y in batches:"].iloc[0]
    build = by_path[by_path["name"].str.startswith("model, optimizer")].iloc[0]
    whole = by_path["host_ns"].iloc[0]
    assert _colour(page, loop["host_ns"] / whole - 0.01, 2) == OP
    assert _colour(page, (loop["host_ns"] + build["host_ns"] / 2) / whole, 2) == "#e9ecf0"


def test_the_tree_is_a_table_too(page):
    page.click(".ep-tree summary")
    rows = page.locator("[role=treegrid] tbody tr")
    rows.first.wait_for()
    levels = rows.evaluate_all("all => all.map(e => +e.ariaLevel)")
    assert levels[:4] == [1, 2, 3, 4]
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert "71.3 ms" in rows.first.text_content()


def test_a_box_leads_to_the_timeline(page):
    _click_box(page, 0.01, 4)
    page.click("text=show in the timeline")
    assert page.locator("[data-tab=timeline][aria-selected=true]").count() == 1


def test_hostile_names_stay_text_in_the_tree(shows):
    page = _tree(shows())
    page.click(".ep-tree summary")
    page.hover(".ep-icicle canvas", position={"x": 30, "y": 90})
    assert page.title() != "hacked"
    assert page.locator(".ep-viewer script, .ep-viewer img").count() == 0
