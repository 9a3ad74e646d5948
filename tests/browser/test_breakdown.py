"""The breakdown in a browser: tables that sort, filter, fit and copy."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.testing import synthetic_profile
from epprof_nb.views.view import write_html
from tests.browser.helpers.moving import focused
from tests.browser.helpers.settling import wait_until

pytestmark = pytest.mark.browser

BREAKDOWN = "[role=tab][data-tab=breakdown]"


@pytest.fixture
def page(exported):
    """The breakdown by op of a training loop."""
    return _open(exported("loop"))


def _open(page, by=None):
    page.click(BREAKDOWN)
    if by:
        page.click(f"[data-by={by}]")
    page.wait_for_selector(".ep-table-place tbody tr")
    return page


def _columns(page) -> list[str]:
    return page.locator(".ep-table-place th").evaluate_all("all => all.map(e => e.dataset.column)")


def _values(page, name: str) -> list[str]:
    place = _columns(page).index(name) + 1
    return page.locator(f".ep-table-place td:nth-child({place})").all_text_contents()


def _await_rows(page, count: int) -> None:
    from playwright.sync_api import expect

    expect(page.locator(".ep-table-place tbody tr")).to_have_count(count)


def test_only_what_says_something_is_offered(page):
    offered = "all => all.map(e => e.dataset.by)"
    assert page.locator("[data-by]").evaluate_all(offered) == [
        "op", "kernel", "line", "stream", "tree",
    ]  # fmt: skip


def test_bars_show_the_total_with_the_self_time_inside(page):
    frame = synthetic_profile(activities=3000).by_op()
    frame = frame[~frame["name"].str.startswith("with ")]  # shown by the row of its op
    widths = page.locator(".ep-breakdown .ep-share").evaluate_all(
        """(cells) => cells.map((cell) => {
          const width = (name) => cell.querySelector(name).getBoundingClientRect().width;
          return [width(".ep-bar"), width(".ep-bar-own"), width(".ep-track")];
        })"""
    )
    frame = frame.sort_values("device_ns", ascending=False, kind="stable")
    for (bar, own, track), row in zip(widths[:8], frame.to_dict("records")[:8], strict=True):
        assert bar == pytest.approx(track * row["share"] / frame["share"].max(), abs=0.6)
        assert own == pytest.approx(bar * row["self_device_ns"] / row["device_ns"], abs=0.6)


@pytest.mark.parametrize("width", [1100, 700, 480])
def test_the_table_fits_and_numbers_touch_nothing(opened, loop_file, width):
    page = _open(opened(loop_file.as_uri(), width=width))
    place = page.locator(".ep-table-place")
    assert place.evaluate("e => e.scrollWidth <= e.clientWidth")
    assert {"name", "share", "device_ns"} <= set(_columns(page))
    assert page.locator(".ep-table-place .ep-name").first.bounding_box()["width"] >= 130
    room = page.locator(".ep-breakdown .ep-share").evaluate_all(
        """(cells) => {
          const range = document.createRange();
          return cells.filter((cell) => cell.textContent).map((cell) => {
            range.selectNodeContents(cell.lastElementChild);
            const track = cell.querySelector(".ep-track").getBoundingClientRect();
            return range.getBoundingClientRect().left - track.right;
          });
        }"""
    )
    assert min(room) >= 4


@pytest.mark.parametrize("width", [620, 1100, 1600])
def test_names_take_the_room_there_is(opened, loop_file, width):
    page = _open(opened(loop_file.as_uri(), width=width), "kernel")
    names = page.locator(".ep-table-place td.ep-name").evaluate_all(
        """(cells) => cells.map((cell) => {
          const name = cell.querySelector("bdi");
          const style = getComputedStyle(cell);
          const room = cell.clientWidth - parseFloat(style.paddingLeft)
            - parseFloat(style.paddingRight);
          const text = name.textContent;
          return [cell.dataset.text, text, room, name.offsetWidth, name.offsetWidth / text.length];
        })"""
    )
    cut = [one for one in names if one[1] != one[0]]
    assert bool(cut) == (width < 1600)
    assert all(used <= room + 1 for _, _, room, used, _ in names)
    for whole, text, room, used, letter in cut:
        # Another letter would not fit, and both ends are there.
        assert used + letter > room - 1
        head, tail = text.split("…")
        assert whole.startswith(head)
        assert whole.endswith(tail)


def test_filtering_by_text_and_expression(page):
    page.fill(".ep-tools input", "^(mlp|attention)$")
    _await_rows(page, 2)
    assert sorted(_values(page, "name")) == ["attention", "mlp"]
    assert "2 of 17 rows" in page.text_content(".ep-filter-status")
    page.fill(".ep-tools input", "model(x")
    _await_rows(page, 1)
    assert _values(page, "name") == ["logits = model(x)"]
    assert "Not a regular expression" in page.text_content(".ep-filter-status")


def _copied(page) -> str:
    return page.evaluate("navigator.clipboard.readText()")


def test_copying_keeps_filter_order_and_columns(shows):
    page = _open(shows("loop"))
    page.fill(".ep-tools input", "^(mlp|attention)$")
    _await_rows(page, 2)
    page.click("th[data-column=name] button")
    page.click("text=copy CSV")
    page.locator(".ep-filter-status >> text=clipboard").wait_for()
    lines = _copied(page).splitlines()
    assert lines[0].split(",") == _columns(page)
    frame = synthetic_profile(activities=3000).by_op().set_index("name")
    for line, name in zip(lines[1:], ["attention", "mlp"], strict=True):
        fields = dict(zip(lines[0].split(","), line.split(","), strict=True))
        assert fields["name"] == name
        assert int(fields["device_ns"]) == frame.at[name, "device_ns"]
    page.click("text=copy Markdown")
    wait_until(page, "async () => (await navigator.clipboard.readText()).startsWith('| ')")
    assert len(_copied(page).splitlines()) == 4


def test_a_row_gives_code_that_selects_what_it_counts(page):
    prof = synthetic_profile(activities=3000)
    for by, pattern in (("op", "^attention$"), ("kernel", "flash_fwd")):
        page.click(f"[data-by={by}]")
        _await_rows(page, 17 if by == "op" else 0)  # the filter of the ops fits no kernel
        page.fill(".ep-tools input", pattern)
        _await_rows(page, 1)
        page.locator(".ep-table-place tbody tr").focus()
        page.keyboard.press("c")
        page.locator(".ep-filter-status >> text=clipboard").wait_for()
        rows = eval(_copied(page), {"prof": prof})
        counted = getattr(prof, f"by_{by}")()
        counted = counted[counted["name"].str.contains(pattern)]
        assert rows["name"].unique().tolist() == counted["name"].tolist()
        assert len(rows) == counted["count"].sum()


def test_a_refused_clipboard_leaves_the_text_to_copy(browser, loop_file):
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async () => "
        "{ throw new Error('no'); }}})"
    )
    page.goto(loop_file.as_uri())
    page.click(BREAKDOWN)
    page.click("text=copy CSV")
    area = page.locator(".ep-dialog textarea")
    area.wait_for()
    chosen = area.evaluate("e => e.value.slice(e.selectionStart, e.selectionEnd)")
    assert chosen.count("\r\n") + chosen.count("\n") >= 18
    page.keyboard.press("Escape")
    assert page.locator(".ep-dialog").count() == 0
    context.close()


def test_columns_can_be_chosen(opened, loop_file):
    page = _open(opened(loop_file.as_uri(), width=700))
    before = _columns(page)
    assert "p95_device_ns" not in before
    page.click("[data-tool=columns]")
    page.check(".ep-picker input[value=p95_device_ns]")
    page.uncheck(".ep-picker input[value=kernels]")
    assert set(_columns(page)) == {*before, "p95_device_ns"} - {"kernels"}
    page.click("text=automatic")
    assert _columns(page) == before


def test_rows_are_walked_by_arrows_and_chosen_by_enter(page):
    rows = page.locator(".ep-table-place tbody tr")
    assert page.locator(".ep-table-place tr[tabindex='0']").count() == 1
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert focused(page, "e => e.rowIndex") == 3
    page.keyboard.press("Enter")
    assert page.locator("[data-tab=timeline][aria-selected=true]").count() == 1


@pytest.mark.parametrize("by", ["kernel", "tree"])
def test_a_view_opens_on_the_table_asked_for(opened, tmp_path, by):
    from epprof_nb.views.renderers.html import page_html
    from epprof_nb.views.view_model import ViewModel

    view = synthetic_profile(activities=300).breakdown(by)
    path = tmp_path / "page.html"
    path.write_text(page_html(ViewModel(view.profile), tab=view.tab_to_open))
    page = opened(path.as_uri())
    page.wait_for_selector(f"[data-by={by}][aria-pressed=true]")
    assert page.locator("[data-tab=breakdown][aria-selected=true]").count() == 1
    shown = page.locator(".ep-icicle canvas" if by == "tree" else "th[data-column=launch_delay_ns]")
    assert shown.is_visible()


def test_a_name_of_nothing_is_said_to_be_none(opened, tmp_path):
    from epprof_nb.data.names import CategoryColumn
    from epprof_nb.data.schema import OPS
    from epprof_nb.data.table import Table
    from epprof_nb.profiles import Profile

    columns = {
        "op_id": np.array([1]),
        "parent_op_id": np.array([-1]),
        "name": CategoryColumn.of([""]),
        "op_type": CategoryColumn.of(["range"]),
        "start_ns": np.array([0]),
        "end_ns": np.array([50]),
        "duration_ns": np.array([50]),
        "count": np.array([1]),
        "status": CategoryColumn.of(["complete"]),
    }
    path = tmp_path / "page.html"
    write_html(Profile({"ops": Table(OPS, columns)}, {"wall_ns": 50}), path)
    page = _open(opened(path.as_uri()))
    assert page.locator(".ep-table-place .ep-name").text_content() == "(no name)"
    page.click("[data-by=tree]")
    page.click(".ep-tree summary")
    assert page.locator("[role=treegrid] tbody tr").nth(1).text_content().startswith("(no name)")
