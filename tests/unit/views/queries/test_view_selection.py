"""Selections, and the relations of an event."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.views.queries.related import MAX_FLOWS, related
from epprof_nb.views.queries.selected_events import select_events
from epprof_nb.views.view_model import ViewModel
from tests.helpers.tiny import activity, call, kernel, line, op, profile


@pytest.fixture(scope="module")
def view_model():
    """A cell's line with two ranges under it, each with a launch; a copy of no op."""
    ops = [
        line(1, 3, 0, 1_000),
        op(2, "first", 10, 200, 1),
        op(3, "second", 300, 600, 1),
        op(4, "other", 2_000, 3_000),
    ]
    calls = [
        call(20, 30, correlation_id=7, op_id=2),
        call(310, 320, correlation_id=8, op_id=3),
    ]
    activities = [
        kernel(100, 150, 2, correlation_id=7, name="gemm"),
        kernel(400, 500, 3, correlation_id=8, name="gemm"),
        activity("memcpy", 700, 800, name="HtoD", stream_id=13),
    ]
    return ViewModel(profile(ops, activities, calls, sources={"In[1]": "a\nb\n  c = step(x)"}))


def highlighted(selected):
    return {prefix: np.flatnonzero(mask).tolist() for prefix, mask in selected.highlighted.items()}


def test_an_op_lights_what_ran_under_it(view_model):
    found = select_events(view_model, {"what": "event", "prefix": "op", "row": 0})
    assert highlighted(found) == {"op": [0, 1, 2], "api": [0, 1], "act": [0, 1]}
    assert found.extent == (0, 1_000)


def test_a_kernel_lights_its_launch_and_the_ops_above(view_model):
    found = select_events(view_model, {"what": "event", "prefix": "act", "row": 1})
    assert highlighted(found) == {"op": [0, 2], "api": [1], "act": [1]}


def test_an_api_call_lights_what_it_launched(view_model):
    found = select_events(view_model, {"what": "event", "prefix": "api", "row": 0})
    assert highlighted(found) == {"op": [0, 1], "api": [0], "act": [0]}


def test_columns_select_rows(view_model):
    gemm = select_events(view_model, {"what": "where", "prefix": "act", "equals": {"name": "gemm"}})
    assert highlighted(gemm) == {"op": [0, 1, 2], "api": [], "act": [0, 1]}
    assert gemm.extent == (100, 500)
    by_line = {"what": "where", "prefix": "op", "equals": {"cell": "In[1]", "line": 3}}
    assert highlighted(select_events(view_model, by_line)) == {
        "op": [0, 1, 2],
        "api": [0, 1],
        "act": [0, 1],
    }
    stray = select_events(view_model, {"what": "where", "prefix": "act", "equals": {"op_id": None}})
    assert highlighted(stray) == {"op": [], "api": [], "act": [2]}
    none = select_events(
        view_model, {"what": "where", "prefix": "act", "equals": {"name": "absent"}}
    )
    assert (none.rows["act"].tolist(), none.extent) == ([], None)


def test_a_search_lights_its_matches(view_model):
    found = select_events(view_model, {"what": "search", "pattern": "first|htod"})
    assert {prefix: rows.tolist() for prefix, rows in found.rows.items()} == {
        "op": [1], "api": [], "act": [2],
    }  # fmt: skip


@pytest.mark.parametrize(
    "wanted",
    [
        {"what": "event", "prefix": "op", "row": 4},
        {"what": "event", "prefix": "op", "row": -1},
        {"what": "event", "prefix": "graphs", "row": 0},
        {"what": "where", "prefix": "act", "equals": {"__class__": "x"}},
        {"what": "everything"},
        {},
    ],
)
def test_what_the_profile_has_not_is_refused(view_model, wanted):
    with pytest.raises(ValueError, match="no "):
        select_events(view_model, wanted)


def test_a_kernel_leads_to_its_launch_ops_and_line(view_model):
    told = related(view_model, "act", 1)
    assert [op["name"] for op in told["chain"]] == ["line 3", "second"]
    assert told["line"] == {"cell": "In[1]", "line": 3, "text": "c = step(x)"}
    assert told["call"]["start"] == 310
    assert told["delay"] == 400 - 310
    assert [(a["row"], b["row"]) for a, b in told["flows"]] == [(1, 1)]
    assert told["before"]["row"] == 0
    assert told["after"] is None
    same = told["same"]
    assert (same["number"], same["count"], same["before"]["row"]) == (2, 2, 0)


def test_an_op_leads_to_what_it_launched_longest_first(view_model):
    told = related(view_model, "op", 0)
    assert [b["start"] for _, b in told["flows"]] == [400, 100]
    assert [a["prefix"] for a, _ in told["flows"]] == ["api", "api"]
    assert told["launched"] == 2
    assert (told["call"], told["delay"]) == (None, None)


def test_work_that_seems_to_precede_its_call_has_no_delay_and_waits_are_not_launched():
    work = [kernel(5, 20, 1, correlation_id=1), activity("synchronization", 30, 40, 1)]
    model = ViewModel(profile([op(1, "f", 0, 90)], work, [call(10, 12, correlation_id=1)]))
    assert related(model, "act", 0)["delay"] == 0
    assert related(model, "op", 0)["launched"] == 1


def test_a_copy_of_no_op_leads_nowhere(view_model):
    told = related(view_model, "act", 2)
    assert (told["chain"], told["line"], told["call"]) == ([], None, None)
    assert told["flows"] == []


def test_neighbours_are_those_of_the_same_row(view_model):
    told = related(view_model, "op", 1)
    assert told["before"] is None
    assert told["after"]["name"] == "second"


@pytest.fixture(scope="module")
def launching():
    """An op that launched 1,000 kernels, 100 ns apart; the 778th is the longest."""
    rows = [kernel(i * 100, i * 100 + 10 + 5 * (i == 777), 1) for i in range(1000)]
    return ViewModel(profile([op(1, "all", 0, 120_000)], rows))


def test_of_many_launches_lines_lead_to_some_all_along(launching):
    told = related(launching, "op", 0)
    assert told["launched"] == 1000
    assert {a["prefix"] for a, _ in told["flows"]} == {"op"}
    starts = [b["start"] for _, b in told["flows"]]
    assert starts[0] == 77_700
    assert len(set(starts)) == MAX_FLOWS
    gaps = np.diff(sorted(starts))
    assert (min(starts), max(starts)) == (0, 99_900)
    assert gaps.max() <= 600


def test_lines_near_the_window_come_first(launching):
    near = related(launching, "op", 0, (20_000, 25_000))["flows"]
    starts = {b["start"] for _, b in near}
    assert starts >= set(range(20_000, 25_001, 100))
    assert len(starts) == MAX_FLOWS
    # In a window with more of them than lines, all lines are there.
    wide = [b["start"] for _, b in related(launching, "op", 0, (10_000, 60_000))["flows"]]
    assert [start for start in wide if not 10_000 <= start <= 60_000] == [77_700]


def test_an_event_that_is_not_there_is_refused(view_model):
    with pytest.raises(ValueError, match="no row"):
        related(view_model, "act", 3)
