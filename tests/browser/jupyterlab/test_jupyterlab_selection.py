"""Selection between a live view and Python, in a real JupyterLab."""

from __future__ import annotations

import pytest

from tests.browser.helpers.open_notebook import IMPORT
from tests.browser.helpers.pixels import COPY, KERNEL_2, canvas, click, lane_y, pixels_at
from tests.browser.helpers.settling import settled

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect

CHOSEN = "sorted(live.selection.index), live.selected_span"
COPIES = "copies = prof.activities\ncopies = copies[copies['kind'] == 'memcpy'][::-1]"


def _lit(page, ms: float, y: float) -> set[tuple[int, int, int]]:
    return set(pixels_at(page, ms, y))


def _shows_two_copies(page) -> None:
    expect(page.locator(".ep-panel")).to_contain_text("2 rows of a DataFrame", timeout=60_000)
    page.locator(".ep-timeline").press("0")
    settled(page)
    assert COPY in _lit(page, 84, lane_y(page, "stream 13"))
    assert KERNEL_2 not in _lit(page, 22, lane_y(page, "stream 7") + 6)


def test_what_is_chosen_is_a_dataframe_in_python(in_jupyterlab):
    page = in_jupyterlab.show()
    click(page, 37, lane_y(page, "stream 7"))
    expect(page.locator(".ep-leaf")).to_contain_text("gemm")
    assert in_jupyterlab.told(CHOSEN) == "[2] None"
    canvas(page).scroll_into_view_if_needed()
    box = canvas(page).bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.41, box["y"] + 9)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 9, steps=4)
    page.mouse.up()
    page.locator(".ep-timeline").press("Escape")  # the event; the span stays
    # The breakdown beside: from 41 to 70 ms the end of a kernel, and a set.
    page.locator(".ep-range[aria-busy=false]").wait_for()
    numbers = page.locator(".ep-range-numbers > div")
    expect(numbers.filter(has_text="kernels").locator("dd")).to_have_text("1")
    expect(numbers.filter(has_text="memsets").locator("dd")).to_have_text("1")
    busy = numbers.filter(has_text="GPU busy").locator("dd").inner_text()
    assert abs(float(busy.split("%")[0]) - 100 * 9 / 29) < 1
    first = page.locator(".ep-range-tables table").first.locator("tr").all_inner_texts()
    assert "y = step(x)" in first[0] or "<script>" in first[0]
    # In Python these two, and a wait.
    assert in_jupyterlab.told(CHOSEN).startswith("[2, 3, 5] (4")


def test_an_op_is_in_python_what_it_launched(in_jupyterlab):
    page = in_jupyterlab.show()
    click(page, 15, lane_y(page, "main thread") + 17 * 2)
    expect(page.locator(".ep-chain")).to_contain_text("y = step(x)")
    assert in_jupyterlab.told("live.selection['name'].str.slice(0, 4).tolist()") == (
        "['<scr', 'void']"
    )


def test_python_lights_the_rows_of_a_dataframe(in_jupyterlab):
    page = in_jupyterlab.show()
    in_jupyterlab.run(2, f"{COPIES}\nlive.select(copies)")
    _shows_two_copies(page)
    assert in_jupyterlab.told(CHOSEN) == "[0, 4] None"
    in_jupyterlab.run(2, "live.select(None)")
    expect(page.locator(".ep-panel")).to_contain_text("Click an event")
    assert KERNEL_2 in _lit(page, 22, lane_y(page, "stream 7") + 6)


def test_a_view_opens_with_the_rows_it_was_asked_for(in_jupyterlab):
    page = in_jupyterlab.show_by(
        f"{IMPORT}\nprof = PROFILES['known']()\n{COPIES}\n"
        "live = prof.timeline(select=copies).widget()"
    )
    _shows_two_copies(page)
    assert in_jupyterlab.told(CHOSEN) == "[0, 4] None"
    # Without the widget, the static view highlights them, too.
    in_jupyterlab.run(3, "prof.timeline(select=copies)")
    frame = page.frame_locator("iframe.epprof-frame")
    expect(frame.locator(".ep-panel")).to_contain_text("2 rows of a DataFrame", timeout=60_000)
    in_jupyterlab.run(3, "None")


def test_what_is_below_a_view_stays_in_place(in_jupyterlab):
    """The texts below the timeline change with the window, the selection and the range."""
    page = in_jupyterlab.show("loop")
    heights = []

    def measure():
        settled(page)
        heights.append(page.locator(".epprof-live").last.bounding_box()["height"])

    timeline = page.locator(".ep-timeline")
    measure()
    timeline.focus()
    canvas(page).click(position={"x": 200, "y": lane_y(page, "main thread") + 8})
    expect(page.locator(".ep-groups")).to_be_visible()
    measure()
    page.keyboard.press("i")
    page.locator(".ep-range[aria-busy=false]").wait_for()
    measure()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    measure()
    assert len(set(heights)) == 1, heights


def test_linked_views_zoom_together(in_jupyterlab):
    """Each widget has a copy of the viewer's modules."""
    page = in_jupyterlab.page
    page.evaluate(
        "for (const old of document.querySelectorAll('.epprof-live'))"
        " old.toggleAttribute('data-old', true)"
    )
    in_jupyterlab.run(
        0,
        f"{IMPORT}\nfrom epprof_nb.views.widget.linked_views import Link\nMS = 10**6\n"
        "for origin in (0, 20):\n"
        "    link = Link('g', origin * MS, (10 * MS, 30 * MS), (origin - 20) * MS, 120 * MS)\n"
        "    PROFILES['known']().timeline().widget(link=link)",
    )
    timelines = page.locator(".epprof-output .epprof-live:not([data-old]) .ep-timeline[data-start]")
    expect(timelines).to_have_count(2)

    def expect_starts(*starts_ms):
        for i, ms in enumerate(starts_ms):
            expect(timelines.nth(i)).to_have_attribute("data-start", str(ms * 10**6))

    expect_starts(10, 30)
    timelines.nth(1).press("0")
    expect_starts(-20, 0)
