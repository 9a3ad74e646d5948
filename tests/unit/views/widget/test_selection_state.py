"""Selections of a live view as DataFrames, and DataFrames as selections."""

from __future__ import annotations

import zlib

import numpy as np
import pandas as pd
import pytest

from epprof_nb.testing import synthetic_profile
from epprof_nb.views.queries.frame_rows import rows_of_frame
from epprof_nb.views.queries.view_selection import Selections
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.widget.selection_state import SelectionState
from epprof_nb.views.wire.page_payload import page_payload
from tests.unit.views.wire.test_wire_format import decode


def same(frame, expected):
    """Same rows, index and values; categories that do not occur may be missing."""
    pd.testing.assert_frame_equal(frame, expected, check_categorical=False)


@pytest.fixture
def selections():
    return Selections(ViewModel(synthetic_profile(activities=600)))


def test_nothing_chosen_is_everything(selections):
    assert SelectionState(selections).to_frame().equals(selections.view_model.profile.activities)


def test_an_op_chosen_is_what_it_and_the_ops_below_launched(selections):
    state = SelectionState(selections)
    ops, activities = selections.view_model.profile.ops, selections.view_model.profile.activities
    row = int(np.flatnonzero(ops["name"] == "forward")[0])
    state.on_frontend_selection(
        {"selection": {"what": "event", "prefix": "op", "row": row}, "time_range": None}
    )
    below = {ops.index[row]}
    for op_id, parent in ops["parent_op_id"].items():
        if parent in below:
            below.add(op_id)
    expected = activities[activities["op_id"].isin(below)]
    assert len(expected) > 3
    same(state.to_frame(), expected)


def test_a_span_chooses_the_activities_with_a_part_in_it_as_whole_rows(selections):
    state = SelectionState(selections)
    activities = selections.view_model.profile.activities
    low, high = (int(activities["start_ns"].quantile(q)) for q in (0.3, 0.6))
    state.on_frontend_selection({"selection": None, "time_range": [low, high]})
    inside = (activities["end_ns"] > low) & (activities["start_ns"] < high)
    assert state.time_range == (low, high)
    same(state.to_frame(), activities[inside])
    kernels = {"what": "where", "prefix": "act", "equals": {"kind": "kernel"}}
    state.on_frontend_selection({"selection": kernels, "time_range": [low, high]})
    same(state.to_frame(), activities[inside & (activities["kind"] == "kernel")])


def test_rows_given_are_chosen_until_something_else_is(selections):
    state = SelectionState(selections)
    activities = selections.view_model.profile.activities
    copies = activities[activities["kind"] == "memcpy"]
    wanted = state.select_rows(copies[::-1])
    same(state.to_frame(), copies)
    response = selections.of(wanted).seek(number=1)
    assert (response["count"], response["event"]["row"]) == (len(copies), copies.index[1])
    assert response["start"] == copies["start_ns"].min()
    # Rows passed later are distinct from earlier ones.
    assert state.select_rows(activities.head(2)) != wanted
    assert len(state.to_frame()) == 2
    assert state.select_rows(None) is None
    assert len(state.to_frame()) == len(activities)


def test_chosen_rows_can_be_given_back(selections):
    state = SelectionState(selections)
    kernels = {"what": "where", "prefix": "act", "equals": {"name": "memcpy HtoD"}}
    state.on_frontend_selection({"selection": kernels, "time_range": None})
    found = state.to_frame()
    assert rows_of_frame(selections.view_model.profile, found)[1].tolist() == found.index.tolist()


def test_steps_go_round(selections):
    wanted = {"what": "where", "prefix": "act", "equals": {"kind": "memset"}}
    seek = selections.of(wanted).seek
    count = seek()["count"]
    assert seek(number=count)["number"] == 0
    assert seek(number=-1)["number"] == count - 1
    last = seek(number=-1)["event"]["start"]
    assert seek(at_ns=last)["number"] == count - 1
    assert seek(at_ns=last + 1)["number"] == 0


def test_a_payload_keeps_the_rows_that_are_selected():
    profile = synthetic_profile(activities=120_000)
    frame = profile.activities
    shortest = frame[frame["kind"] == "kernel"].nsmallest(40, "duration_ns")
    view_model = ViewModel(profile)
    selections = Selections(view_model)
    selections.set_rows(dict([rows_of_frame(profile, shortest)]))
    header, columns = decode(zlib.decompress(page_payload(view_model, selections.initial)))
    assert (header["given"]["count"], header["given"]["sent"]) == (40, 40)
    pinned = columns["act.pinned"] == 1
    assert sorted(columns["act.start"][pinned]) == sorted(shortest["start_ns"])
    assert sorted(columns["act.dur"][pinned]) == sorted(shortest["duration_ns"])
    assert columns["act.highlighted"][pinned].all()


def test_a_view_refuses_foreign_rows_at_once():
    profile = synthetic_profile(activities=50)
    other = synthetic_profile(activities=50, seed=3).activities
    with pytest.raises(ValueError, match=r"prof\.activities"):
        profile.timeline(select=other)
