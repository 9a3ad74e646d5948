"""A view in a browser: its drawing and its actions."""

from __future__ import annotations

import re

import pytest

from epprof_nb.views.view import write_html
from tests.browser.helpers.known import known_profile
from tests.browser.helpers.moving import focused
from tests.browser.helpers.pixels import (
    COPY,
    KERNEL,
    KERNEL_2,
    RULER,
    canvas,
    click,
    lane_y,
    pixel,
    pixels,
    pixels_at,
    ready,
    x_at,
)
from tests.browser.helpers.settling import settled
from tests.helpers.tiny import kernel, line, profile

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect


def test_bars_stand_where_their_times_say(opened, page_file):
    page = ready(opened(page_file.as_uri()))
    stream = lane_y(page, "stream 7")
    background = (255, 255, 255)
    assert pixel(page, x_at(page, 22), stream + 6) == KERNEL_2
    assert pixel(page, x_at(page, 44), stream + 6) == KERNEL
    assert pixel(page, x_at(page, 19), stream + 6) == background
    assert pixel(page, x_at(page, 65), stream + 2) == background  # only a wait, at the foot
    copies = lane_y(page, "stream 13")
    assert pixel(page, x_at(page, 71), copies) == background
    assert COPY in pixels_at(page, 84, copies)
    # Utilisation: full from 20 to 50 ms, empty in the gap.
    assert pixel(page, x_at(page, 35), RULER + 4) != background
    assert pixel(page, x_at(page, 71), RULER + 4) == background


def test_names_from_traces_stay_text(shows):
    page = shows()
    for tab in ("breakdown", "source", "timeline"):
        page.click(f"[role=tab][data-tab={tab}]")
    click(page, 25, lane_y(page, "stream 7"))
    assert "<script>" in page.text_content(".ep-panel")
    assert page.title() != "hacked"
    assert page.locator(".ep-viewer script, .ep-viewer img, .ep-viewer b").count() == 0


def test_the_page_forbids_and_needs_no_network(opened, page_file):
    page = opened(page_file.as_uri())
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    ready(page)
    page.reload()
    ready(page)
    assert [url for url in asked if not url.startswith("file:")] == []
    assert "default-src 'none'" in page_file.read_text()


def test_clicking_an_op_lights_what_it_launched(opened, page_file):
    _an_op_lights_what_it_launched(ready(opened(page_file.as_uri())))


def test_clicking_an_op_lights_what_it_launched_in_jupyterlab(in_jupyterlab):
    _an_op_lights_what_it_launched(in_jupyterlab.show())


def _an_op_lights_what_it_launched(page):
    stream, copies = lane_y(page, "stream 7"), lane_y(page, "stream 13")
    click(page, 15, lane_y(page, "main thread") + 17 * 2)
    assert pixel(page, x_at(page, 22), stream + 6) == KERNEL_2
    assert COPY not in pixels_at(page, 84, copies)
    assert "In[3]" in page.text_content(".ep-chain")
    page.locator(".ep-timeline").press("Escape")
    settled(page)
    assert COPY in pixels_at(page, 84, copies)


def test_clicking_a_kernel_shows_its_ops_and_fields(shows):
    page = shows()
    click(page, 37, lane_y(page, "stream 7"))
    expect(page.locator(".ep-chain")).to_contain_text("In[3]")
    chain = page.locator(".ep-chain").text_content()
    assert chain.index("In[3]") < chain.index("y = step(x)") < chain.index("gemm")
    fields = page.locator(".ep-panel .ep-groups").text_content()
    for text in ("15.0 ms", "kernel", "correlation id13", "stack"):
        assert text in fields
    page.click(".ep-chain button >> text=y = step(x)")
    assert page.locator(".ep-chain [aria-current]").text_content() == "y = step(x)"


def test_hovering_tells_the_fields(shows):
    page = shows()
    canvas(page).hover(position={"x": x_at(page, 7), "y": lane_y(page, "stream 13")})
    tip = page.locator(".ep-tip")
    expect(tip).to_contain_text("4.00 MB")
    assert tip.is_visible()
    canvas(page).hover(position={"x": x_at(page, 35), "y": RULER + 10})
    assert "busy 100 %" in tip.text_content()


def test_wheel_keys_and_double_click_change_the_window(opened, page_file):
    page = ready(opened(page_file.as_uri()))
    stream = lane_y(page, "stream 7")
    page.locator(".ep-timeline").focus()
    page.mouse.move(0, 0)
    for _ in range(8):
        page.keyboard.press("w")
    settled(page)
    # The middle of the page is at 50 ms; zoomed in 11 times, 45 to 50 ms is a set, then idle.
    assert pixel(page, 1, stream + 6) == (0, 158, 115)
    assert pixel(page, x_at(page, 90), stream + 4) == (255, 255, 255)
    page.keyboard.press("0")
    settled(page)
    assert pixel(page, x_at(page, 22), stream + 6) == KERNEL_2
    box = page.locator("canvas").bounding_box()
    page.mouse.move(box["x"] + x_at(page, 25), box["y"] + stream)
    for _ in range(12):
        page.mouse.wheel(0, -120)
    settled(page)
    # Zoomed at the pointer: the kernel under it now reaches both edges.
    assert pixel(page, 3, stream + 6) == KERNEL_2
    assert pixel(page, x_at(page, 100) - 3, stream + 6) == KERNEL_2
    page.dblclick("canvas", position={"x": 40, "y": 5})
    settled(page)
    assert pixel(page, 3, stream + 6) == (255, 255, 255)


def test_dragging_pans(opened, page_file):
    page = ready(opened(page_file.as_uri()))
    stream = lane_y(page, "stream 7")
    page.locator(".ep-timeline").focus()
    for _ in range(3):
        page.keyboard.press("w")
    settled(page)
    box = page.locator("canvas").bounding_box()
    y = box["y"] + stream
    settled(page)
    across = [(x, stream + 6) for x in range(0, 900, 10)]
    before = pixels(page, across)
    page.mouse.move(box["x"] + 300, y)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, y, steps=4)
    page.mouse.up()
    settled(page)
    after = pixels(page, across)
    assert after[20:] == before[:-20]


def test_a_finding_leads_to_its_place(exported):
    page = exported()
    finding = page.locator(".ep-finding").first
    assert re.search(r"Line 2|idle", finding.text_content())
    before = canvas(page).evaluate("e => e.toDataURL()")
    page.click("[role=tab][data-tab=source]")
    finding.click()
    settled(page)
    assert page.locator("[data-tab=timeline][aria-selected=true]").count() == 1
    assert canvas(page).evaluate("e => e.toDataURL()") != before


def test_each_finding_has_a_line_of_its_own(opened, page_file):
    page = ready(opened(page_file.as_uri(), width=1600))
    boxes = [finding.bounding_box() for finding in page.locator(".ep-finding").all()]
    assert len(boxes) == 2
    assert boxes[1]["y"] >= boxes[0]["y"] + boxes[0]["height"]
    assert boxes[1]["x"] == boxes[0]["x"]


def test_api_calls_unfold(exported):
    page = exported()
    before = page.locator(".ep-scroller").bounding_box()["height"]
    button = page.locator(".ep-label-api .ep-fold")
    assert button.get_attribute("aria-expanded") == "false"
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    assert page.locator(".ep-scroller").bounding_box()["height"] > before


def test_columns_sort(exported):
    page = exported()
    page.click("[role=tab][data-tab=breakdown]")
    page.click("[data-by=kernel]")
    expect(page.locator(".ep-breakdown tbody tr")).to_have_count(2)

    def column(name):
        heads = page.locator(".ep-breakdown th").evaluate_all(
            "all => all.map(e => e.dataset.column)"
        )
        place = heads.index(name) + 1
        return page.locator(f".ep-breakdown td:nth-child({place})").all_text_contents()

    assert column("device_ns") == ["15.0 ms", "10.0 ms"]
    page.click("th[data-column=device_ns] button")
    assert column("device_ns") == ["10.0 ms", "15.0 ms"]
    assert page.get_attribute("th[data-column=device_ns]", "aria-sort") == "ascending"
    page.click("th[data-column=short_name] button")
    assert page.get_attribute("th[data-column=short_name]", "aria-sort") == "ascending"
    assert column("short_name")[0].startswith("<script>")
    page.click("[data-by=op]")
    expect(page.locator(".ep-breakdown tbody")).to_contain_text("y = step(x)")


def test_source_shows_heat_and_kernels(shows):
    page = shows()
    page.click("[role=tab][data-tab=source]")
    rows = page.locator(".ep-source tbody tr")
    expect(rows).to_have_count(3)
    assert "30.0 ms" in rows.nth(1).text_content()
    heat = page.locator(".ep-heat").evaluate_all(
        "all => all.map(e => +e.style.getPropertyValue('--heat'))"
    )
    assert heat[1] > heat[2] > heat[0] > 0
    kernels = page.locator(".ep-kernels")
    assert kernels.is_hidden()
    rows.nth(1).hover()
    assert kernels.is_visible()
    assert "gemm" in kernels.text_content()
    rows.nth(2).focus()
    assert "DtoH" in kernels.text_content()


def test_bars_of_the_source_compare_the_lines_of_all_cells(shown):
    ms = 1_000_000
    some = profile(
        [line(1, 1, 0, 50 * ms), line(2, 1, 50 * ms, 100 * ms, cell="In[2]")],
        [kernel(0, 40 * ms, 1), kernel(50 * ms, 60 * ms, 2)],
        info={"wall_ns": 100 * ms},
        sources={"In[1]": "a()", "In[2]": "b()"},
    )
    page = shown(some)
    page.click("[role=tab][data-tab=source]")
    bars = page.locator(".ep-source .ep-bar")
    expect(bars).to_have_count(2)
    assert bars.evaluate_all("all => all.map(e => e.style.width)") == ["100%", "25%"]


def test_source_opens_at_the_marked_line_with_the_most_device_time(opened, loop_file):
    page = opened(loop_file.as_uri(), height=380)
    page.click("[role=tab][data-tab=source]")
    view = page.locator(".ep-source")
    hottest = view.locator(".ep-hottest")
    expect(hottest).to_have_count(1)
    expect(hottest).to_have_attribute("title", "Most time")
    assert "loss.backward()" in hottest.inner_text()
    # The heads stay at the top: no line is visible above them.
    view.evaluate("e => e.scrollBy(0, 40)")
    assert view.evaluate("e => e.scrollTop") > 0
    assert view.locator("th").first.bounding_box()["y"] == view.bounding_box()["y"]


@pytest.mark.parametrize(
    ("contrast", "kernel", "copy"),
    [("more", (0, 69, 124), (201, 122, 0)), ("no-preference", KERNEL_2, COPY)],
)
def test_high_contrast_is_followed_while_the_view_is_open(shows, contrast, kernel, copy):
    page = shows()
    other = "no-preference" if contrast == "more" else "more"
    for asked in (other, contrast):
        page.emulate_media(contrast=asked)
        settled(page)
    assert pixel(page, x_at(page, 22), lane_y(page, "stream 7") + 6) == kernel
    copies = pixels_at(page, 84, lane_y(page, "stream 13") + 4)
    assert copy in copies
    page.emulate_media(contrast="no-preference")


def test_dark_theme_follows_the_system(opened, page_file):
    page = ready(opened(page_file.as_uri(), theme="dark"))
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.ep-viewer')).backgroundColor")
        == "rgb(20, 24, 29)"
    )
    assert pixel(page, x_at(page, 22), lane_y(page, "stream 7") + 6) == (122, 194, 235)


def test_tabs_work_by_keyboard(shows):
    page = shows()
    page.locator("[role=tab][data-tab=timeline]").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("[data-tab=breakdown][aria-selected=true]").count() == 1
    outline = focused(page, "e => getComputedStyle(e).outlineStyle")
    assert outline == "solid"


def test_of_many_events_each_frame_shows_its_window(opened, tmp_path):
    from epprof_nb.testing import synthetic_profile
    from epprof_nb.views.view import write_html

    path = tmp_path / "large.html"
    write_html(synthetic_profile(activities=200_000), path)
    page = ready(opened(path.as_uri()))
    assert "200,000 activities as" in page.text_content(".ep-panel")

    def picture():
        return canvas(page).evaluate("e => e.toDataURL()")

    def shown():
        data = page.evaluate("({ ...document.querySelector('.ep-timeline').dataset })")
        return int(data["end"]) - int(data["start"])

    page.mouse.move(0, 0)
    page.locator(".ep-timeline").focus()
    wide = shown()

    def zoomed_and_back():
        for _ in range(6):
            page.keyboard.press("w")
        settled(page)
        assert shown() < wide / 4
        zoomed = picture()
        page.keyboard.press("0")
        settled(page)
        assert shown() == wide
        return zoomed

    # Going back restores the same picture, pixel by pixel, once all details of the window have
    # arrived: after its first frame, on a busy machine long after.
    before = ""
    for _ in range(12):
        zoomed = zoomed_and_back()
        page.wait_for_timeout(1000)
        whole = picture()
        assert zoomed != whole
        if whole == before:
            break
        before = whole
    assert whole == before


def test_a_sanitiser_leaves_the_fallback(opened, profile, tmp_path):
    from epprof_nb.views.view import View

    html = View(profile).mimebundle()["text/html"]
    both = tmp_path / "notebook.html"
    both.write_text(html)
    page = opened(both.as_uri())
    page.frame_locator("iframe").locator("canvas").wait_for()
    assert page.locator(".epprof-fallback").is_hidden()

    for dropped in (("iframe", "script", "style"), ("iframe", "script"), ("script", "style")):
        text = html
        for tag in dropped:
            text = re.sub(rf"<{tag}\b.*?</{tag}>", "", text, flags=re.DOTALL)
        stripped = tmp_path / f"without-{'-'.join(dropped)}.html"
        stripped.write_text(text)
        page = opened(stripped.as_uri())
        assert page.locator(".epprof-fallback table").is_visible()
        picture = page.locator(".epprof-fallback img")
        assert picture.evaluate("e => e.complete && e.naturalWidth") == 960


def test_a_frame_that_may_run_no_scripts_shows_its_summary(opened, profile, tmp_path):
    from epprof_nb.views.view import View

    # A frame inherits the policy of the page around it.
    policy = '<meta http-equiv="Content-Security-Policy" content="script-src \'none\'">'
    path = tmp_path / "notebook.html"
    path.write_text(policy + View(profile).mimebundle()["text/html"])
    plain = opened(path.as_uri()).frame_locator("iframe").locator(".plain")
    plain.wait_for()
    assert "100 ms wall" in plain.text_content()


def test_several_notes_are_one_line_that_opens(opened, tmp_path):
    long = "This happened. " + "It is explained at length. " * 9
    profile = known_profile()
    profile.info["notes"] = [long, "<b>Second</b> note.", "Third note."]
    path = tmp_path / "notes.html"
    write_html(profile, path)
    page = opened(path.as_uri())
    line = page.locator(".ep-header summary")
    assert line.inner_text() == "This happened. · 2 more"
    assert line.bounding_box()["height"] < 30
    second = page.get_by_text("<b>Second</b> note.")
    assert not second.is_visible()
    line.focus()
    page.keyboard.press("Enter")
    assert second.is_visible()
    assert line.inner_text() == "notes"
    assert page.locator(".ep-notes p").first.inner_text() == long.strip()
