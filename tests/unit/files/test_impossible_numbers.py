"""Numbers that no recording contains."""

import pytest

from epprof_nb.files.impossible_numbers import LARGEST, with_plausible_numbers
from tests.helpers.tiny import activity, kernel, op, profile

TOO_LARGE = LARGEST + 1


def test_possible_numbers_are_left_alone():
    data = profile([op(1, "a", -LARGEST, 0)], [activity("memcpy", 0, LARGEST, bytes=LARGEST)])
    assert with_plausible_numbers(data) is data


def test_an_empty_profile_is_left_alone():
    data = profile()
    assert with_plausible_numbers(data) is data


@pytest.mark.parametrize("column", ["start_ns", "end_ns", "duration_ns"])
@pytest.mark.parametrize("value", [TOO_LARGE, -TOO_LARGE, 2**63 - 1, -(2**63)])
def test_an_event_with_an_impossible_time_has_no_duration(column, value):
    data = profile(activities=[kernel(10, 30, **{column: value}), kernel(40, 90)])
    found = with_plausible_numbers(data)
    start = 0 if column == "start_ns" else 10
    times = found.activities[["start_ns", "end_ns", "duration_ns"]].to_numpy().tolist()
    assert times == [[start, start, 0], [40, 90, 50]]
    (note,) = found.info["notes"]
    assert note.startswith(f"1 of 2 rows of activities have impossible numbers ({column}): their")


def test_an_event_with_a_negative_duration_has_none():
    data = profile([op(1, "a", 0, 9)], [kernel(10, 30, duration_ns=-5), kernel(90, 40)])
    found = with_plausible_numbers(data)
    times = found.activities[["start_ns", "end_ns", "duration_ns"]].to_numpy().tolist()
    assert times == [[10, 10, 0], [90, 90, 0]]
    (note,) = found.info["notes"]
    assert note.startswith(
        "2 of 2 rows of activities have impossible numbers (end_ns, duration_ns)"
    )


@pytest.mark.parametrize("end_ns", [-40, 29])
def test_an_event_that_ends_before_it_begins_has_no_duration(end_ns):
    wrong = op(1, "a", 30, 90) | {"end_ns": end_ns}
    found = with_plausible_numbers(profile([wrong, op(2, "b", 10, 20)]))
    times = found.ops[["start_ns", "end_ns", "duration_ns"]].to_numpy().tolist()
    assert times == [[30, 30, 0], [10, 20, 10]]


def test_missing_numbers_are_possible():
    data = profile([op(1, "a", 0, 1, in_use_delta_bytes=None, peak_bytes=None)])
    assert with_plausible_numbers(data) is data


def test_sizes_and_counts_that_are_impossible_are_replaced():
    data = profile([op(1, "a", 0, 1, in_use_delta_bytes=-TOO_LARGE, count=TOO_LARGE)])
    ops = with_plausible_numbers(data).ops
    assert ops["in_use_delta_bytes"].isna().all()
    assert ops["count"].tolist() == [1]
    data = profile([op(1, "a", 0, 1, peak_bytes=-2, count=-5)], [kernel(0, 1, bytes=-2)])
    found = with_plausible_numbers(data)
    assert found.ops["count"].tolist() == [1]
    assert found.ops["peak_bytes"].isna().all()
    assert found.activities["bytes"].isna().all()


def test_a_sum_beyond_64_bits_is_refused():
    with pytest.raises(ValueError, match=r"activities\.duration_ns exceeds 64 bits"):
        with_plausible_numbers(profile(activities=[kernel(0, LARGEST)] * 600))
