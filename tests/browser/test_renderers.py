"""Bars are drawn at their times, to the nanosecond, in the colours of the theme."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, OPS
from epprof_nb.data.table import Table
from epprof_nb.profiles import Profile
from tests.browser.helpers.pixels import (
    COPY,
    KERNEL,
    WHITE,
    canvas,
    lane_y,
    picture,
    pixel,
    pixels,
    pixels_at,
    ready,
    width,
    x_at,
)
from tests.browser.helpers.settling import settled

pytestmark = pytest.mark.browser

MS, S = 1_000_000, 1_000_000_000
FAINTEST = 0.35  # opacity of an event that covers almost nothing of its rectangle


def kernels(start, duration, length: int, kind: str = "kernel") -> Profile:
    """A profile of one cell `length` ns long, with these activities on one stream."""
    start, duration = np.asarray(start, np.int64), np.asarray(duration, np.int64)
    count = len(start)
    ops = Table(
        OPS,
        {
            "op_id": np.array([1]),
            "parent_op_id": np.array([-1]),
            "name": CategoryColumn.of(["In[1]"]),
            "op_type": CategoryColumn.of(["cell"]),
            "category": CategoryColumn.of(["cell"]),
            "thread_id": np.array([77]),
            "start_ns": np.array([0]),
            "end_ns": np.array([length]),
            "duration_ns": np.array([length]),
            "count": np.ones(1, np.int64),
            "status": CategoryColumn.constant("complete", 1),
        },
    )
    activities = Table(
        ACTIVITIES,
        {
            "kind": CategoryColumn.constant(kind, count),
            "name": CategoryColumn.constant("k", count),
            "device_id": np.zeros(count, np.int64),
            "stream_id": np.full(count, 7),
            "start_ns": start,
            "end_ns": start + duration,
            "duration_ns": duration,
            "correlation_id": np.arange(count),
            "op_id": np.ones(count, np.int64),
            "attribution": CategoryColumn.constant("stack", count),
            "thread_id": np.full(count, 77),
        },
    )
    info = {"wall_ns": length, "cell": "In[1]", "devices": [{"device_id": 0, "name": "GPU"}]}
    return Profile({"ops": ops, "activities": activities}, info, {})


def test_nanoseconds_stand_in_place_in_a_profile_of_ten_seconds(shown):
    # Around the middle, where the W key zooms: 3 ns, then 7 ns, in a window of 20.
    middle = 5 * S
    page = shown(kernels([middle - 5, middle + 1], [3, 7], 10 * S))
    page.mouse.move(0, 0)
    page.locator(".ep-timeline").focus()
    for _ in range(90):
        page.keyboard.press("w")
    settled(page)
    y = lane_y(page, "stream 7") + 6
    whole = width(page)

    def at(ns: float) -> tuple[int, int, int]:
        return pixel(page, whole * (ns + 10) / 20, y)

    for edge, inside in ((-5, 0.15), (-2, -0.15), (1, 0.15), (8, -0.15)):
        assert at(edge + inside) == KERNEL
        assert at(edge - inside) == WHITE
    assert at(-9) == at(-0.5) == at(9.5) == WHITE


def test_dense_thin_events_are_as_faint_as_they_cover_little(shown):
    # 2 of every 10 us for the first half, nothing in the second, then one short kernel alone.
    start = [*range(0, 50 * MS, 10_000), 75 * MS]
    page = shown(kernels(start, [2_000] * len(start), 100 * MS))
    y = lane_y(page, "stream 7") + 4
    share = FAINTEST + (1 - FAINTEST) * 0.2
    expected = np.array(WHITE) + share * (np.array(KERNEL) - np.array(WHITE))
    for ms in (5, 20.3, 33.7, 45):
        assert np.abs(np.array(pixel(page, x_at(page, ms), y)) - expected).max() < 26
    assert pixel(page, x_at(page, 57.3), y) == WHITE
    # Alone, even an event much thinner than a pixel is drawn in full.
    near = pixels_at(page, 75, y, (-1, 0, 1, 2))
    assert min(red for red, _, _ in near) < 140
    assert WHITE in near


@pytest.mark.parametrize("ratio", [1, 1.5, 2])
@pytest.mark.parametrize("kind", ["kernel", "memcpy", "memset"])
def test_a_row_of_many_thin_events_looks_like_one_of_few(shown, kind, ratio):
    # Few events are drawn as rectangles, many as the pixels of an image: the left half is the same.
    start = 5 * MS + 2 * MS * np.arange(20) + 7_000 * np.arange(20)
    duration = 10_000 + 4_000 * np.arange(20)
    more = np.arange(55 * MS, 95 * MS, MS // 10)
    few = picture(shown(kernels(start, duration, 100 * MS, kind), ratio=ratio))
    start, duration = np.append(start, more), np.append(duration, np.full(len(more), 30_000))
    page = shown(kernels(start, duration, 100 * MS, kind), ratio=ratio)
    many = picture(page)
    top = round((lane_y(page, "stream 7") - 9) * ratio)
    left, right = np.s_[top:, : many.shape[1] // 2], np.s_[top:, many.shape[1] // 2 :]
    assert np.abs(few[left] - many[left]).max() <= 2
    assert (np.abs(few[left] - WHITE).max(axis=2) > 40).any()
    assert np.abs(few[right] - many[right]).max() > 40


@pytest.mark.parametrize("ratio", [1.5, 1.75])
def test_the_background_reaches_the_lower_edge_of_the_canvas(shown, profile, ratio):
    # The timeline's last row ends within a device pixel, which must not stay black.
    page = shown(profile, ratio=ratio)
    tall, height = canvas(page).evaluate("e => [e.height, e.clientHeight]")
    assert tall > height * ratio
    assert pixel(page, 20 / ratio, (tall - 1) / ratio) == WHITE


def test_copies_are_hatched_and_kinds_differ_in_height(shown, profile):
    page = shown(profile)
    copies = lane_y(page, "stream 13")
    colours = pixels_at(page, 84, copies + 2, range(12))
    assert COPY in colours
    assert any(blue > 90 for _, _, blue in colours)  # the hatching's lines
    stream = lane_y(page, "stream 7")
    column, kernel = (
        pixels(page, [(x_at(page, ms), stream - 8 + dy) for dy in range(2, 18)]) for ms in (47, 43)
    )
    assert kernel.count(KERNEL) > 12
    assert WHITE in column[:6]  # a memset leaves its row's upper part free


@pytest.mark.parametrize("wish", [{"contrast": "more"}, {"forced_colors": "active"}])
def test_high_contrast_has_colours_of_its_own(browser, page_file, wish):
    with browser.new_context(viewport={"width": 1100, "height": 760}, **wish) as context:
        page = context.new_page()
        page.goto(page_file.as_uri())
        ready(page)
        y = lane_y(page, "stream 7") + 6
        assert pixel(page, x_at(page, 43), y) == (0, 69, 124)
        # Asked for while the page is open, it comes at once.
        page.emulate_media(contrast="no-preference", forced_colors="none")
        settled(page)
        assert pixel(page, x_at(page, 43), y) == KERNEL
