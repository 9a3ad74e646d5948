"""Moving through the timeline with pointer, fingers and keys."""

from __future__ import annotations

import pytest

from epprof_nb.views.view import write_html
from tests.browser.helpers.moving import (
    MS,
    WHOLE,
    at,
    drag,
    focused,
    middle,
    near,
    stage_box,
    window,
)
from tests.browser.helpers.pixels import canvas
from tests.browser.helpers.settling import settled, wait_until

pytestmark = pytest.mark.browser


def test_the_wheel_zooms_at_the_pointer_and_pans_with_shift(page):
    page.mouse.move(*at(page, 25, 200))
    page.mouse.wheel(0, -400)
    start, end = window(page)
    assert end - start < 80
    # What was under the pointer, a quarter from the left, stays there.
    assert abs(start + (end - start) / 4 - 25) < 0.2
    page.keyboard.down("Shift")
    page.mouse.wheel(0, 120)
    page.keyboard.up("Shift")
    moved = window(page)
    assert moved[0] > start + 1
    assert abs((moved[1] - moved[0]) - (end - start)) < 0.01
    page.mouse.wheel(-120, 0)
    assert near(window(page), (start, end), 0.5)


def test_a_wheel_belongs_to_the_page_around_until_the_timeline_has_the_focus(opened, profile):
    from epprof_nb.views.view import View

    html = View(profile).mimebundle()["text/html"]
    page = opened("about:blank")
    page.set_content(html)
    frame = page.frame_locator("iframe")
    timeline = frame.locator(".ep-timeline[data-start]")
    timeline.wait_for()
    inner = page.frames[1]
    box = frame.locator(".ep-stage canvas").bounding_box()
    read = "e => [+e.dataset.start, +e.dataset.end]"
    whole = timeline.evaluate(read)
    page.mouse.move(box["x"] + 200, box["y"] + 100)
    page.mouse.wheel(0, -200)
    settled(inner)
    assert timeline.evaluate(read) == whole
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    settled(inner)
    closer = timeline.evaluate(read)
    assert closer[1] - closer[0] < whole[1] - whole[0]
    frame.locator(".ep-stage canvas").click(position={"x": 300, "y": 100})
    page.mouse.wheel(0, -200)
    settled(inner)
    assert timeline.evaluate(read)[1] - timeline.evaluate(read)[0] < closer[1] - closer[0]


def test_keys_zoom_pan_and_go_on_while_held(page):
    page.keyboard.press("w")
    start, end = window(page)
    assert near((start, end), (50 - 50 / 1.35, 50 + 50 / 1.35))
    page.keyboard.press("d")
    assert near(window(page), (start + 0.12 * (end - start), end + 0.12 * (end - start)))
    page.keyboard.press("ArrowLeft")
    assert near(window(page), (start, end))
    page.keyboard.press("s")
    assert near(window(page), WHOLE)
    page.keyboard.down("w")
    wait_until(
        page,
        f"() => {{ const {{ start, end }} = document.querySelector('.ep-timeline').dataset;"
        f" return end - start < {100 * MS / 1.35 / 1.35}; }}",
    )
    page.keyboard.up("w")
    page.keyboard.press("0")
    assert near(window(page), WHOLE, 0.001)


def test_shift_and_a_drag_zoom_to_the_stretch_and_history_leads_back(page):
    page.keyboard.down("Shift")
    drag(page, at(page, 20, 220), at(page, 45, 240))
    page.keyboard.up("Shift")
    assert near(window(page), (20, 45))
    page.keyboard.down("Shift")
    drag(page, at(page, 30, 220), at(page, 40, 240))
    page.keyboard.up("Shift")
    assert near(window(page), (30, 40))
    page.keyboard.press("Backspace")
    assert near(window(page), (20, 45))
    page.keyboard.press("Alt+ArrowLeft")
    assert near(window(page), WHOLE, 0.001)
    page.keyboard.press("Shift+Backspace")
    assert near(window(page), (20, 45))


def test_escape_ends_a_drag_as_if_it_had_not_begun(page):
    page.keyboard.down("Shift")
    page.mouse.move(*at(page, 20, 220))
    page.mouse.down()
    page.mouse.move(*at(page, 45, 240), steps=4)
    page.keyboard.press("Escape")
    page.mouse.up()
    page.keyboard.up("Shift")
    assert near(window(page), WHOLE, 0.001)


def test_double_click_goes_to_the_event_and_beside_events_shows_all(page):
    page.mouse.dblclick(*at(page, 37, middle(page, "stream 7")))
    start, end = window(page)
    assert 25 < start < 30 < 45 < end < 50
    page.mouse.dblclick(*at(page, 29, middle(page, "stream 13")))
    assert near(window(page), WHOLE, 0.001)


def test_f_goes_to_the_selection(page):
    page.mouse.click(*at(page, 37, middle(page, "stream 7")))
    page.keyboard.press("f")
    start, end = window(page)
    assert 25 < start < 30 < 45 < end < 50


def test_two_fingers_zoom_and_move(page):
    # Chromium's own touch events: two fingers part around 50 ms.
    client = page.context.new_cdp_session(page)
    client.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    x, y = at(page, 50, 220)

    def touch(kind: str, *places: float) -> None:
        points = [{"x": place, "y": y, "id": i} for i, place in enumerate(places)]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", x - 50, x + 50)
    for step in range(1, 6):
        touch("touchMove", x - 50 - 10 * step, x + 50 + 10 * step)
    touch("touchEnd")
    start, end = window(page)
    assert 45 < end - start < 55
    assert abs((start + end) / 2 - 50) < 1.5


def test_measuring_marks_the_event_and_from_edge_to_edge(page):
    accent = "(r, g, b) => Math.abs(r - 0) < 40 && Math.abs(g - 103) < 40 && Math.abs(b - 163) < 40"

    def marked(ms: float) -> bool:
        """Whether a line in the accent's colour stands at a time, in a gap between the lanes."""
        (x, _), box = at(page, ms, 0), stage_box(page)
        return canvas(page).evaluate(
            """(canvas, [x, y, test]) => {
              const ratio = canvas.width / canvas.clientWidth;
              const context = canvas.getContext("2d");
              const { data } = context.getImageData((x - 3) * ratio, y * ratio, 6 * ratio, 1);
              const is = eval(test);
              for (let i = 0; i < data.length; i += 4)
                if (is(data[i], data[i + 1], data[i + 2])) return true;
              return false;
            }""",
            [x - box["x"], box["height"] - 4, accent],
        )

    page.mouse.move(*at(page, 85, middle(page, "stream 13")))
    page.keyboard.press("m")
    settled(page)
    assert marked(80)
    assert marked(90)
    assert not marked(60)
    page.keyboard.press("Escape")
    settled(page)
    assert not marked(80)
    # From near the start of the set, 45 ms, to near the copy's end: both draw to the edge.
    page.keyboard.down("m")
    start = at(page, 45.3, middle(page, "stream 7"))
    drag(page, start, at(page, 89.7, middle(page, "stream 13")))
    page.keyboard.up("m")
    page.mouse.move(*at(page, 60, 4))
    settled(page)
    assert marked(45)
    assert marked(90)
    assert near(window(page), WHOLE, 0.001)


def test_the_help_lists_what_there_is_and_keeps_the_focus(page):
    page.keyboard.press("?")
    dialog = page.locator("dialog.ep-help")
    text = dialog.text_content()
    for expected in ("Zoom in", "Backspace", "Measure", "Pin the lane", "Search", "Shift drag"):
        assert expected in text
    for _ in range(6):
        page.keyboard.press("Tab")
        inside = "e => e === document.body || !!e.closest('dialog')"
        assert focused(page, inside)
    page.keyboard.press("w")
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    assert focused(page, "e => e.className") == "ep-timeline"
    assert near(window(page), WHOLE, 0.001)


def test_only_the_focused_timeline_takes_keys(opened, page_file):
    page = opened(page_file.as_uri())
    page.wait_for_selector(".ep-timeline[data-start]")
    page.locator("[role=tab][data-tab=timeline]").focus()
    page.keyboard.press("w")
    assert near(window(page), WHOLE, 0.001)


def test_reduced_motion_moves_at_once(browser, page_file):
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(page_file.as_uri())
    page.wait_for_selector(".ep-timeline[data-start]")
    page.locator(".ep-timeline").focus()
    lengths = page.evaluate(
        """async () => {
          const root = document.querySelector(".ep-timeline");
          const frame = () => new Promise((done) => requestAnimationFrame(done));
          root.dispatchEvent(new KeyboardEvent("keydown", { key: "w" }));
          root.dispatchEvent(new KeyboardEvent("keyup", { key: "w" }));
          const found = [];
          for (let i = 0; i < 4; i++) {
            await frame();
            await frame();
            found.push(root.dataset.end - root.dataset.start);
          }
          return found;
        }"""
    )
    assert len(set(lengths)) == 1
    assert lengths[0] == pytest.approx(100 * MS / 1.35, rel=0.01)
    context.close()


@pytest.mark.parametrize("count", [0, 1])
def test_hardly_any_events_are_no_trouble(opened, tmp_path, count):
    from epprof_nb.testing import synthetic_profile

    path = tmp_path / "small.html"
    write_html(synthetic_profile(activities=count), path)
    page = opened(path.as_uri())
    page.wait_for_selector(".ep-timeline[data-start]")
    whole = window(page)
    page.locator(".ep-timeline").focus()
    for key in ("w", "f", "m", "p", "c", "Backspace", "s", "s", "0", "Escape"):
        page.keyboard.press(key)
    assert near(window(page), whole, 0.001)


def test_deep_in_a_window_neighbouring_ticks_differ(opened, page_file):
    page = opened(page_file.as_uri())
    page.wait_for_selector(".ep-timeline[data-start]")
    assert page.locator(".ep-base").text_content() == ""
    page.mouse.move(*at(page, 33, 200))
    for _ in range(40):
        page.mouse.wheel(0, -120)
    start, end = window(page)
    assert end - start < 0.001
    assert page.locator(".ep-base").text_content().startswith("33.")
