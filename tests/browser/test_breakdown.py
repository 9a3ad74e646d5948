"""The breakdown in a browser: tables that sort, filter, fit and copy."""

from __future__ import annotations

import pytest

from epprof_nb.testing import synthetic_profile
from epprof_nb.views.page import write_html

pytestmark = pytest.mark.browser

BREAKDOWN = "[role=tab][data-tab=breakdown]"


@pytest.fixture(scope="module")
def loop_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("breakdown") / "loop.html"
    write_html(synthetic_profile(activities=3000), path)
    return path


def _open(opened, path, by=None, **options):
    page = opened(path.as_uri(), **options)
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
    rows = page.locator(".ep-table-place tbody tr")
    rows.nth(count).wait_for(state="detached")
    assert rows.count() == count


def test_only_what_says_something_is_offered(opened, page_file, loop_file):
    offered = "all => all.map(e => e.dataset.by)"
    page = _open(opened, loop_file)
    assert page.locator("[data-by]").evaluate_all(offered) == ["op", "kernel", "line", "stream"]


def test_bars_show_the_total_with_the_self_time_inside(opened, loop_file):
    page = _open(opened, loop_file)
    frame = synthetic_profile(activities=3000).by_op()
    widths = page.evaluate(
        """() => [...document.querySelectorAll(".ep-share")].map((cell) => {
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
    page = _open(opened, loop_file, width=width)
    place = page.locator(".ep-table-place")
    assert place.evaluate("e => e.scrollWidth <= e.clientWidth")
    assert {"name", "share", "device_ns"} <= set(_columns(page))
    assert page.locator(".ep-name").first.bounding_box()["width"] >= 130
    room = page.evaluate(
        """() => {
          const range = document.createRange();
          const cells = [...document.querySelectorAll(".ep-share")];
          return cells.filter((cell) => cell.textContent).map((cell) => {
            range.selectNodeContents(cell.lastElementChild);
            const track = cell.querySelector(".ep-track").getBoundingClientRect();
            return range.getBoundingClientRect().left - track.right;
          });
        }"""
    )
    assert min(room) >= 4


def test_filtering_by_text_and_expression(opened, loop_file):
    page = _open(opened, loop_file)
    page.fill(".ep-tools input", "^(mlp|attention)$")
    _await_rows(page, 2)
    assert sorted(_values(page, "name")) == ["attention", "mlp"]
    assert "2 of 18 rows" in page.text_content(".ep-said")
    page.fill(".ep-tools input", "model(x")
    _await_rows(page, 1)
    assert _values(page, "name") == ["logits = model(x)"]
    assert "Not a regular expression" in page.text_content(".ep-said")


def test_copying_keeps_filter_order_and_columns(browser, loop_file):
    context = browser.new_context(viewport={"width": 1100, "height": 700})
    page = context.new_page()
    # Clipboards differ from machine to machine: what is handed over is looked at.
    page.add_init_script(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => "
        "{ window.copied = text; }}})"
    )
    page.goto(loop_file.as_uri())
    page.click(BREAKDOWN)
    page.fill(".ep-tools input", "^(mlp|attention)$")
    _await_rows(page, 2)
    page.click("th[data-column=name] button")
    page.click("text=copy CSV")
    page.locator(".ep-said >> text=clipboard").wait_for()
    lines = page.evaluate("window.copied").strip().split("\r\n")
    assert lines[0].split(",") == _columns(page)
    frame = synthetic_profile(activities=3000).by_op().set_index("name")
    for line, name in zip(lines[1:], ["attention", "mlp"], strict=True):
        fields = dict(zip(lines[0].split(","), line.split(","), strict=True))
        assert fields["name"] == name
        assert int(fields["device_ns"]) == frame.at[name, "device_ns"]
    page.click("text=copy Markdown")
    page.wait_for_timeout(100)
    assert page.evaluate("window.copied").startswith("| ")
    assert page.evaluate("window.copied").count("\n") == 4
    context.close()


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
    assert chosen.count("\r\n") + chosen.count("\n") >= 19
    page.keyboard.press("Escape")
    assert page.locator(".ep-dialog").count() == 0
    context.close()


def test_columns_can_be_chosen(opened, loop_file):
    page = _open(opened, loop_file, width=700)
    before = _columns(page)
    assert "p95_device_ns" not in before
    page.click("[data-tool=columns]")
    page.check(".ep-picker input[value=p95_device_ns]")
    page.uncheck(".ep-picker input[value=kernels]")
    assert set(_columns(page)) == {*before, "p95_device_ns"} - {"kernels"}
    page.click("text=what fits")
    assert _columns(page) == before


def test_rows_are_walked_by_arrows_and_chosen_by_enter(opened, loop_file):
    page = _open(opened, loop_file)
    rows = page.locator(".ep-table-place tbody tr")
    assert page.locator(".ep-table-place tr[tabindex='0']").count() == 1
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.rowIndex") == 3
    page.keyboard.press("Enter")
    assert page.locator("[data-tab=timeline][aria-selected=true]").count() == 1
