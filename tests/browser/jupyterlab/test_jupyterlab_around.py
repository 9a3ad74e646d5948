"""A live view among the cells of JupyterLab: owner of keys and wheel, and a busy Python."""

from __future__ import annotations

import os
import signal

import pytest

from tests.browser.helpers.moving import WHOLE, at, focused, middle, near, stage_box, window
from tests.browser.helpers.pixels import (
    KERNEL,
    KERNEL_2,
    canvas,
    click,
    lane_y,
    picture,
    pixel,
    ready,
    x_at,
)
from tests.browser.helpers.settling import settled

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api").expect


@pytest.fixture
def page(in_jupyterlab):
    return in_jupyterlab.show()


def _notebook(page) -> list[str]:
    """The cells, their kinds and texts, and which of them is active."""
    return page.locator(".jp-Notebook .jp-Cell").evaluate_all(
        """(cells) => cells.map((e) => [
          [...e.classList].filter((name) => /^jp-(Code|Markdown|Raw)Cell$/.test(name)),
          e.classList.contains("jp-mod-active"), e.querySelector(".cm-content")?.textContent,
        ].join())"""
    )


def _scrolled(page) -> float:
    return page.locator(".jp-WindowedPanel-outer").first.evaluate("e => e.scrollTop")


def _await_scroll(page, arrived) -> None:
    """Wait until the notebook has scrolled, which it may do smoothly, to where it should be."""
    for _ in range(600):
        if arrived(_scrolled(page)):
            break
        page.wait_for_timeout(100)
    settled(page)
    assert arrived(_scrolled(page))


def test_keys_of_the_timeline_are_no_commands_of_the_notebook(page):
    page.locator(".ep-timeline").focus()
    before = _notebook(page)
    # In a notebook: add and delete cells, cut, paste, undo, change kinds, run, move, search, save.
    keys = "a b d d x v z m y r 1 o l h k j i i Enter ArrowUp ArrowDown Escape Space Backspace"
    for key in keys.split():
        page.keyboard.press(key)
    settled(page)
    assert _notebook(page) == before
    assert focused(page, "e => e.className").startswith("ep-timeline")
    page.keyboard.press("0")
    page.keyboard.press("w")
    start, end = window(page)
    assert end - start == pytest.approx(100 / 1.35, rel=0.01)


def test_keys_in_a_cell_and_of_the_notebook_leave_the_timeline_alone(page, in_jupyterlab):
    cell = in_jupyterlab.cell(1).locator(".cm-content")
    cell.click()
    page.keyboard.press("Control+a")
    page.keyboard.type("wasd?/f0")
    assert cell.inner_text() == "wasd?/f0"
    assert page.locator("dialog.ep-help").count() == 0
    assert page.locator(".ep-search").is_hidden()
    page.keyboard.press("Escape")  # the notebook's command mode
    page.keyboard.press("ArrowUp")
    page.keyboard.press("w")
    assert near(window(page), WHOLE, 0.001)


def test_the_help_shows_over_the_notebook_and_gives_the_focus_back(page):
    page.locator(".ep-timeline").focus()
    page.keyboard.press("?")
    dialog = page.locator("dialog.ep-help")
    box, wide = dialog.bounding_box(), page.viewport_size
    assert box["x"] > 0
    assert box["x"] + box["width"] < wide["width"]
    # No part of the notebook covers it.
    over = "d => document.elementFromPoint(d.x, d.y).shadowRoot?.elementFromPoint(d.x, d.y).tagName"
    corner = {"x": box["x"] + 3, "y": box["y"] + 3}
    assert page.evaluate(over, corner) == "DIALOG"
    page.keyboard.press("d")
    page.keyboard.press("d")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert focused(page, "e => e.className").startswith("ep-timeline")
    assert near(window(page), WHOLE, 0.001)


def test_a_wheel_scrolls_the_notebook_until_the_timeline_has_the_focus(page, in_jupyterlab):
    in_jupyterlab.run(2, "for i in range(200): print(i)")
    in_jupyterlab.cell(0).locator(".jp-InputPrompt").click()
    page.mouse.move(*at(page, 50, 60))
    before = _scrolled(page)
    # While the page scrolls, the pointer comes to lie on the canvas. Scrolling must continue.
    for _ in range(4):
        page.mouse.wheel(0, 40)
        settled(page)
    _await_scroll(page, lambda now: now == pytest.approx(before + 160, abs=2))
    assert near(window(page), WHOLE, 0.001)
    page.mouse.wheel(0, -160)
    _await_scroll(page, lambda now: now == pytest.approx(before, abs=2))
    page.mouse.click(*at(page, 71, middle(page, "stream 13")))
    before = _scrolled(page)
    page.mouse.wheel(0, -120)
    start, end = window(page)
    assert end - start < 90
    assert _scrolled(page) == before
    # Beside the canvas the wheel scrolls the notebook, with or without the focus.
    in_jupyterlab.cell(1).hover()
    page.mouse.wheel(0, 100)
    _await_scroll(page, lambda now: now > before)
    assert near(window(page), (start, end), 0.001)
    # A cell takes the focus, and with it the wheel.
    in_jupyterlab.cell(1).locator(".cm-content").click()
    page.mouse.move(stage_box(page)["x"] + 300, stage_box(page)["y"] + 60)
    before = _scrolled(page)
    page.mouse.wheel(0, 60)
    _await_scroll(page, lambda now: now > before)
    assert near(window(page), (start, end), 0.001)
    in_jupyterlab.run(2, "None")


@pytest.fixture
def stopped(in_jupyterlab):
    """A function that stops the kernel's process, and returns one that continues it."""
    # A long cell is not enough: some kernels answer a widget on a separate thread.
    pid = int(in_jupyterlab.told("__import__('os').getpid()"))

    def stop():
        os.kill(pid, signal.SIGSTOP)
        return lambda: os.kill(pid, signal.SIGCONT)

    yield stop
    os.kill(pid, signal.SIGCONT)


def test_while_python_is_silent_the_view_works_and_says_so(page, stopped):
    notice, stream = page.locator(".ep-silent"), lane_y(page, "stream 7")
    go_on = stopped()
    before = picture(page)
    # Actions without an answer work at once: events are highlighted, the window moves.
    click(page, 37, stream)
    assert pixel(page, x_at(page, 22), stream + 6) != KERNEL_2
    for _ in range(4):
        page.keyboard.press("w")
    assert window(page)[1] - window(page)[0] < 40
    assert (picture(page) != before).any()
    expect(notice).to_contain_text("Python does not answer", timeout=60_000)
    page.keyboard.press("0")
    assert near(window(page), WHOLE, 0.001)
    assert pixel(page, x_at(page, 42), stream + 6) == KERNEL
    go_on()
    expect(notice).to_have_text("", timeout=60_000)
    expect(page.locator(".ep-chain")).to_contain_text("y = step(x)", timeout=60_000)


def test_a_message_that_is_lost_is_sent_again(page):
    page.evaluate(
        """() => {
          const send = WebSocket.prototype.send;
          window.lost = [];
          WebSocket.prototype.send = function (data) {
            const text = typeof data === "string" ? data : new TextDecoder().decode(data);
            if (window.lost.length || !text.includes('"describe"')) return send.call(this, data);
            window.lost.push(text);
          };
        }"""
    )
    click(page, 37, lane_y(page, "stream 7"))
    fields = page.locator(".ep-group dl > div:has(dt:text-is('correlation id')) dd")
    expect(fields).to_have_text("13", timeout=60_000)
    assert page.evaluate("window.lost.length") == 1
    expect(page.locator(".ep-silent")).to_have_text("")


def test_what_python_exports_there_is_the_same_picture(page, in_jupyterlab, opened):
    in_jupyterlab.run(2, "prof.to_html('exported.html')")
    other = ready(opened(in_jupyterlab.path.with_name("exported.html").as_uri()))
    for one in (page, other):
        assert pixel(one, x_at(one, 22), lane_y(one, "stream 7") + 6) == KERNEL_2
        assert pixel(one, x_at(one, 65), lane_y(one, "stream 7") + 2) == (255, 255, 255)
    click(other, 37, lane_y(other, "stream 7"))
    assert "y = step(x)" in other.locator(".ep-chain").text_content()
    assert canvas(other).evaluate("e => e.clientWidth") != x_at(page, 100)
