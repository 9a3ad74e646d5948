"""Every number of a page equals the profile's tables, however many events the page merges."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from epprof_nb.analysis.breakdowns.by_range import by_range
from epprof_nb.testing import synthetic_profile
from epprof_nb.util.format import duration, percent, size
from epprof_nb.views.queries.event_fields import PREFIXES
from epprof_nb.views.queries.tables import breakdown_table
from epprof_nb.views.renderers.html import page_html
from epprof_nb.views.view import write_html
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.wire.page_payload import is_merged
from tests.browser.helpers.pixels import lane_y, picture, ready
from tests.browser.helpers.rectangles import click, hover, in_panel, true_rectangle
from tests.browser.helpers.settling import settled

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect

API_CALL = (167, 176, 188)
WIDTH = 1024
"""Width of the canvas in pixels: a multiple of the number of bins, or its half."""
_KEEP_PANEL_TEXTS = """() => {
  window.panelTexts = [];
  const panel = document.querySelector(".ep-panel");
  new MutationObserver(() => panelTexts.push(panel.textContent)).observe(panel, {childList: true});
}"""


# Each event has a rectangle of its own, and: a page has as many as it may have, a counter has more
# points than a file keeps.
@pytest.fixture(scope="module", params=[1_000, 300_000])
def view_model(request):
    return ViewModel(synthetic_profile(request.param))


@pytest.fixture(scope="module")
def pages(view_model, tmp_path_factory):
    """Paths of the page that a notebook keeps, and of the file that has every event."""
    folder = tmp_path_factory.mktemp("pages")
    paths = {kind: folder / f"{kind}.html" for kind in ("notebook", "file")}
    paths["notebook"].write_text(page_html(view_model))
    write_html(view_model.profile, paths["file"])
    return paths


@pytest.fixture(params=["notebook", "file"])
def page(request, pages, opened):
    page = ready(opened(pages[request.param].as_uri(), width=1300, height=900))
    drawn = page.locator(".ep-timeline canvas").first.evaluate("e => e.clientWidth")
    page.set_viewport_size({"width": 1300 + WIDTH - drawn, "height": 900})
    return settled(page)


def _panel(page):
    """The numbers and the tables of the panel of a range, as text."""
    panel = page.locator(".ep-range")
    expect(panel).to_have_attribute("aria-busy", "false")
    numbers = dict(
        zip(
            panel.locator("dt").all_text_contents(),
            panel.locator("dd").all_text_contents(),
            strict=True,
        )
    )
    tables = [
        [
            [
                row.locator("td").first.get_attribute("title"),
                *row.locator("td").all_text_contents()[2:],
            ]
            for row in table.locator("tbody tr").all()
        ]
        for table in panel.locator("table").all()
    ]
    return numbers, tables, panel.locator("caption").all_text_contents()


def _told(view_model, start, end):
    """The same, as `by_range` has it."""
    totals = by_range(view_model.index, start, end)
    length, (device,) = end - start, totals["devices"]
    numbers = {
        "GPU busy": f"{percent(device['busy'] / length)} ({duration(device['busy'])})",
        "idle": duration(length - device["busy"]),
    }
    if totals["kernels"]:
        numbers["kernels"] = f"{totals['kernels']:,}"
    if totals["copies"]:
        numbers["copies"] = f"{totals['copies']:,} ({size(totals['bytes'])})"
    if totals["sets"]:
        numbers["memsets"] = f"{totals['sets']:,}"
    if not totals["device_ns"]:
        return numbers, [], []
    tables = [
        [
            [name, percent(ns / totals["device_ns"]), duration(ns), f"{count:,}"]
            for name, count, ns in totals[by]["rows"][:6]
        ]
        for by in ("ops", "names")
    ]
    captions = [
        f"{title} (first 6 of {totals[by]['total']:,}) activities"
        if totals[by]["total"] > 6
        else f"{title} activities"
        for title, by in (("by op", "ops"), ("by kernel and copy", "names"))
    ]
    return numbers, tables, captions


def _mark(page, first: int, last: int) -> None:
    """Mark the time range between two pixels."""
    box = page.locator(".ep-timeline canvas").first.bounding_box()
    page.mouse.move(box["x"] + first, box["y"] + 8)
    page.mouse.down()
    page.mouse.move(box["x"] + last, box["y"] + 8, steps=3)
    page.mouse.up()
    settled(page)
    expect(page.locator(".ep-range-head")).to_contain_text("from")


def _time(view_model, x: int) -> int:
    low, high = view_model.time_range
    return low + (x * (high - low) + WIDTH // 2) // WIDTH


def test_the_panel_has_the_numbers_of_the_profile(page, view_model):
    whole = view_model.time_range
    assert _panel(page) == _told(view_model, *whole)
    # Of whole bins: exact, without a note.
    for first, last in ((256, 768), (16, 1008), (32, 40)):
        _mark(page, first, last)
        times = _time(view_model, first), _time(view_model, last)
        assert _panel(page) == _told(view_model, *times)
        assert "estimated" not in page.locator(".ep-range").text_content()
        page.keyboard.press("Escape")


def test_a_range_between_bins_is_exact_or_says_what_is_not(page, view_model):
    _mark(page, 301, 555)
    times = _time(view_model, 301), _time(view_model, 555)
    text = page.locator(".ep-range").text_content()
    if "estimated" not in text:
        assert _panel(page) == _told(view_model, *times)
        return
    assert re.search(
        r"The first .+s and the last .+s are estimated, the time between is exact", text
    )
    kernels = int(_panel(page)[0]["kernels"].replace(",", ""))
    assert kernels == pytest.approx(by_range(view_model.index, *times)["kernels"], rel=0.02)


def test_tables_have_the_numbers_of_the_profile(page, view_model):
    page.click("[role=tab][data-tab=breakdown]")
    for by, column in {"op": "self_device_ns", "kernel": "device_ns", "line": "device_ns"}.items():
        page.click(f"[data-by={by}]")
        expect(page.locator(f"[data-by={by}]")).to_have_attribute("aria-pressed", "true")
        heads = page.locator(".ep-breakdown th").evaluate_all("a => a.map(e => e.dataset.column)")
        # Without the `with` statements that only open an op.
        table = {c["name"]: c["values"] for c in breakdown_table(view_model, by)["columns"]}
        expected = sorted(
            (f"{count:,}" if count else "", duration(ns) if ns else "")
            for count, ns in zip(table["count"], table[column], strict=True)
        )
        cells = [
            row.locator("td").all_text_contents()
            for row in page.locator(".ep-breakdown tbody tr").all()
        ]
        shown = sorted((row[heads.index("count")], row[heads.index(column)]) for row in cells)
        assert shown == expected, by


def test_counts_of_selections_are_those_of_the_tables(page, view_model):
    tables = view_model.profile.tables
    names = [
        name
        for prefix, layout in view_model.layout.by_prefix().items()
        for name in tables[PREFIXES[prefix]].names("name").take(layout.is_drawn).to_list()
    ]
    page.locator(".ep-timeline").focus()
    page.keyboard.press("/")
    field, status = page.locator(".ep-search input"), page.locator(".ep-search-status")
    for pattern in (
        "gemm",
        "memset",
        "flash_bwd",
        "loss.backward",
        "cuLaunchKernel",
        "Attention",
        "e",
    ):
        field.fill(pattern)
        match = re.compile(pattern, 0 if pattern[0].isupper() else re.IGNORECASE).search
        count = sum(n for name, n in Counter(names).items() if name and match(name))
        expect(status).to_have_text(f"{count:,} found" if count else "none")
        if count:
            expect(page.locator(".ep-multi strong")).to_have_text(f"{count:,}")
    page.keyboard.press("Escape")
    kinds = tables["activities"].names("kind")
    for kind, word in (("kernel", "kernels"), ("memcpy", "copies"), ("memset", "memsets")):
        page.click(f".ep-count >> text={word}")
        expect(page.locator(".ep-multi")).to_contain_text(f"{int(kinds.equals(kind).sum()):,}")


def test_a_merged_rectangle_has_the_numbers_of_its_activities(page, view_model):
    if not is_merged(view_model):
        pytest.skip("its page draws every event")
    is_file = page.evaluate("document.getElementById('epprof-index') !== null")
    streams = {7, 13, 14} & set(view_model.profile.tables["activities"]["stream_id"].tolist())
    page.evaluate(_KEEP_PANEL_TEXTS)
    checked = []
    for stream in sorted(streams):
        for x in (200, 500, 700):
            told = hover(page, stream, x)
            if told is None:
                continue
            click(page, stream, x)
            truth, longest = true_rectangle(view_model.profile, stream, told)
            assert in_panel(page) == told == truth
            # A page in a notebook does not have the times of merged events.
            durations = page.locator(".ep-group dl > div:has(dt:text-is('duration')) dd")
            assert durations.all_text_contents() == ([longest] if is_file else [])
            checked.append(told)
    assert len(checked) >= 3
    if is_file:
        # Data in the page is shown at once; the rest is inflated.
        loading = [text for text in page.evaluate("panelTexts") if "Loading" in text]
        assert "Drawn as one rectangle" in loading[0]
        assert "kind" in loading[0]
    page.click(".ep-panel >> text=zoom to these")
    settled(page)
    low, high = (
        int(page.locator(".ep-timeline").get_attribute(f"data-{edge}")) for edge in ("start", "end")
    )
    _, start, end, _ = checked[-1]
    assert low - 1_000 <= start < end <= high + 1_000
    assert high - low < 2 * (end - start)
    if is_file:
        # Now they are drawn one by one.
        expect(page.locator(".ep-panel .ep-note:visible")).to_have_count(0)


def test_zooming_in_a_file_shows_every_event(view_model, pages, opened):
    if not is_merged(view_model):
        pytest.skip("its page draws every event")
    page = ready(opened(pages["file"].as_uri(), width=1300, height=900))
    page.locator(".ep-timeline").focus()
    low, high = view_model.time_range
    while high - low > 20_000_000:
        page.keyboard.press("w")
        settled(page)
        timeline = page.locator(".ep-timeline")
        low, high = (int(timeline.get_attribute(f"data-{edge}")) for edge in ("start", "end"))
    expect(page.locator(".ep-panel")).not_to_contain_text("merged")
    # Calls from a later part of the file are there, too.
    y = int(lane_y(page, "API calls"))
    assert (picture(page)[y - 8 : y + 8] == API_CALL).all(axis=2).sum() > 50
