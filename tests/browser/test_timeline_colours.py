"""Colours of the timeline by kind, kernel name or op, its legend, and the texts around it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from epprof_nb.util import palette
from epprof_nb.views.timeline.op_colours import operator_hues
from tests.browser.helpers.pixels import KERNEL, KERNEL_2, lane_y, pixel, ready, x_at
from tests.browser.helpers.settling import settled
from tests.helpers.tiny import op, profile

pytestmark = pytest.mark.browser

FIRST_HUE, SECOND_HUE = (0, 114, 178), (213, 94, 0)
GEMM_MS, OTHER_KERNEL_MS, SET_MS = 37, 24, 47


def colours(page):
    y = lane_y(page, "stream 7") + 6
    return [pixel(page, x_at(page, ms), y) for ms in (GEMM_MS, OTHER_KERNEL_MS, SET_MS)]


def choose(page, by):
    page.locator(".ep-legend select").select_option(by)
    settled(page)


def legend(page):
    return page.locator(".ep-key").all_inner_texts()


def test_the_legend_lists_the_kinds_of_the_profile(page):
    assert legend(page) == ["kernel", "memcpy", "memset", "synchronization"]
    assert colours(page)[:2] == [KERNEL, KERNEL_2]


def test_by_kernel_name_every_name_has_a_hue(page):
    choose(page, "name")
    gemm, other, memset = colours(page)
    assert (gemm, other) == (FIRST_HUE, SECOND_HUE)
    assert memset not in (gemm, other)
    assert legend(page)[0] == "gemm [f32]"
    assert "other" not in legend(page)


def test_by_op_kernels_of_an_op_share_its_hue(page):
    choose(page, "op")
    gemm, other, memset = colours(page)
    assert gemm == other == FIRST_HUE
    assert memset != gemm
    # The range that launched them is a paler tone of the same hue.
    red, green, blue = pixel(page, x_at(page, 30), lane_y(page, "main thread") + 2 * 17)
    assert red < green < blue
    choose(page, "kind")
    assert colours(page)[:2] == [KERNEL, KERNEL_2]


def test_the_choice_is_kept(opened, page_file):
    page = ready(opened(page_file.as_uri()))
    choose(page, "op")
    page.reload()
    ready(page)
    assert page.locator(".ep-legend select").input_value() == "op"
    assert colours(page)[:2] == [FIRST_HUE, FIRST_HUE]


def test_the_search_has_a_button(page):
    page.click(".ep-search-open")
    expect(page.locator(".ep-search input")).to_be_focused()
    expect(page.locator(".ep-search-open")).to_be_hidden()
    page.keyboard.type("gemm")
    expect(page.locator(".ep-search-status")).to_have_text("1 found")
    page.keyboard.press("Escape")
    expect(page.locator(".ep-search-open")).to_be_visible()


def test_the_page_says_where_it_was_made_and_how_to_zoom(page):
    assert "GPU" in page.locator(".ep-made-on").inner_text()
    assert "Scroll to zoom." in page.locator(".ep-panel").inner_text()


def test_a_page_of_its_own_breaks_the_whole_profile_down(page):
    panel = page.locator(".ep-range")
    expect(panel.locator("strong")).to_have_text("Whole profile")
    expect(panel.locator("table >> nth=1")).to_contain_text("gemm")


def test_nodes_have_the_hue_of_their_operator_if_there_is_no_device_work(shown):
    def node(op_id, op_type, start, end):
        return op(op_id, op_type.lower(), start * 10**6, end * 10**6, 1, category="node",
                  op_type=op_type, session=1, node_index=op_id)  # fmt: skip

    run = op(1, "model_run", 0, 100 * 10**6, category="session", op_type="run", session=1)
    info = {"wall_ns": 100 * 10**6, "onnxruntime_sessions": {"1": "m"}}
    page = shown(profile([run, node(2, "Conv", 0, 60), node(3, "Relu", 60, 100)], info=info))
    assert legend(page) == ["Conv", "Relu"]
    expect(page.locator(".ep-legend select")).to_be_hidden()  # there is no other choice
    y = lane_y(page, "thread") + 17
    conv, relu = (pixel(page, x_at(page, ms), y) for ms in (50, 90))
    for name, colour in (("Conv", conv), ("Relu", relu)):
        tint = palette.NODES[operator_hues([name])[0]]
        assert colour == tuple(bytes.fromhex(tint[1:]))


def test_names_with_the_same_preferred_hue_have_different_keys_in_the_legend(shown):
    names = ("forward", "backward")
    assert len({operator_hues([name])[0] for name in names}) == 1
    rows = [
        op(i, name, i * 10**6, (i + 1) * 10**6, op_type="operator", category="operator")
        for i, name in enumerate(names, 1)
    ]
    page = shown(profile(rows, info={"wall_ns": 3 * 10**6}))
    assert legend(page) == ["forward", "backward"]
    swatches = page.locator(".ep-legend .ep-swatch")
    colours = swatches.evaluate_all("all => all.map(e => getComputedStyle(e).backgroundColor)")
    assert len(set(colours)) == 2
