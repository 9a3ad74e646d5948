"""What is chosen in a view as a DataFrame, and a DataFrame's rows in a view."""

from __future__ import annotations

import zlib

import numpy as np
import pandas as pd
import pytest
from test_views_encode import decode

from epprof_nb.testing import synthetic_profile
from epprof_nb.views.queries.frame_rows import rows_of_frame
from epprof_nb.views.view_model import ViewModel
from epprof_nb.views.widget.selection_state import Choice
from epprof_nb.views.wire.payload import pack


def same(frame, expected):
    """Same rows, index and values; categories that do not occur may be missing."""
    pd.testing.assert_frame_equal(frame, expected, check_categorical=False)


@pytest.fixture
def prepared():
    return ViewModel(synthetic_profile(activities=600))


def test_nothing_chosen_is_everything(prepared):
    assert Choice(prepared).frame().equals(prepared.profile.activities)


def test_an_op_chosen_is_what_it_and_the_ops_below_launched(prepared):
    choice = Choice(prepared)
    ops, activities = prepared.profile.ops, prepared.profile.activities
    row = int(np.flatnonzero(ops["name"] == "forward")[0])
    choice.told({"selection": {"what": "event", "prefix": "op", "row": row}, "span": None})
    below = {ops.index[row]}
    for op_id, parent in ops["parent_op_id"].items():
        if parent in below:
            below.add(op_id)
    expected = activities[activities["op_id"].isin(below)]
    assert len(expected) > 3
    same(choice.frame(), expected)


def test_a_span_chooses_the_activities_with_a_part_in_it_as_whole_rows(prepared):
    choice = Choice(prepared)
    activities = prepared.profile.activities
    low, high = (int(activities["start_ns"].quantile(q)) for q in (0.3, 0.6))
    choice.told({"selection": None, "span": [low, high]})
    inside = (activities["end_ns"] > low) & (activities["start_ns"] < high)
    assert choice.span == (low, high)
    same(choice.frame(), activities[inside])
    kernels = {"what": "where", "prefix": "act", "equals": {"kind": "kernel"}}
    choice.told({"selection": kernels, "span": [low, high]})
    same(choice.frame(), activities[inside & (activities["kind"] == "kernel")])


def test_rows_given_are_chosen_until_something_else_is(prepared):
    choice = Choice(prepared)
    activities = prepared.profile.activities
    copies = activities[activities["kind"] == "memcpy"]
    wanted = choice.give(copies[::-1])
    same(choice.frame(), copies)
    told = prepared.selections.step(wanted, number=1)
    assert (told["count"], told["event"]["row"]) == (len(copies), copies.index[1])
    assert told["start"] == copies["start_ns"].min()
    # Rows given later are told apart from those before.
    assert choice.give(activities.head(2)) != wanted
    assert len(choice.frame()) == 2
    assert choice.give(None) is None
    assert len(choice.frame()) == len(activities)


def test_chosen_rows_can_be_given_back(prepared):
    choice = Choice(prepared)
    kernels = {"what": "where", "prefix": "act", "equals": {"name": "memcpy HtoD"}}
    choice.told({"selection": kernels, "span": None})
    found = choice.frame()
    assert rows_of_frame(prepared.profile, found)[1].tolist() == found.index.tolist()


def test_steps_go_round(prepared):
    wanted = {"what": "where", "prefix": "act", "equals": {"kind": "memset"}}
    step = prepared.selections.step
    count = step(wanted)["count"]
    assert step(wanted, number=count)["number"] == 0
    assert step(wanted, number=-1)["number"] == count - 1
    last = step(wanted, number=-1)["event"]["start"]
    assert step(wanted, at_ns=last)["number"] == count - 1
    assert step(wanted, at_ns=last + 1)["number"] == 0


def test_a_payload_keeps_the_rows_that_are_selected():
    profile = synthetic_profile(activities=120_000)
    frame = profile.activities
    shortest = frame[frame["kind"] == "kernel"].nsmallest(40, "duration_ns")
    prepared = ViewModel(profile)
    prepared.selections.give(dict([rows_of_frame(profile, shortest)]))
    header, columns = decode(zlib.decompress(pack(prepared)))
    assert (header["given"]["count"], header["given"]["sent"]) == (40, 40)
    kept = columns["act.kept"] == 1
    assert sorted(columns["act.start"][kept]) == sorted(shortest["start_ns"])
    assert sorted(columns["act.dur"][kept]) == sorted(shortest["duration_ns"])
    assert columns["act.lit"][kept].all()


def test_a_view_refuses_foreign_rows_at_once():
    profile = synthetic_profile(activities=50)
    other = synthetic_profile(activities=50, seed=3).activities
    with pytest.raises(ValueError, match=r"prof\.activities"):
        profile.timeline(select=other)
