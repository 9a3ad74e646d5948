"""Messages between the live widget and Python: cached windows, silence, selections, closing."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.testing import synthetic_profile
from epprof_nb.views.view_model import ViewModel
from tests.browser.helpers.pixels import lane_y, pixel, width
from tests.browser.helpers.rectangles import click, hover, in_panel, true_rectangle
from tests.browser.helpers.settling import pause, settled
from tests.helpers.live_host import LiveHost
from tests.helpers.tiny import line, profile

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect


@pytest.fixture
def host(opened):
    page = opened("about:blank")
    return LiveHost(page, ViewModel(synthetic_profile(activities=60_000)))


def _shown(page) -> None:
    page.locator(".ep-timeline canvas").last.wait_for()
    settled(page)


def _windows(host) -> list[dict]:
    return [message for message in host.asked if message["type"] == "window"]


def _press(page, key: str, times: int = 1) -> None:
    page.locator(".ep-timeline").focus()
    for _ in range(times):
        page.keyboard.press(key)
    settled(page)


def _quiet(host) -> None:
    """Wait until no window is requested any more, prefetched windows included."""
    requested = -1
    while requested != len(_windows(host)):
        requested = len(_windows(host))
        pause(host.page, 300)
        host.settle()


def test_the_first_picture_needs_no_answer(host):
    host.silent = True
    host.show()
    _shown(host.page)
    assert "60,000 activities" in host.page.text_content(".ep-panel")
    label = host.page.locator(".ep-label", has_text="stream 13").first
    assert label.is_visible()


def test_the_summary_follows_the_first_picture(host):
    host.show()
    host.page.wait_for_selector(".ep-busy")
    assert "kernels" in host.page.text_content(".ep-headline")


def test_zooming_in_brings_single_events_and_going_back_asks_nothing(host):
    page = host.page
    host.show()
    _shown(page)
    _press(page, "w", 18)
    expect(page.locator(".ep-panel")).to_contain_text("Every event of this window")
    _quiet(host)
    asked = len(_windows(host))
    _press(page, "0")
    expect(page.locator(".ep-panel")).to_contain_text("60,000 activities")
    _quiet(host)
    # On its way it may request the windows it passes, with margins; the whole was loaded first.
    assert [w for w in _windows(host)[asked:] if w["width"] <= width(page) + 1] == []


def test_silence_is_told_and_what_is_drawn_stays(host):
    page = host.page
    host.show()
    _shown(page)
    _quiet(host)
    host.silent = True
    before = len(_windows(host))
    _press(page, "w", 6)
    status = page.locator(".ep-status")
    status.wait_for(timeout=60_000)
    assert status.text_content() == "no answer from Python: showing the events loaded so far"
    # One request, one retry, and then no further one.
    assert len(_windows(host)) - before <= 3
    colours = page.locator(".ep-timeline canvas").last.screenshot()
    host.silent = False
    # The retry comes with the next move of the reader.
    _press(page, "d", 2)
    status.wait_for(state="hidden", timeout=60_000)
    assert page.locator(".ep-timeline canvas").last.screenshot() != colours


VEIL = (238, 241, 244)


def _veiled(page) -> list[bool]:
    """Whether the left edge, the middle and the right edge of a lane are shaded."""
    y, wide = lane_y(page, "stream 13"), width(page)
    return [
        bool(np.abs(np.subtract(pixel(page, x, y), VEIL)).max() <= 1)
        for x in (3, wide / 2, wide - 4)
    ]


def test_what_was_not_sent_yet_is_veiled_not_empty(host):
    page = host.page
    host.show()
    _shown(page)
    _press(page, "w", 10)
    host.settle()
    assert _veiled(page) == [False, False, False]
    host.silent = True
    _press(page, "d", 30)
    assert _veiled(page) == [True, True, True]
    _press(page, "0")  # the first picture is there
    assert _veiled(page) == [False, False, False]


def test_a_selection_survives_the_loading_of_windows(host):
    page = host.page
    host.show()
    _shown(page)
    box = page.locator(".ep-timeline canvas").last.bounding_box()
    label = page.locator(".ep-label", has_text="main thread").first.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.5, label["y"] + 8)
    page.locator(".ep-chain").wait_for()
    selected = [w for w in _windows(host) if w["selection"]]
    _press(page, "w", 8)
    host.settle()
    later = [w for w in _windows(host) if w["selection"]]
    assert len(later) > len(selected)
    assert {w["selection"]["prefix"] for w in later} == {"op"}
    assert page.locator(".ep-chain").count() == 1


def test_a_closed_view_lets_go_of_what_it_held(host):
    page = host.page
    page.evaluate(
        """() => {
          window.drawn = 0;
          const ask = window.requestAnimationFrame.bind(window);
          window.requestAnimationFrame = (run) => ask((now) => { window.drawn++; run(now); });
        }"""
    )
    host.show()
    _shown(page)
    timeline = page.locator(".ep-timeline").element_handle()
    canvas = page.locator(".ep-timeline canvas").first.element_handle()
    host.close()
    page.wait_for_timeout(300)
    assert page.locator(".epprof-live").count() == 0
    assert not timeline.evaluate("e => e.isConnected")
    # The canvas has no pixels any more.
    assert canvas.evaluate("e => [e.width, e.height]") == [0, 0]
    # There are no listeners: keys, size and contrast cause no drawing and no request.
    asked, drawn = len(host.asked), page.evaluate("window.drawn")
    timeline.evaluate("e => e.dispatchEvent(new KeyboardEvent('keydown', { key: 'w' }))")
    page.set_viewport_size({"width": 700, "height": 500})
    page.emulate_media(contrast="more")
    page.wait_for_timeout(400)
    assert page.evaluate("window.drawn") == drawn
    assert len(host.asked) == asked


def test_a_closed_tree_lets_go_of_what_it_held(host):
    page = host.page
    host.show()
    page.click("[role=tab][data-tab=breakdown]")
    page.click("[data-by=tree]")
    canvas = page.locator(".ep-icicle canvas")
    canvas.click(position={"x": 40, "y": 10})
    settled(page)
    held, stage = canvas.element_handle(), page.locator(".ep-icicle-stage").element_handle()
    # From here on, each request of a frame is counted.
    page.evaluate(
        """() => {
          window.drawn = 0;
          const ask = window.requestAnimationFrame.bind(window);
          window.requestAnimationFrame = (run) => { window.drawn++; return ask(run); };
        }"""
    )
    stage.evaluate("e => e.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown' }))")
    assert page.evaluate("window.drawn") > 0  # as long as it is open
    host.close()
    expect(page.locator(".epprof-live")).to_have_count(0)
    assert held.evaluate("e => [e.isConnected, e.width, e.height]") == [False, 0, 0]
    asked, drawn = len(host.asked), page.evaluate("window.drawn")
    page.set_viewport_size({"width": 700, "height": 500})
    page.emulate_media(contrast="more", color_scheme="dark")
    stage.evaluate("e => e.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown' }))")
    page.wait_for_timeout(400)
    assert page.evaluate("window.drawn") == drawn
    assert len(host.asked) == asked


def test_a_merged_rectangle_stays_the_same_when_it_is_selected(opened):
    view_model = ViewModel(synthetic_profile(activities=60_000))
    page = opened("about:blank")
    host = LiveHost(page, view_model)
    host.show()
    _shown(page)
    checked = 0
    for stream, x in ((13, 200), (13, 500), (7, 200), (7, 500)):
        told = hover(page, stream, x)
        if told is None:
            continue
        click(page, stream, x)
        _quiet(host)
        truth, longest = true_rectangle(view_model.profile, stream, told)
        assert in_panel(page) == told == truth
        length = page.locator(".ep-group dl > div:has(dt:text-is('duration')) dd")
        assert length.text_content() == longest
        checked += 1
    assert checked >= 2
    page.click(".ep-panel >> text=zoom to these")
    expect(page.locator(".ep-panel .ep-note:visible")).to_have_count(0)


def test_the_whole_profile_fills_the_room_for_selections(opened):
    page = opened("about:blank", width=1100)
    LiveHost(page, ViewModel(synthetic_profile(activities=3000))).show()
    _shown(page)
    page.locator(".ep-range[aria-busy=false]").wait_for()
    rows = page.locator(".ep-range tbody tr")
    assert rows.count() == 12
    below, last = page.locator(".ep-below").bounding_box(), rows.last.bounding_box()
    blank = below["y"] + below["height"] - (last["y"] + last["height"])
    assert 0 <= blank < 30


def test_a_live_view_without_device_work_reserves_no_room_for_it(opened):
    page = opened("about:blank")
    LiveHost(page, ViewModel(profile([line(1, 1, 0, 10_000)]))).show()
    _shown(page)
    below = page.locator(".ep-below").bounding_box()
    assert below["height"] < 60
