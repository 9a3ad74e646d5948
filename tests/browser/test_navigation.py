"""Moving through the timeline with pointer, fingers and keys; lanes folded, pinned, measured."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.profiles import Profile
from epprof_nb.table import Table
from epprof_nb.views.page import write_html

pytestmark = pytest.mark.browser

MS = 1_000_000
WHOLE = (0, 100)


@pytest.fixture
def page(opened, page_file):
    """The known profile of 100 ms, its timeline focused."""
    page = opened(page_file.as_uri())
    page.wait_for_selector(".ep-timeline[data-start]")
    page.locator(".ep-timeline").focus()
    return page


def _window(page) -> tuple[float, float]:
    """The window in milliseconds, once it stands still."""
    read = "e => [+e.dataset.start, +e.dataset.end]"
    before = None
    for _ in range(60):
        now = page.locator(".ep-timeline").evaluate(read)
        if now == before:
            return now[0] / MS, now[1] / MS
        before = now
        page.wait_for_timeout(90)
    raise AssertionError("the window does not stand still")


def _near(found: tuple[float, float], expected: tuple[float, float], within: float = 0.3) -> bool:
    return all(abs(a - b) <= within for a, b in zip(found, expected, strict=True))


def _box(page) -> dict[str, float]:
    return page.locator(".ep-stage canvas").bounding_box()


def _at(page, ms: float, y: float) -> tuple[float, float]:
    """Page coordinates of a time in the window and a height on the canvas."""
    box, (start, end) = _box(page), _window(page)
    return box["x"] + box["width"] * (ms - start) / (end - start), box["y"] + y


def _drag(page, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=5)
    page.mouse.up()


def _labels(page, part: str = ".ep-label") -> list[str]:
    return page.locator(f"{part} .ep-name").all_text_contents()


def _middle(page, label: str) -> float:
    """Height of a label's middle on the canvas."""
    found = page.locator(".ep-label", has_text=label).first.bounding_box()
    return found["y"] + min(found["height"], 17) / 2 - _box(page)["y"]


def test_the_wheel_zooms_at_the_pointer_and_pans_with_shift(page):
    page.mouse.move(*_at(page, 25, 200))
    page.mouse.wheel(0, -400)
    start, end = _window(page)
    assert end - start < 80
    # What was under the pointer, a quarter from the left, stays there.
    assert abs(start + (end - start) / 4 - 25) < 0.2
    page.keyboard.down("Shift")
    page.mouse.wheel(0, 120)
    page.keyboard.up("Shift")
    moved = _window(page)
    assert moved[0] > start + 1
    assert abs((moved[1] - moved[0]) - (end - start)) < 0.01
    page.mouse.wheel(-120, 0)
    assert _near(_window(page), (start, end), 0.5)


def test_a_wheel_belongs_to_the_page_around_until_the_timeline_has_the_focus(opened, profile):
    from epprof_nb.views.page import View

    html = View(profile).mimebundle()["text/html"]
    page = opened("about:blank")
    page.set_content(html)
    frame = page.frame_locator("iframe")
    timeline = frame.locator(".ep-timeline[data-start]")
    timeline.wait_for()
    box = frame.locator(".ep-stage canvas").bounding_box()
    read = "e => [+e.dataset.start, +e.dataset.end]"
    whole = timeline.evaluate(read)
    page.mouse.move(box["x"] + 200, box["y"] + 100)
    page.mouse.wheel(0, -200)
    page.wait_for_timeout(150)
    assert timeline.evaluate(read) == whole
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    page.wait_for_timeout(150)
    closer = timeline.evaluate(read)
    assert closer[1] - closer[0] < whole[1] - whole[0]
    frame.locator(".ep-stage canvas").click(position={"x": 300, "y": 100})
    page.mouse.wheel(0, -200)
    page.wait_for_timeout(150)
    assert timeline.evaluate(read)[1] - timeline.evaluate(read)[0] < closer[1] - closer[0]


def test_keys_zoom_pan_and_go_on_while_held(page):
    page.keyboard.press("w")
    start, end = _window(page)
    assert _near((start, end), (50 - 50 / 1.35, 50 + 50 / 1.35))
    page.keyboard.press("d")
    assert _near(_window(page), (start + 0.12 * (end - start), end + 0.12 * (end - start)))
    page.keyboard.press("ArrowLeft")
    assert _near(_window(page), (start, end))
    page.keyboard.press("s")
    assert _near(_window(page), WHOLE)
    page.keyboard.down("w")
    page.wait_for_timeout(700)
    page.keyboard.up("w")
    start, end = _window(page)
    assert end - start < 100 / 1.35 / 1.35
    page.keyboard.press("0")
    assert _near(_window(page), WHOLE, 0.001)


def test_shift_and_a_drag_zoom_to_the_stretch_and_history_leads_back(page):
    page.keyboard.down("Shift")
    _drag(page, _at(page, 20, 220), _at(page, 45, 240))
    page.keyboard.up("Shift")
    assert _near(_window(page), (20, 45))
    page.keyboard.down("Shift")
    _drag(page, _at(page, 30, 220), _at(page, 40, 240))
    page.keyboard.up("Shift")
    assert _near(_window(page), (30, 40))
    page.keyboard.press("Backspace")
    assert _near(_window(page), (20, 45))
    page.keyboard.press("Alt+ArrowLeft")
    assert _near(_window(page), WHOLE, 0.001)
    page.keyboard.press("Shift+Backspace")
    assert _near(_window(page), (20, 45))


def test_escape_ends_a_drag_as_if_it_had_not_begun(page):
    page.keyboard.down("Shift")
    page.mouse.move(*_at(page, 20, 220))
    page.mouse.down()
    page.mouse.move(*_at(page, 45, 240), steps=4)
    page.keyboard.press("Escape")
    page.mouse.up()
    page.keyboard.up("Shift")
    assert _near(_window(page), WHOLE, 0.001)


def test_double_click_goes_to_the_event_and_beside_events_shows_all(page):
    page.mouse.dblclick(*_at(page, 37, _middle(page, "stream 7")))
    start, end = _window(page)
    assert 25 < start < 30 < 45 < end < 50
    page.mouse.dblclick(*_at(page, 29, _middle(page, "stream 13")))
    assert _near(_window(page), WHOLE, 0.001)


def test_f_goes_to_the_selection(page):
    page.mouse.click(*_at(page, 37, _middle(page, "stream 7")))
    page.keyboard.press("f")
    start, end = _window(page)
    assert 25 < start < 30 < 45 < end < 50


def test_two_fingers_zoom_and_move(page):
    # Chromium's own touch events: two fingers part around 50 ms.
    client = page.context.new_cdp_session(page)
    client.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    x, y = _at(page, 50, 220)

    def touch(kind: str, *places: float) -> None:
        points = [{"x": place, "y": y, "id": i} for i, place in enumerate(places)]
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", x - 50, x + 50)
    for step in range(1, 6):
        touch("touchMove", x - 50 - 10 * step, x + 50 + 10 * step)
    touch("touchEnd")
    start, end = _window(page)
    assert 45 < end - start < 55
    assert abs((start + end) / 2 - 50) < 1.5


def test_the_minimap_moves_and_resizes_the_window(page):
    handle, strip = page.locator(".ep-window"), page.locator(".ep-minimap").bounding_box()
    y = strip["y"] + strip["height"] / 2

    def x(ms: float) -> float:
        return strip["x"] + strip["width"] * ms / 100

    _drag(page, (x(99.9), y), (x(40), y))
    assert _near(_window(page), (0, 40))
    _drag(page, (x(0.1), y), (x(20), y))
    assert _near(_window(page), (20, 40))
    _drag(page, (x(30), y), (x(60), y))
    assert _near(_window(page), (50, 70))
    page.mouse.click(x(15), y)
    assert _near(_window(page), (5, 25))
    box = handle.bounding_box()
    assert abs(box["x"] - x(5)) < 1.5
    assert abs(box["width"] - strip["width"] / 5) < 2
    assert handle.get_attribute("aria-valuetext") == "5.00 ms to 25.0 ms"


def test_the_minimap_is_reached_and_moved_by_keys(page):
    page.keyboard.press("w")
    _window(page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Window of time"
    length = np.diff(_window(page))[0]
    page.keyboard.press("End")
    assert _near(_window(page), (100 - length, 100))
    page.keyboard.press("Home")
    assert _near(_window(page), (0, length))
    page.keyboard.press("PageDown")
    assert _near(_window(page), (100 - length, 100), 35)
    assert _window(page)[0] > 10
    page.keyboard.press("ArrowUp")
    assert np.diff(_window(page))[0] < length - 5


def test_measuring_marks_the_event_and_from_edge_to_edge(page):
    accent = "(r, g, b) => Math.abs(r - 0) < 40 && Math.abs(g - 103) < 40 && Math.abs(b - 163) < 40"

    def marked(ms: float) -> bool:
        """Whether a line in the accent's colour stands at a time, in a gap between the lanes."""
        (x, _), box = _at(page, ms, 0), _box(page)
        return page.evaluate(
            """([x, y, test]) => {
              const canvas = document.querySelector(".ep-stage canvas");
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

    page.mouse.move(*_at(page, 85, _middle(page, "stream 13")))
    page.keyboard.press("m")
    page.wait_for_timeout(80)
    assert marked(80)
    assert marked(90)
    assert not marked(60)
    page.keyboard.press("Escape")
    page.wait_for_timeout(80)
    assert not marked(80)
    # From near the start of the set, 45 ms, to near the copy's end: both draw to the edge.
    page.keyboard.down("m")
    start = _at(page, 45.3, _middle(page, "stream 7"))
    _drag(page, start, _at(page, 89.7, _middle(page, "stream 13")))
    page.keyboard.up("m")
    page.mouse.move(*_at(page, 60, 4))
    page.wait_for_timeout(80)
    assert marked(45)
    assert marked(90)
    assert _near(_window(page), WHOLE, 0.001)


def test_lanes_fold_and_unfold_by_pointer_and_all_by_key(page):
    assert {"outstanding", "copies", "API calls"} <= set(_labels(page))
    page.click(".ep-label-busy .ep-fold")
    assert not {"outstanding", "copies"} & set(_labels(page))
    assert page.get_attribute(".ep-label-busy .ep-fold", "aria-expanded") == "false"
    page.click(".ep-label-ops .ep-fold")
    assert "API calls" not in _labels(page)
    height = page.locator(".ep-stage").bounding_box()["height"]
    page.locator(".ep-timeline").focus()
    page.keyboard.press("c")
    assert "API calls" in _labels(page)
    assert page.get_attribute(".ep-label-api .ep-fold", "aria-expanded") == "true"
    assert page.locator(".ep-stage").bounding_box()["height"] > height
    page.click(".ep-fold-all")
    assert _labels(page) == ["GPU busy", "main thread", "stream 7", "stream 13"]
    assert page.get_attribute(".ep-fold-all", "aria-pressed") == "true"


def test_a_pinned_lane_stays_on_top_while_the_others_scroll(opened, tmp_path):
    from epprof_nb.testing import synthetic_profile

    path = tmp_path / "streams.html"
    write_html(synthetic_profile(activities=2000, streams=40), path)
    page = opened(path.as_uri(), height=560)
    page.wait_for_selector(".ep-timeline[data-start]")
    page.locator(".ep-timeline").focus()
    page.hover(".ep-label-part:first-child .ep-label >> nth=0")
    label = page.locator(".ep-clip .ep-label", has_text="main thread")
    label.hover()
    label.locator(".ep-pin").click()
    pinned = page.locator(".ep-label-part:first-child .ep-label", has_text="main thread")
    before = pinned.bounding_box()
    assert pinned.locator(".ep-pin").get_attribute("aria-pressed") == "true"
    assert "main thread" not in _labels(page, ".ep-clip .ep-label")
    scroller = page.locator(".ep-scroller")
    assert scroller.evaluate("e => e.scrollHeight > e.clientHeight")
    top = _labels(page, ".ep-clip .ep-label")[0]
    scroller.evaluate("e => e.scrollBy(0, 300)")
    page.wait_for_timeout(120)
    assert pinned.bounding_box() == before
    assert _labels(page, ".ep-clip .ep-label")[0] != top
    # By the pointer's place and a key it goes back.
    box = page.locator(".ep-stage canvas").bounding_box()
    page.mouse.move(box["x"] + 300, before["y"] + 6)
    page.locator(".ep-timeline").focus()
    page.keyboard.press("p")
    page.wait_for_timeout(80)
    assert pinned.count() == 0


def test_labels_are_reached_folded_and_pinned_by_keys_alone(page):
    page.locator(".ep-label-busy .ep-fold").focus()
    page.keyboard.press("Enter")
    assert page.get_attribute(".ep-label-busy .ep-fold", "aria-expanded") == "false"
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == "main thread"
    page.keyboard.press("p")
    page.wait_for_timeout(80)
    pinned = page.locator('.ep-label:has(.ep-pin[aria-pressed="true"])')
    assert pinned.all_text_contents() == ["main thread"]
    # One stop for Tab, whatever the number of lanes.
    assert page.locator('.ep-label .ep-fold[tabindex="0"]').count() == 1


def test_the_label_column_is_resized_by_pointer_and_keys(page):
    grip = page.locator(".ep-grip")
    width = _box(page)["width"]
    box = grip.bounding_box()
    _drag(page, (box["x"] + 3, box["y"] + 100), (box["x"] + 83, box["y"] + 100))
    assert abs(_box(page)["width"] - (width - 80)) < 2
    grip.focus()
    page.keyboard.press("ArrowLeft")
    assert abs(_box(page)["width"] - (width - 64)) < 2
    strip = page.locator(".ep-minimap").bounding_box()
    assert abs(strip["x"] - _box(page)["x"]) < 1
    assert _near(_window(page), WHOLE, 0.001)


def test_the_help_lists_what_there_is_and_keeps_the_focus(page):
    page.keyboard.press("?")
    dialog = page.locator("dialog.ep-help")
    text = dialog.text_content()
    for expected in ("Zoom in", "Backspace", "Measure", "Pin the lane", "Search", "Shift drag"):
        assert expected in text
    for _ in range(6):
        page.keyboard.press("Tab")
        inside = (
            "document.activeElement === document.body || !!document.activeElement.closest('dialog')"
        )
        assert page.evaluate(inside)
    page.keyboard.press("w")
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    assert page.evaluate("document.activeElement.className") == "ep-timeline"
    assert _near(_window(page), WHOLE, 0.001)


def test_counters_tell_their_values(page):
    tip = page.locator(".ep-tip")
    page.mouse.move(*_at(page, 17, _middle(page, "outstanding")))
    assert "2 outstanding launches" in tip.text_content()
    page.mouse.move(*_at(page, 70, _middle(page, "outstanding")))
    assert "0 outstanding" in tip.text_content()
    page.mouse.move(*_at(page, 7, _middle(page, "copies")))
    # 4 MB in 5 ms; of them 2/5 by then.
    assert "800 MB/s" in tip.text_content()
    assert "so far" in tip.text_content()
    page.mouse.move(*_at(page, 35, _middle(page, "GPU busy")))
    assert "busy 100.0 %" in tip.text_content()
    assert page.locator(".ep-label-launches .ep-scale").text_content() == "0\N{EN DASH}2"


def test_several_devices_have_groups_that_fold(opened, profile, tmp_path):
    tables = dict(profile.tables)
    activities = tables["activities"]
    columns = {
        c.name: activities.names(c.name) if c.kind in ("name", "args") else activities[c.name]
        for c in activities.schema.columns
    }
    columns["device_id"] = (activities["stream_id"] == 13).astype(np.int64)
    tables["activities"] = Table(activities.schema, columns)
    path = tmp_path / "two.html"
    write_html(Profile(tables, profile.info, profile.sources), path)
    page = opened(path.as_uri())
    page.wait_for_selector(".ep-timeline[data-start]")
    assert [name for name in _labels(page) if name.startswith(("GPU", "stream"))] == [
        "GPU 0", "stream 7", "GPU 1", "stream 13"
    ]  # fmt: skip
    page.click(".ep-label-device .ep-fold >> nth=0")
    assert "stream 7" not in _labels(page)
    assert "stream 13" in _labels(page)


def test_only_the_focused_timeline_takes_keys(opened, page_file):
    page = opened(page_file.as_uri())
    page.wait_for_selector(".ep-timeline[data-start]")
    page.locator("[role=tab][data-tab=timeline]").focus()
    page.keyboard.press("w")
    assert _near(_window(page), WHOLE, 0.001)


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
    whole = _window(page)
    page.locator(".ep-timeline").focus()
    for key in ("w", "f", "m", "p", "c", "Backspace", "s", "s", "0", "Escape"):
        page.keyboard.press(key)
    assert _near(_window(page), whole, 0.001)


def test_deep_in_a_window_neighbouring_ticks_differ(opened, page_file):
    page = opened(page_file.as_uri())
    page.wait_for_selector(".ep-timeline[data-start]")
    assert page.locator(".ep-base").text_content() == ""
    page.mouse.move(*_at(page, 33, 200))
    for _ in range(40):
        page.mouse.wheel(0, -120)
    start, end = _window(page)
    assert end - start < 0.001
    assert page.locator(".ep-base").text_content().startswith("33.")
