"""Selection: highlighted events, details, search, time ranges, DataFrames."""

from __future__ import annotations

import re

import pytest

from epprof_nb.testing import synthetic_profile
from epprof_nb.views.renderers.html import page_html
from epprof_nb.views.view import View
from epprof_nb.views.view_model import ViewModel
from tests.browser.helpers.pixels import (
    COPY,
    KERNEL,
    KERNEL_2,
    click,
    lane_y,
    pixel,
    pixels,
    pixels_at,
    ready,
    x_at,
)
from tests.browser.helpers.settling import settled, wait_until

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect

WHITE = (255, 255, 255)


def _panel(page) -> str:
    return page.locator(".ep-panel").inner_text()


def _field(page, label: str) -> str:
    """Value of a field of the details."""
    return page.locator(f".ep-group dl > div:has(dt:text-is('{label}')) dd").inner_text()


def _drag_ruler(page, start_ms: float, end_ms: float) -> None:
    box = page.locator(".ep-stage canvas").first.bounding_box()
    page.mouse.move(box["x"] + x_at(page, start_ms), box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + x_at(page, (start_ms + end_ms) / 2), box["y"] + 10, steps=3)
    page.mouse.move(box["x"] + x_at(page, end_ms), box["y"] + 10, steps=3)
    page.mouse.up()
    settled(page)
    page.locator(".ep-range[aria-busy=true]").wait_for(state="detached")


def _lit(page, ms: float, y: float, colour) -> bool:
    return colour in pixels_at(page, ms, y)


@pytest.fixture
def page(exported):
    return exported()


def test_a_kernel_tells_its_launch_delay_and_line(shows):
    page = shows()
    click(page, 37, lane_y(page, "stream 7"))
    assert _field(page, "queued") == "14.0 ms"  # called at 16, started at 30 ms
    assert _field(page, "launched by") == "cuLaunchKernel"
    assert "y = step(x)" in _field(page, "source")
    assert _field(page, "start") == "30.000 ms"
    assert _field(page, "correlation id") == "13"


def test_a_line_leads_from_the_launch_to_the_kernel(page):
    # Somewhere between the call's end of the line, at 16 ms, and the kernel's, at 30 ms.
    y = lane_y(page, "stream 7") - 14
    across = [(x, y) for x in range(int(x_at(page, 16)), int(x_at(page, 30)))]
    before = pixels(page, across)
    click(page, 37, lane_y(page, "stream 7"))
    after = pixels(page, across)
    darker = [sum(b) - sum(a) for a, b in zip(after, before, strict=True)]
    assert max(darker) > 300
    page.keyboard.press("Escape")
    settled(page)
    assert pixels(page, across) == before


def test_the_launch_is_a_link_and_leads_back(page):
    click(page, 37, lane_y(page, "stream 7"))
    page.click(".ep-group >> text=cuLaunchKernel")
    settled(page)
    assert page.locator(".ep-leaf").inner_text() == "cuLaunchKernel"
    assert _field(page, "launched") == "1"
    page.locator(".ep-group-links button").click()
    settled(page)
    assert "gemm" in page.locator(".ep-leaf").inner_text()


def test_steps_go_to_the_neighbours_in_the_stream(page):
    click(page, 37, lane_y(page, "stream 7"))
    page.click("[aria-label='Next in the stream']")
    settled(page)
    assert page.locator(".ep-leaf").inner_text() == "memset"
    assert page.locator("[aria-label='Next in the stream']").is_disabled()
    for _ in range(2):
        page.click("[aria-label='Previous in the stream']")
        settled(page)
    assert "<script>" in page.locator(".ep-leaf").inner_text()
    assert page.locator("[aria-label='Previous in the stream']").is_disabled()


def test_f_shows_the_selection_and_escape_clears_it(page):
    stream = lane_y(page, "stream 7")
    click(page, 47, stream)
    page.keyboard.press("f")
    settled(page)
    assert pixel(page, x_at(page, 20), stream + 4) == (0, 158, 115)
    assert pixel(page, x_at(page, 85), stream + 4) == (0, 158, 115)
    page.keyboard.press("Escape")
    settled(page)
    assert "Click an event" in _panel(page)


def test_a_value_is_copied_with_its_exact_number(shows):
    page = shows()
    click(page, 37, lane_y(page, "stream 7"))
    page.click(".ep-group dl > div:has(dt:text-is('duration')) button")
    wait_until(page, "async () => (await navigator.clipboard.readText()) === '15000000'")


def test_a_time_range_tells_what_the_device_did_in_it(page):
    _drag_ruler(page, 20, 60)
    panel = page.locator(".ep-range")
    text = panel.inner_text()
    # Busy from 20 to 50 of these 40 ms; a pixel is about 0.1 ms.
    busy = float(text.split("busy")[1].split("%")[0])
    assert abs(busy - 75) < 0.5
    assert panel.locator("dd").nth(2).inner_text() == "2"  # kernels
    rows = panel.locator("table >> nth=1").locator("tr").all_inner_texts()
    assert "gemm" in rows[0]
    assert "50 %" in rows[0] or "49 %" in rows[0]
    ops = panel.locator("table >> nth=0")
    assert ops.locator("caption").inner_text().split() == ["by", "op", "activities"]
    counts = [row.split("\t")[-1] for row in ops.locator("tr").all_inner_texts()]
    assert counts == ["2", "1"]
    page.keyboard.press("Escape")
    settled(page)
    # A page of its own then shows the whole profile.
    expect(panel.locator("strong")).to_have_text("Whole profile")


def test_a_time_ranges_edge_can_be_dragged(page):
    _drag_ruler(page, 20, 40)
    _drag_ruler(page, 40, 60)
    text = page.locator(".ep-range-head strong").inner_text()
    assert abs(float(text.split()[0]) - 40) < 0.3  # from 20 to 60, not a new one
    _drag_ruler(page, 20, 50)
    text = page.locator(".ep-range-head strong").inner_text()
    assert abs(float(text.split()[0]) - 10) < 0.3
    box = page.locator(".ep-stage canvas").first.bounding_box()
    page.mouse.click(box["x"] + x_at(page, 80), box["y"] + 8)
    expect(page.locator(".ep-range-head strong")).to_have_text("Whole profile")


def test_keys_set_a_time_range_at_the_pointer(page):
    stream = lane_y(page, "stream 7")
    page.locator(".ep-timeline").focus()
    page.hover(".ep-stage canvas", position={"x": x_at(page, 30), "y": stream})
    page.keyboard.press("i")
    page.hover(".ep-stage canvas", position={"x": x_at(page, 45), "y": stream})
    page.keyboard.press("o")
    settled(page)
    assert abs(float(page.locator(".ep-range-head strong").inner_text().split()[0]) - 15) < 0.3
    # The band tints the ruler between its edges.
    assert pixel(page, x_at(page, 38), 2) != pixel(page, x_at(page, 60), 2)


def test_search_lights_counts_and_steps(shows):
    page = shows()
    stream, copies = lane_y(page, "stream 7"), lane_y(page, "stream 13")
    page.locator(".ep-timeline").focus()
    page.keyboard.press("/")
    page.keyboard.type("GEMM|DtoH")
    told = page.locator(".ep-search-status")
    expect(told).to_have_text("1 found")  # capitals matter: only DtoH
    page.locator(".ep-search input").fill("gemm|dtoh")
    expect(told).to_have_text("2 found")
    settled(page)
    assert pixel(page, x_at(page, 44), stream + 6) == KERNEL
    assert _lit(page, 84, copies, COPY)
    assert pixel(page, x_at(page, 22), stream + 6) != KERNEL_2
    page.keyboard.press("Enter")
    expect(told).to_have_text("1 of 2")
    expect(page.locator(".ep-leaf")).to_contain_text("gemm")
    page.keyboard.press("Shift+Enter")
    expect(told).to_have_text("2 of 2")
    expect(page.locator(".ep-leaf")).to_have_text("DtoH")
    page.keyboard.press("Escape")
    expect(page.locator(".ep-search")).to_be_hidden()
    settled(page)
    assert pixel(page, x_at(page, 22), stream + 6) == KERNEL_2


def test_brackets_go_along_the_flows(page):
    leaf = page.locator(".ep-panel .ep-chain > *").last

    def press(key: str) -> str:
        page.keyboard.press(key)
        settled(page)
        return leaf.inner_text()

    click(page, 37, lane_y(page, "stream 7"))
    kernel = leaf.inner_text()
    assert "gemm" in kernel
    assert press("[") == "cuLaunchKernel"
    assert press("]") == kernel
    assert press("[") == "cuLaunchKernel"
    # Up to the outermost op, and down to the longest activity that it launched.
    chain = [press("[") for _ in range(4)]
    assert "script" in chain[0]
    assert chain[1:] == ["y = step(x)", "In[3]", "In[3]"]
    assert press("]") == kernel


@pytest.mark.parametrize("wide", [1100, 560])
def test_the_search_covers_nothing(opened, page_file, wide):
    page = ready(opened(page_file.as_uri(), width=wide))
    page.locator(".ep-timeline").focus()
    page.keyboard.press("/")
    search = page.locator(".ep-search").bounding_box()
    assert search["x"] + search["width"] <= wide
    for other in (".ep-timeline", ".ep-tabs", ".ep-legend", ".ep-header"):
        box = page.locator(other).bounding_box()
        apart = (
            box["x"] >= search["x"] + search["width"]
            or search["x"] >= box["x"] + box["width"]
            or box["y"] >= search["y"] + search["height"]
            or search["y"] >= box["y"] + box["height"]
        )
        assert apart, other
    page.click("[role=tab][data-tab=source]")
    assert not page.locator(".ep-search").is_visible()


@pytest.mark.parametrize(
    ("pattern", "told"), [("(", "Not a regular"), ("a" * 401, "400"), ("nothing here", "none")]
)
def test_search_says_quietly_what_it_cannot_find(page, pattern, told):
    page.locator(".ep-timeline").focus()
    page.keyboard.press("/")
    page.keyboard.insert_text(pattern)
    expect(page.locator(".ep-search-status")).to_contain_text(told)


def test_a_page_refuses_a_pattern_that_might_never_end(opened, page_file):
    page = ready(opened(page_file.as_uri()))
    page.locator(".ep-timeline").focus()
    page.keyboard.press("/")
    page.keyboard.type("(a+)+$")
    expect(page.locator(".ep-search-status")).to_contain_text("must not")


def test_numbers_of_the_summary_lead_to_what_they_count(shows):
    page = shows()
    stream, copies = lane_y(page, "stream 7"), lane_y(page, "stream 13")
    page.click(".ep-count >> text=kernels")
    expect(page.locator(".ep-panel")).to_contain_text("2 kernels")
    page.keyboard.press("Escape")
    page.locator(".ep-timeline").press("0")
    settled(page)
    page.click(".ep-count >> text=copies")
    expect(page.locator(".ep-panel")).to_contain_text("2 copies")
    page.locator(".ep-timeline").press("0")
    settled(page)
    assert _lit(page, 84, copies, COPY)
    assert pixel(page, x_at(page, 22), stream + 6) != KERNEL_2
    gaps = page.locator(".ep-count >> text=idle gap")
    lengths = []
    for _ in range(3):
        gaps.click()
        settled(page)
        expect(page.locator(".ep-range")).to_contain_text("The device was idle in this time range")
        lengths.append(page.locator(".ep-range-head").inner_text())
    assert lengths[0] != lengths[1]
    assert lengths[0] == lengths[2]


def test_a_row_of_the_breakdown_lights_and_goes_to_its_events(shows):
    page = shows()
    stream = lane_y(page, "stream 7")
    page.click("[role=tab][data-tab=breakdown]")
    page.click("[data-by=kernel]")
    page.click(".ep-breakdown td >> text=gemm")
    expect(page.locator(".ep-panel")).to_contain_text("gemm")
    settled(page)
    # 30 to 45 ms with a little around it fills the window.
    assert pixel(page, x_at(page, 12), stream + 6) == KERNEL
    assert pixel(page, x_at(page, 88), stream + 6) == KERNEL


def test_a_line_of_the_source_lights_and_goes_to_its_events(shows):
    page = shows()
    page.click("[role=tab][data-tab=source]")
    page.click(".ep-source tbody tr >> nth=0")
    expect(page.locator(".ep-panel")).to_contain_text("line 1 of In[3]")
    settled(page)
    copies = lane_y(page, "stream 13")
    # 1 to 10 ms: the copy from 5 to 10 stands in the right half.
    assert _lit(page, 70, copies, COPY)
    assert not _lit(page, 20, copies, COPY)


def test_the_rows_of_a_dataframe_are_lit_and_gone_to(opened, profile, tmp_path):
    frame = profile.activities
    rows = frame[frame["kind"] == "memcpy"].sort_values("start_ns", ascending=False)
    path = tmp_path / "selected.html"
    from epprof_nb.views.queries.frame_rows import rows_of_frame
    from epprof_nb.views.queries.view_selection import Selections

    view_model = ViewModel(profile)
    selections = Selections(view_model)
    selections.set_rows(dict([rows_of_frame(profile, rows)]))
    path.write_text(page_html(view_model, selections.initial))
    page = ready(opened(path.as_uri()))
    settled(page)
    assert "2 rows of a DataFrame" in _panel(page).replace("\n", " ")
    page.locator(".ep-timeline").press("0")
    settled(page)
    assert _lit(page, 84, lane_y(page, "stream 13"), COPY)
    assert pixel(page, x_at(page, 22), lane_y(page, "stream 7") + 6) != KERNEL_2
    page.click("[aria-label='Next of these']")
    settled(page)
    assert page.locator(".ep-leaf").inner_text() == "HtoD"


def test_selected_rows_survive_the_thinning_of_a_large_profile(opened, tmp_path):
    profile = synthetic_profile(activities=150_000)
    frame = profile.activities
    shortest = frame[frame["kind"] == "kernel"].nsmallest(5, "duration_ns")
    html = View(profile, select=shortest).mimebundle()["text/html"]
    path = tmp_path / "notebook.html"
    path.write_text(html)
    page = opened(path.as_uri(), height=1200)
    inner = page.frame_locator("iframe")
    expect(inner.locator(".ep-panel")).to_contain_text("5 rows of a DataFrame")
    starts = sorted(shortest["start_ns"])
    for start in starts:
        inner.locator("[aria-label='Next of these']").click()
        settled(page.frames[1])
        told = inner.locator(".ep-group dl > div:has(dt:text-is('start')) dd").inner_text()
        assert told == (f"{start / 1e6:.3f} ms" if start < 1e9 else f"{start / 1e9:.6f} s")


def test_a_large_pages_time_range_says_that_it_is_about(opened, tmp_path):
    path = tmp_path / "large.html"
    path.write_text(page_html(ViewModel(synthetic_profile(activities=150_000))))
    page = ready(opened(path.as_uri()))
    settled(page)
    _drag_ruler(page, 20, 60)
    expect(page.locator(".ep-range")).to_have_attribute("aria-busy", "false")
    assert re.search(r"The first .+ are estimated", page.locator(".ep-range").inner_text())
