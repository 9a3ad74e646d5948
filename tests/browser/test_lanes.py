"""The lanes and their labels: folded, pinned, counted, made wider."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import OPS
from epprof_nb.data.table import Table
from epprof_nb.profiles import Profile
from epprof_nb.views.view import write_html
from tests.browser.helpers.moving import (
    WHOLE,
    at,
    drag,
    focused,
    labels,
    middle,
    near,
    stage_box,
    window,
)
from tests.browser.helpers.settling import settled

pytestmark = pytest.mark.browser


def test_lanes_fold_and_unfold_by_pointer_and_all_by_key(page):
    assert {"queued", "copies", "API calls"} <= set(labels(page))
    page.click(".ep-label-busy .ep-fold")
    assert not {"queued", "copies"} & set(labels(page))
    assert page.get_attribute(".ep-label-busy .ep-fold", "aria-expanded") == "false"
    page.click(".ep-label-ops .ep-fold")
    assert "API calls" not in labels(page)
    height = page.locator(".ep-stage").bounding_box()["height"]
    page.locator(".ep-timeline").focus()
    page.keyboard.press("c")
    assert "API calls" in labels(page)
    assert page.get_attribute(".ep-label-api .ep-fold", "aria-expanded") == "true"
    assert page.locator(".ep-stage").bounding_box()["height"] > height
    page.click(".ep-fold-all")
    assert labels(page) == ["GPU busy", "main thread", "stream 7", "stream 13"]
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
    assert "main thread" not in labels(page, ".ep-clip .ep-label")
    scroller = page.locator(".ep-scroller")
    assert scroller.evaluate("e => e.scrollHeight > e.clientHeight")
    top = labels(page, ".ep-clip .ep-label")[0]
    scroller.evaluate("e => e.scrollBy(0, 300)")
    settled(page)
    assert pinned.bounding_box() == before
    assert labels(page, ".ep-clip .ep-label")[0] != top
    # P with the pointer on the lane moves it back.
    box = page.locator(".ep-stage canvas").bounding_box()
    page.mouse.move(box["x"] + 300, before["y"] + 6)
    page.locator(".ep-timeline").focus()
    page.keyboard.press("p")
    settled(page)
    assert pinned.count() == 0


def test_many_threads_leave_the_streams_in_view_and_rows_below_are_counted(opened, tmp_path):
    from epprof_nb.testing import synthetic_profile

    path = tmp_path / "threads.html"
    write_html(synthetic_profile(activities=2000, threads=11), path)
    page = opened(path.as_uri(), height=620)
    page.wait_for_selector(".ep-timeline[data-start]")
    assert {"8 more threads", "stream 7"} <= set(labels(page))
    page.click(".ep-label-threads .ep-fold")
    settled(page)
    assert "thread 41204" in labels(page)
    assert "stream 7" not in labels(page)
    more = page.locator(".ep-more")
    before = int(more.inner_text().removesuffix(" more rows \N{DOWNWARDS ARROW}"))
    page.locator(".ep-scroller").evaluate("e => e.scrollBy(0, 30)")
    settled(page)
    after = int(more.inner_text().removesuffix(" more rows \N{DOWNWARDS ARROW}"))
    assert 0 < after < before
    page.locator(".ep-scroller").evaluate("e => e.scrollBy(0, 5000)")
    settled(page)
    assert more.inner_text() == ""
    assert "stream 7" in labels(page)


def test_labels_are_reached_folded_and_pinned_by_keys_alone(page):
    page.locator(".ep-label-busy .ep-fold").focus()
    page.keyboard.press("Enter")
    assert page.get_attribute(".ep-label-busy .ep-fold", "aria-expanded") == "false"
    page.keyboard.press("ArrowDown")
    assert focused(page, "e => e.textContent") == "main thread"
    page.keyboard.press("p")
    settled(page)
    pinned = page.locator('.ep-label:has(.ep-pin[aria-pressed="true"])')
    assert pinned.all_text_contents() == ["main thread"]
    # One stop for Tab, whatever the number of lanes.
    assert page.locator('.ep-label .ep-fold[tabindex="0"]').count() == 1


def test_the_label_column_is_resized_by_pointer_and_keys(page):
    grip = page.locator(".ep-grip")
    width = stage_box(page)["width"]
    box = grip.bounding_box()
    drag(page, (box["x"] + 3, box["y"] + 100), (box["x"] + 83, box["y"] + 100))
    assert abs(stage_box(page)["width"] - (width - 80)) < 2
    grip.focus()
    page.keyboard.press("ArrowLeft")
    assert abs(stage_box(page)["width"] - (width - 64)) < 2
    strip = page.locator(".ep-minimap").bounding_box()
    assert abs(strip["x"] - stage_box(page)["x"]) < 1
    assert near(window(page), WHOLE, 0.001)


def test_counters_tell_their_values(page):
    tip = page.locator(".ep-tip")
    page.mouse.move(*at(page, 17, middle(page, "queued")))
    assert "2 queued launches" in tip.text_content()
    page.mouse.move(*at(page, 70, middle(page, "queued")))
    assert "0 queued" in tip.text_content()
    page.mouse.move(*at(page, 7, middle(page, "copies")))
    # 4 MB in 5 ms; of them 2/5 by then.
    assert "800 MB/s" in tip.text_content()
    assert "so far" in tip.text_content()
    page.mouse.move(*at(page, 35, middle(page, "GPU busy")))
    assert "busy 100 %" in tip.text_content()
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
    assert [name for name in labels(page) if name.startswith(("GPU", "stream"))] == [
        "GPU 0", "stream 7", "GPU 1", "stream 13"
    ]  # fmt: skip
    page.click(".ep-label-device .ep-fold >> nth=0")
    assert "stream 7" not in labels(page)
    assert "stream 13" in labels(page)


def test_long_names_of_threads_stay_distinguishable(shown):
    threads = {11: "main", 12: "ThreadPoolExecutor-0_0", 13: "ThreadPoolExecutor-0_1"}
    ids = np.array(list(threads))
    ones = np.ones(len(ids), np.int64)
    ops = Table(
        OPS,
        {
            "op_id": ids,
            "parent_op_id": -ones,
            "name": CategoryColumn.constant("work", len(ids)),
            "thread_id": ids,
            "start_ns": ids,
            "end_ns": ids + 1000,
            "duration_ns": 1000 * ones,
            "count": ones,
            "status": CategoryColumn.constant("complete", len(ids)),
        },
    )
    named = [{"thread_id": number, "name": name} for number, name in threads.items()]
    page = shown(Profile({"ops": ops}, {"wall_ns": 1100, "threads": named}))
    assert labels(page) == ["main thread", *list(threads.values())[1:]]
    whole, cut, last = (
        page.locator(".ep-label", has_text="0_1")
        .locator(".ep-name")
        .evaluate(
            """name => {
          const head = name.firstElementChild;
          const end = document.createRange();
          end.selectNode(head.nextSibling);
          const [room, last] = [name, end].map(e => e.getBoundingClientRect().right);
          return [end.toString(), head.scrollWidth > head.clientWidth, last <= room + 1];
        }"""
        )
    )
    assert (whole, cut, last) == ("utor-0_1", True, True)
