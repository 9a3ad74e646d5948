"""Mapping the rows of a DataFrame back to rows of the profile."""

from __future__ import annotations

import pandas as pd
import pytest

from epprof_nb.testing import synthetic_profile
from epprof_nb.views.queries.frame_rows import rows_of_frame


def test_a_frame_that_was_filtered_and_sorted_still_tells_its_rows():
    made = synthetic_profile(activities=500)
    frame = made.activities
    gemm = frame[frame["kind"] == "memcpy"].sort_values("duration_ns", ascending=False)
    prefix, rows = rows_of_frame(made, gemm)
    assert prefix == "act"
    assert rows.tolist() == sorted(gemm.index)
    prefix, rows = rows_of_frame(made, made.api_calls.tail(3))
    assert (prefix, rows.tolist()) == ("api", [497, 498, 499])


def test_ops_are_told_by_their_id():
    made = synthetic_profile(activities=100)
    some = made.ops.iloc[[4, 2]]
    assert rows_of_frame(made, some)[1].tolist() == [2, 4]
    assert rows_of_frame(made, some.reset_index())[1].tolist() == [2, 4]
    assert rows_of_frame(made, some[["name", "start_ns"]])[0] == "op"


def test_joined_frames_and_empty_ones_are_taken():
    made = synthetic_profile(activities=100)
    joined = made.activities.join(made.ops.add_suffix("_op"), on="op_id")
    assert rows_of_frame(made, joined[joined["name_op"] == "forward"])[0] == "act"
    assert rows_of_frame(made, made.activities.head(0))[1].tolist() == []


@pytest.mark.parametrize(
    ("foreign", "why"),
    [
        (lambda p: p.by_kernel(), "no table on the timeline"),
        (lambda p: p.activities.tail(20).reset_index(drop=True), "index was reset"),
        (lambda p: synthetic_profile(activities=300, seed=1).activities, "another"),
        (lambda p: synthetic_profile(activities=900).activities, "exceeds the"),
        (lambda p: synthetic_profile(activities=900).ops, "not in this profile"),
        (lambda p: p.activities[["kind", "name"]], "cannot be verified"),
        (lambda p: p.activities.set_index("name"), "not contain row numbers"),
        (lambda p: p.ops.reset_index(drop=True), "have no op_id"),
        (lambda p: pd.DataFrame({"a": [1]}), "no table"),
    ],
)
def test_a_foreign_frame_is_refused_with_what_to_pass(foreign, why):
    made = synthetic_profile(activities=300)
    with pytest.raises(ValueError, match=why) as raised:
        rows_of_frame(made, foreign(made))
    assert "prof.activities" in str(raised.value)


def test_what_is_no_frame_is_refused():
    made = synthetic_profile(activities=10)
    with pytest.raises(TypeError, match="not a Series"):
        rows_of_frame(made, made.activities.loc[3])
    with pytest.raises(TypeError, match="not list"):
        rows_of_frame(made, [1, 2])
