"""The live widget's talk with Python: kept windows, silence, selections, closing."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.testing import synthetic_profile
from epprof_nb.views.view_model import ViewModel
from tests.browser.pixels import lane_y, pixel, width
from tests.live_host import LiveHost

pytestmark = pytest.mark.browser


@pytest.fixture
def host(opened):
    page = opened("about:blank")
    return LiveHost(page, ViewModel(synthetic_profile(activities=60_000)))


def _shown(page) -> None:
    page.locator(".ep-timeline canvas").last.wait_for()
    page.wait_for_timeout(600)


def _windows(host) -> list[dict]:
    return [message for message in host.asked if message["type"] == "window"]


def _press(page, key: str, times: int = 1) -> None:
    page.locator(".ep-timeline").focus()
    for _ in range(times):
        page.keyboard.press(key)
        page.wait_for_timeout(60)


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
    assert "kernels" in host.page.text_content(".ep-summary")


def test_zooming_in_brings_single_events_and_going_back_asks_nothing(host):
    page = host.page
    host.show()
    _shown(page)
    _press(page, "w", 18)
    page.wait_for_timeout(800)
    assert "every event of this window" in page.text_content(".ep-panel")
    page.wait_for_timeout(500)
    asked = len(_windows(host))
    _press(page, "0")
    page.wait_for_timeout(900)
    assert "60,000 activities" in page.text_content(".ep-panel")
    # On its way it may ask for what it passes, with margins; the whole was there from the start.
    assert [w for w in _windows(host)[asked:] if w["width"] <= width(page) + 1] == []


def test_silence_is_told_and_what_is_drawn_stays(host):
    page = host.page
    host.show()
    _shown(page)
    page.wait_for_timeout(600)
    host.silent = True
    before = len(_windows(host))
    _press(page, "w", 6)
    status = page.locator(".ep-status")
    status.wait_for(timeout=8000)
    assert status.text_content() == "no answer from Python: showing what is here"
    # Asked, asked once more, and then left in peace.
    assert len(_windows(host)) - before <= 3
    colours = page.locator(".ep-timeline canvas").last.screenshot()
    host.silent = False
    # The retry comes with the next move of the reader.
    _press(page, "d", 2)
    status.wait_for(state="hidden", timeout=8000)
    assert page.locator(".ep-timeline canvas").last.screenshot() != colours


VEIL = (238, 241, 244)


def _veiled(page) -> list[bool]:
    """Whether the left edge, the middle and the right edge of a lane are veiled."""
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
    page.wait_for_timeout(900)
    assert _veiled(page) == [False, False, False]
    host.silent = True
    _press(page, "d", 30)
    page.wait_for_timeout(400)
    assert _veiled(page) == [True, True, True]
    _press(page, "0")  # the first picture is there
    page.wait_for_timeout(400)
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
    page.wait_for_timeout(700)
    later = [w for w in _windows(host) if w["selection"]]
    assert len(later) > len(selected)
    assert {w["selection"]["prefix"] for w in later} == {"op"}
    assert page.locator(".ep-chain").count() == 1


def test_a_closed_view_lets_go_of_what_it_held(host):
    page = host.page
    page.evaluate("document.documentElement.dataset.renderer = 'webgl'")
    page.evaluate(
        """() => {
          window.drawn = 0;
          const ask = window.requestAnimationFrame.bind(window);
          window.requestAnimationFrame = (run) => ask((now) => { window.drawn++; run(now); });
          const make = HTMLCanvasElement.prototype.getContext;
          HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
            const context = make.call(this, kind, ...rest);
            if (kind === "webgl2" && context && !window.textures) {
              const [create, drop] = [context.createTexture, context.deleteTexture];
              window.textures = new Set();
              context.createTexture = () => {
                const made = create.call(context);
                window.textures.add(made);
                return made;
              };
              context.deleteTexture = (old) => {
                window.textures.delete(old);
                drop.call(context, old);
              };
            }
            return context;
          };
        }"""
    )
    host.show()
    _shown(page)
    assert page.evaluate("window.textures.size") > 0
    timeline = page.locator(".ep-timeline").element_handle()
    canvas = page.locator(".ep-timeline canvas").first.element_handle()
    host.close()
    page.wait_for_timeout(300)
    assert page.locator(".epprof-live").count() == 0
    assert not timeline.evaluate("e => e.isConnected")
    # The canvas holds no pixels any more, the GPU none of its columns.
    assert canvas.evaluate("e => [e.width, e.height]") == [0, 0]
    assert page.evaluate("window.textures.size") == 0
    # Nobody listens: keys, size and contrast draw and ask for nothing.
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
    page.wait_for_timeout(500)
    held, stage = canvas.element_handle(), page.locator(".ep-icicle-stage").element_handle()
    # From here on, whoever asks for a frame is counted.
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
    page.wait_for_timeout(300)
    assert held.evaluate("e => [e.isConnected, e.width, e.height]") == [False, 0, 0]
    asked, drawn = len(host.asked), page.evaluate("window.drawn")
    page.set_viewport_size({"width": 700, "height": 500})
    page.emulate_media(contrast="more", color_scheme="dark")
    stage.evaluate("e => e.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown' }))")
    page.wait_for_timeout(400)
    assert page.evaluate("window.drawn") == drawn
    assert len(host.asked) == asked
