"""The tab of the modules in a browser: its table, its tree, and the way to the timeline."""

from __future__ import annotations

import pytest

from epprof_nb.profiles import Profile
from tests.browser.helpers.known import modules
from tests.browser.helpers.settling import settled

pytestmark = pytest.mark.browser

TABS = "[role=tab]"


def _names(page, tab: str) -> list[str]:
    return page.locator(f"{TABS}[data-tab={tab}]").all_text_contents()


def _open(page):
    page.click(f"{TABS}[data-tab=modules]")
    page.wait_for_selector(".ep-table-place tbody tr")
    return page


def _selected(page, text: str) -> None:
    """Wait until the timeline is open and says how many events of a name are selected."""
    from playwright.sync_api import expect

    page.wait_for_selector(".ep-timeline:visible")
    expect(page.locator("section:visible")).to_contain_text(text)


def test_only_a_profile_with_modules_has_their_tab(exported):
    assert _names(exported("known"), "modules") == []
    page = exported("modules")
    assert _names(page, "modules") == ["modules"]
    page.click(f"{TABS}[data-tab=breakdown]")
    offered = page.locator("section:visible [data-by]").evaluate_all(
        "all => all.map(e => e.dataset.by)"
    )
    assert offered == ["op", "kernel", "tree"]


def test_the_table_shows_the_passes_of_each_module(shows):
    page = _open(shows("modules"))
    rows = page.locator(".ep-table-place tbody tr")
    cells = [row.locator("td").all_text_contents() for row in rows.all()]
    heads = [head.strip(" ↓") for head in page.locator(".ep-table-place th").all_text_contents()]
    by_path = {row[0]: dict(zip(heads, row, strict=True)) for row in cells}
    model = by_path["model"]
    assert (model["forward"], model["backward"], model["device"]) == (
        "30.0 ms", "50.0 ms", "80.0 ms",
    )  # fmt: skip
    assert by_path["SGD.step"]["backward"] == ""
    rows.nth(1).click()
    page.wait_for_selector(".ep-timeline:visible")

    _selected(page, "2 model.layers.1")


def test_the_tree_has_a_box_for_each_pass_of_a_module(exported):
    page = _open(exported("modules"))
    page.click("section:visible [data-by=module_tree]")
    page.wait_for_selector(".ep-icicle canvas")
    settled(page)
    page.locator(".ep-icicle-stage").focus()
    told = page.locator(".ep-icicle .ep-panel")
    names = []
    for _ in range(5):
        page.keyboard.press("ArrowDown")
        names.append(told.locator(".ep-leaf").text_content())
    assert names == ["session", "model", "layers.1", "forward", "kernel of model.layers.1"]
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    assert told.locator(".ep-leaf").text_content() == "backward"
    assert "30.0 ms" in told.text_content()
    told.locator("text=show in the timeline").click()
    _selected(page, "1 model.layers.1")  # its backward pass only


def test_the_source_has_the_method_of_a_class_and_leads_to_its_modules(exported):
    page = exported("modules")
    page.click(f"{TABS}[data-tab=source]")
    row = page.locator(".ep-source tr[data-line='3']")
    assert "80.0 ms" in row.text_content()
    row.click()
    _selected(page, "4 times line 3 of net/layers.py")


def test_the_source_shows_host_times_where_there_is_no_device_time(shown):
    profile = modules()
    page = shown(Profile({"ops": profile.tables["ops"]}, profile.info, profile.sources), width=600)
    page.click(f"{TABS}[data-tab=source]")
    heads = page.locator(".ep-source th:visible").all_inner_texts()
    assert [head for head in heads if head in {"device", "kernels", "host", "count"}] == [
        "host", "count",
    ]  # fmt: skip
    assert "100 ms" in page.locator(".ep-source tr[data-line='3']").inner_text()
    assert page.locator(".ep-hottest").get_attribute("data-line") == "3"


@pytest.mark.parametrize("by", ["module", "module_tree"])
def test_a_breakdown_by_module_opens_the_tab(opened, tmp_path, by):
    from epprof_nb.views.renderers.html import page_html
    from epprof_nb.views.view import View
    from epprof_nb.views.view_model import ViewModel

    profile = modules()
    path = tmp_path / "page.html"
    path.write_text(
        page_html(ViewModel(profile), tab=View(profile, "breakdown", by=by).tab_to_open)
    )
    page = opened(path.as_uri())
    page.wait_for_selector(f"section:visible [data-by={by}][aria-pressed=true]")
    assert page.get_attribute(f"{TABS}[data-tab=modules]", "aria-selected") == "true"
