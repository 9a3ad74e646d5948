"""The lane of memory: its numbers and those of the holders are those of `prof.memory_at`."""

from __future__ import annotations

import re

import numpy as np
import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.memory.memory_peak import InUse
from epprof_nb.data.schema import MEMORY_BLOCKS
from epprof_nb.util.format import size
from epprof_nb.views.view_model import ViewModel
from tests.browser.helpers.known import known_profile
from tests.browser.helpers.moving import at, labels, middle
from tests.browser.helpers.pixels import click, lane_y, picture, x_at
from tests.browser.helpers.settling import settled
from tests.helpers.live_host import LiveHost
from tests.helpers.memory_blocks import MB, block
from tests.helpers.tiny import table

pytestmark = pytest.mark.browser

MS = 1_000_000
HOSTILE = "<img src=x onerror=\"document.title='hacked'\">"


def with_memory(blocks):
    profile = known_profile()
    profile.tables["memory_blocks"] = table(MEMORY_BLOCKS, blocks)
    return profile


@pytest.fixture(scope="module")
def few():
    """Parameters of all the time, 50 MB from 20 to 70 ms, 30 MB of the driver from 40 ms on."""
    return with_memory(
        [
            block(100 * MB + 3, None, None, category="parameter"),
            block(50 * MB + 1, 20 * MS, 70 * MS, 3),
            block(7, 30 * MS, 35 * MS, 4),
            block(30 * MB, 40 * MS, None, 5, pool=HOSTILE),
        ]
    )


@pytest.fixture(scope="module")
def many():
    """40,000 blocks that live for up to 2 ms each: more changes than a notebook stores."""
    rng = np.random.default_rng(3)
    begin = np.sort(rng.integers(0, 95 * MS, 40_000))
    end = begin + rng.integers(1, 2 * MS, 40_000)
    return with_memory(
        [
            block(int(nbytes), int(first), int(last), int(op), pool=f"pool {op}")
            for nbytes, first, last, op in zip(
                rng.integers(1, MB, 40_000), begin, end, rng.integers(1, 6, 40_000), strict=True
            )
        ]
    )


def shown_holders(page):
    """Exact bytes by row of the table, all rows."""
    more = page.locator(".ep-holders .ep-link", has_text="show all")
    if more.count():
        more.last.click()
    titles = page.locator(".ep-holders tbody td:nth-child(8)").evaluate_all(
        "cells => cells.map(cell => cell.title)"
    )
    return [int(re.sub(r"\D", "", title)) for title in titles]


def shown_at(page):
    """Time that the panel tells, in ns."""
    text = page.locator(".ep-holders .ep-range-head .ep-faint").text_content()
    return round(float(re.search(r"[\d.]+", text)[0]) * MS)


@pytest.mark.parametrize("ms", [10, 32, 50, 90])
def test_a_click_shows_the_holders_then(shown, few, ms):
    page = shown(few)
    click(page, ms, lane_y(page, "memory"))
    page.wait_for_selector(".ep-holders table")
    assert abs(shown_at(page) - ms * MS) < MS
    expected = few.memory_at(shown_at(page))
    assert shown_holders(page) == expected["bytes"].tolist()
    assert (
        page.locator(".ep-holders strong").text_content() == f"{size(expected.bytes.sum())} in use"
    )
    assert page.title() != "hacked"


def test_the_peak_is_marked(shown, few):
    page = shown(few)
    y, x = lane_y(page, "memory") - 5, x_at(page, 40)  # above the areas, which end lower
    row = picture(page)[round(y)]
    is_drawn = (row != row[round(x) - 30]).any(axis=1)
    assert is_drawn[round(x) - 1 : round(x) + 2].any()
    assert not is_drawn[round(x) - 30 : round(x) - 1].any()


def test_the_tooltip_has_the_parts(shown, few):
    page = shown(few)
    page.mouse.move(*at(page, 50, middle(page, "memory")))
    told = page.locator(".ep-tip").text_content()
    assert told.startswith(f"{size(180 * MB + 4)} in use")
    assert f"parameter{size(100 * MB + 3)}" in told.replace(" ", "").replace(
        size(100 * MB + 3).replace(" ", ""), size(100 * MB + 3)
    )
    page.mouse.move(*at(page, 50, middle(page, "pools")))
    assert HOSTILE in page.locator(".ep-tip").text_content()


def test_a_key_shows_the_peak_and_escape_closes_it(shown, few):
    page = shown(few)
    page.locator(".ep-timeline").focus()
    page.keyboard.press("b")
    page.wait_for_selector(".ep-holders table")
    assert shown_holders(page) == few.memory_at()["bytes"].tolist()
    assert "the peak" in page.locator(".ep-holders").text_content()
    page.keyboard.press("Escape")
    assert page.locator(".ep-holders").is_hidden()


def test_a_box_of_the_flame_graph_zooms(shown, few):
    page = shown(few)
    page.locator(".ep-timeline").focus()
    page.keyboard.press("b")
    page.locator(".ep-flame button", has_text="parameter").click()
    assert page.locator(".ep-box").count() == 1
    page.locator(".ep-flame .ep-link").click()
    assert page.locator(".ep-box").count() > 3


def test_many_changes_keep_the_peak_and_exact_numbers(shown, many):
    page = shown(many)
    page.locator(".ep-timeline").focus()
    page.keyboard.press("b")
    page.wait_for_selector(".ep-holders table")
    assert shown_holders(page) == many.memory_at()["bytes"].tolist()
    peak = ProfileIndex(many).cached(InUse).peak_ns
    assert abs(shown_at(page) - peak) <= 500  # microseconds in the text
    click(page, 40, lane_y(page, "memory"))
    settled(page)
    api = pytest.importorskip("playwright.sync_api")
    api.expect(page.locator(".ep-holders .ep-range-head .ep-faint")).not_to_contain_text("peak")
    times = ProfileIndex(many).cached(InUse).time
    # The text has microseconds: what held at their begin, and all changes within.
    around = [shown_at(page) - 500, *times[abs(times - shown_at(page)) <= 500]]
    found = sorted(shown_holders(page), reverse=True)
    assert found in [many.memory_at(int(time))["bytes"].tolist() for time in around]


def test_a_live_view_asks_python(opened, many):
    host = LiveHost(opened("about:blank"), ViewModel(many))
    host.show()
    page = host.page
    page.locator(".ep-timeline canvas").last.wait_for()
    settled(page)
    page.locator(".ep-timeline").focus()
    for _ in range(12):
        page.keyboard.press("w")
    settled(page)
    box = page.locator(".ep-timeline canvas").last.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + lane_y(page, "memory"))
    page.locator(".ep-holders table").wait_for()
    (asked,) = [message for message in host.asked if message["type"] == "memory_at"]
    expected = many.memory_at(asked["at"])
    assert sorted(shown_holders(page)) == sorted(expected["bytes"])
    assert abs(shown_at(page) - asked["at"]) <= 500


def test_profiles_without_memory_have_no_lane(shown):
    page = shown(known_profile())
    assert "memory" not in labels(page)
