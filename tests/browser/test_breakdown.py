"""The breakdown in a browser: tables that sort, filter, fit and copy."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
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
    from playwright.sync_api import expect

    expect(page.locator(".ep-table-place tbody tr")).to_have_count(count)


def test_only_what_says_something_is_offered(opened, page_file, loop_file):
    offered = "all => all.map(e => e.dataset.by)"
    page = _open(opened, loop_file)
    assert page.locator("[data-by]").evaluate_all(offered) == [
        "op", "kernel", "line", "stream", "tree",
    ]  # fmt: skip


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
    assert page.locator(".ep-table-place .ep-name").first.bounding_box()["width"] >= 130
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


def test_a_row_gives_code_that_selects_what_it_counts(browser, loop_file):
    context = browser.new_context(viewport={"width": 1100, "height": 700})
    page = context.new_page()
    page.add_init_script(
        "Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => "
        "{ window.copied = text; }}})"
    )
    page.goto(loop_file.as_uri())
    prof = synthetic_profile(activities=3000)
    page.click(BREAKDOWN)
    for by, frame in (("op", prof.by_op()), ("kernel", prof.by_kernel())):
        page.click(f"[data-by={by}]")
        page.fill(".ep-tools input", "^attention$" if by == "op" else "flash_fwd")
        _await_rows(page, 1)
        page.locator(".ep-table-place tbody tr").first.focus()
        page.keyboard.press("c")
        page.locator(".ep-said >> text=clipboard").wait_for()
        rows = eval(page.evaluate("window.copied"), {"prof": prof})
        name = "attention" if by == "op" else _values(page, "name")[0]
        count = frame.loc[frame["name"].str.startswith(name[:20]), "count"].iloc[0]
        assert len(rows) == count
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


@pytest.mark.parametrize("by", ["kernel", "tree"])
def test_a_view_opens_on_the_table_asked_for(opened, tmp_path, by):
    from epprof_nb.views.document import page as document
    from epprof_nb.views.prepared import Prepared

    view = synthetic_profile(activities=300).breakdown(by)
    path = tmp_path / "page.html"
    path.write_text(document(Prepared(view.profile), tab=view.opens))
    page = opened(path.as_uri())
    page.wait_for_selector(f"[data-by={by}][aria-pressed=true]")
    assert page.locator("[data-tab=breakdown][aria-selected=true]").count() == 1
    shown = page.locator(".ep-icicle canvas" if by == "tree" else "th[data-column=grid]")
    assert shown.is_visible()


# The tree


def _tree(opened, path, **options):
    page = opened(path.as_uri(), **options)
    page.click(BREAKDOWN)
    page.click("[data-by=tree]")
    page.wait_for_selector(".ep-icicle canvas")
    page.wait_for_timeout(150)
    return page


def _width(page) -> float:
    return page.evaluate("document.querySelector('.ep-icicle canvas').clientWidth")


def _colour(page, share: float, depth: int) -> str:
    """Colour of the icicle at a share of its width, near the lower edge of a row."""
    red, green, blue = page.evaluate(
        """([share, y]) => {
          const canvas = document.querySelector(".ep-icicle canvas");
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
    page.wait_for_timeout(400)


def test_boxes_are_as_wide_as_their_device_time(opened, loop_file):
    page = _tree(opened, loop_file)
    by_path = synthetic_profile(activities=3000).by_path()
    backward = by_path[by_path["name"] == "loss.backward()"].iloc[0]
    edge = backward["device_ns"] / by_path["device_ns"].iloc[0]
    # The backward pass is the longest line: it comes first, its kernels right below it.
    assert _colour(page, edge - 0.01, 3) == OP
    assert _colour(page, edge - 0.003, 4) == KERNEL
    assert _colour(page, edge + 0.01, 4) == OP  # the range of the forward pass
    assert _colour(page, edge - 0.01, 5) == EMPTY


def test_a_click_zooms_into_a_subtree_and_crumbs_lead_out(opened, loop_file):
    page = _tree(opened, loop_file)
    _click_box(page, 0.7, 3)
    crumbs = page.locator(".ep-icicle .ep-chain button").all_text_contents()
    assert crumbs == ["session", "In[3]", "for x, y in batches:", 'with epprof_nb…p("forward"):']
    assert _colour(page, 0.3, 6) == OP  # a range of the forward pass, now wide
    assert "21.4 ms" in page.text_content(".ep-icicle .ep-panel")
    page.click(".ep-icicle .ep-chain button >> text=session")
    page.wait_for_timeout(400)
    assert page.locator(".ep-icicle .ep-chain button").count() == 1
    assert _colour(page, 0.3, 6) == EMPTY


def test_the_tree_is_walked_by_keyboard(opened, loop_file):
    page = _tree(opened, loop_file)
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


def test_searching_the_tree_lights_what_fits(opened, loop_file):
    page = _tree(opened, loop_file)
    page.fill(".ep-tools input", "gemm")
    page.locator(".ep-said >> text=found").wait_for()
    page.wait_for_timeout(100)
    frame = synthetic_profile(activities=3000).by_kernel()
    share = frame[frame["name"].str.contains("gemm")]["share"].sum()
    assert f"{share * 100:.1f} %" in page.text_content(".ep-said")
    assert _colour(page, 0.01, 4) == KERNEL
    assert _colour(page, 0.3, 1) not in (OP, EMPTY)


def test_the_tree_measures_host_time_too(opened, loop_file):
    page = _tree(opened, loop_file)
    page.click("[data-measure=host]")
    page.wait_for_timeout(150)
    by_path = synthetic_profile(activities=3000).by_path()
    loop = by_path[by_path["name"] == "for x, y in batches:"].iloc[0]
    build = by_path[by_path["name"].str.startswith("model, optimizer")].iloc[0]
    whole = by_path["host_ns"].iloc[0]
    assert _colour(page, loop["host_ns"] / whole - 0.01, 2) == OP
    assert _colour(page, (loop["host_ns"] + build["host_ns"] / 2) / whole, 2) == "#e9ecf0"


def test_the_tree_is_a_table_too(opened, loop_file):
    page = _tree(opened, loop_file)
    page.click(".ep-tree summary")
    rows = page.locator("[role=treegrid] tbody tr")
    rows.first.wait_for()
    levels = rows.evaluate_all("all => all.map(e => +e.ariaLevel)")
    assert levels[:4] == [1, 2, 3, 4]
    assert all(b <= a + 1 for a, b in pairwise(levels))
    assert "71.3 ms" in rows.first.text_content()


def test_a_box_leads_to_the_timeline(opened, loop_file):
    page = _tree(opened, loop_file)
    _click_box(page, 0.01, 4)
    page.click("text=show in the timeline")
    assert page.locator("[data-tab=timeline][aria-selected=true]").count() == 1


def test_hostile_names_stay_text_in_the_tree(opened, page_file):
    page = _tree(opened, page_file)
    page.click(".ep-tree summary")
    page.hover(".ep-icicle canvas", position={"x": 30, "y": 90})
    assert page.title() != "hacked"
    assert page.locator("#epprof script, #epprof img").count() == 0


def test_a_name_of_nothing_is_said_to_be_none(opened, tmp_path):
    from epprof_nb.profiles import Profile
    from epprof_nb.schema import OPS
    from epprof_nb.table import Names, Table

    columns = {
        "op_id": np.array([1]),
        "parent_op_id": np.array([-1]),
        "name": Names.of([""]),
        "op_type": Names.of(["range"]),
        "start_ns": np.array([0]),
        "end_ns": np.array([50]),
        "duration_ns": np.array([50]),
        "count": np.array([1]),
        "status": Names.of(["complete"]),
    }
    path = tmp_path / "page.html"
    write_html(Profile({"ops": Table(OPS, columns)}, {"wall_ns": 50}), path)
    page = _open(opened, path)
    assert page.locator(".ep-table-place .ep-name").text_content() == "(no name)"
    page.click("[data-by=tree]")
    page.click(".ep-tree summary")
    assert page.locator("[role=treegrid] tbody tr").nth(1).text_content().startswith("(no name)")
