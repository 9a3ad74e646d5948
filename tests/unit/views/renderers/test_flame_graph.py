"""Flame graph of the difference by stack: its payload, its picture, and where it is shown."""

from __future__ import annotations

import base64
import json
import re
import zlib

import numpy as np
import pytest

import epprof_nb
from epprof_nb.analysis.compare.compare_sides import Total
from epprof_nb.testing import synthetic_profile
from epprof_nb.util import palette
from epprof_nb.views.queries.stack_changes import stack_changes
from epprof_nb.views.renderers.flame_graph import change_colour, shown_change
from tests.helpers.changed_stacks import recording
from tests.helpers.tiny import activity, kernel, line, profile
from tests.helpers.walked_stacks import stack_rows, with_stacks


@pytest.fixture(scope="module")
def comparison():
    return epprof_nb.compare(recording(), recording(changed=True))


@pytest.mark.parametrize("max_nodes", [1, 4, 100])
def test_nodes_that_are_left_out_are_summed_below_their_parent(comparison, max_nodes):
    tree = stack_changes(comparison._by_stack(library=False), max_nodes=max_nodes)
    assert sum(count == 0 for count in tree["others"]) == min(max_nodes, len(comparison.by_stack()))
    for name in ("device_ns", "old_device_ns", "launches", "old_launches"):
        below = np.zeros(len(tree["parent"]))
        for node, parent in enumerate(tree["parent"]):
            if parent >= 0:
                below[parent] += tree[name][node]
        has_children = np.isin(np.arange(len(below)), tree["parent"])
        assert np.abs(below - tree[name])[has_children].max(initial=0) <= 8
    json.dumps(tree)


def test_a_line_that_was_removed_has_its_old_text(comparison):
    tree = stack_changes(comparison._by_stack(library=False))
    texts = {tree["names"][code] for code in tree["text"] if code >= 0}
    assert {"log_metrics(y)", "return gelu(self.up(x), exact)"} <= texts


def test_notebooks_and_pages_show_it_and_reports_have_a_picture(comparison, tmp_path):
    html = comparison._repr_mimebundle_()["text/html"]
    assert html.count("<iframe") == 2
    assert html.count("data:image/png;base64,") == 2
    comparison.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count('id="epprof-payload"') == 1
    assert "+60 %" in page  # in the picture that a page without scripts shows
    assert "<iframe" not in page
    assert len(page) < 100_000


def upload_once(changed=False):
    """A step that uploads, multiplies and then waits; changed, it neither uploads nor waits."""
    rows, (upload, product) = stack_rows("a.py:f:1", "a.py:f:2")
    work = [kernel(10, 100, 1, stack_id=product, name="product", correlation_id=2)]
    if not changed:
        copied = {"stack_id": upload, "name": "memcpy HtoD", "correlation_id": 1}
        work.insert(0, activity("memcpy", 0, 10, 1, **copied))
    wall = 150 if changed else 400
    return with_stacks(profile([line(1, 1, 0, wall)], work, info={"wall_ns": wall}), rows)


def test_it_says_what_it_measures_and_which_part_of_the_change_it_does_not_show(tmp_path):
    comparison = epprof_nb.compare(upload_once(), upload_once(changed=True))
    text = (
        "Device time \u221210 %; wall time \u221262 %, most of it idle time of the device (300 ns "
        "before, 60 ns after), not shown."
    ).replace("\u2212", "-")
    assert comparison._flame_graph.change == text
    comparison.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert text in page
    assert "1 removed stack not shown (10 ns before)." in page


@pytest.mark.parametrize("library", [False, True])
def test_stacks_that_the_new_side_lacks_are_counted_once(library):
    comparison = epprof_nb.compare(upload_once(), upload_once(changed=True))
    tree = stack_changes(comparison._by_stack(library=library), max_nodes=1)
    assert (tree["removed"], tree["removed_ns"]) == (1, 10)


def test_without_idle_times_it_says_that_they_are_not_shown():
    tree = {"old_device_ns": [100], "device_ns": [110]}
    text = shown_change(tree, Total(1000, 1500), None, None)
    assert text == "Device time +10 %; wall time +50 %, of which idle time is not shown."


def test_recordings_without_stacks_have_none():
    prof = synthetic_profile(activities=100)
    html = epprof_nb.compare(prof, prof)._repr_mimebundle_()["text/html"]
    assert "Flame graph" not in html


def test_names_are_text_wherever_they_are_shown(tmp_path):
    name = "</script><img src=x onerror=alert(1)>\x1b\u202e"

    def side(took):
        rows, (stack,) = stack_rows("a.py:f:1")
        rows[0]["function"] = rows[0]["file"] = name
        work = [kernel(10, 10 + took, 1, stack_id=stack, name=name, correlation_id=1)]
        return with_stacks(profile([line(1, 1, 0, 400)], work), rows)

    comparison = epprof_nb.compare(side(10), side(20))
    comparison.to_html(tmp_path / "page.html")
    for html in (comparison._repr_mimebundle_()["text/html"], (tmp_path / "page.html").read_text()):
        assert "<img src=x" not in html
    page = (tmp_path / "page.html").read_text()
    packed = re.search(r'id="epprof-payload"[^>]*>([^<]+)<', page)[1]
    payload = zlib.decompress(base64.b64decode(packed)).decode()
    assert r"alert(1)>\\x1b\\u202e" in payload
    assert not re.search(r"(?<!\\)\\u(001b|202e)", payload)


def test_the_colours_of_changes_are_those_of_the_viewer():
    colours = [change_colour(100, after) for after in (0, 60, 90, 100, 110, 130, 160)]
    assert colours[0] == palette.KERNEL
    assert colours[3] == palette.OPS[0]
    assert colours[6] == change_colour(0, 5) == "#d55e00"
    assert len(set(colours)) == 7
    assert all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in colours)
    assert change_colour(0, 0) == palette.OPS[0]
