"""Idle gaps of devices, and the op that the host ran in each."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epprof_nb.analysis.base.index import index_of
from epprof_nb.arrays.intervals import complement, length, union
from epprof_nb.testing import synthetic_profile
from tests.helpers.tiny import activity, call, kernel, line, op, profile

INTERVALS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=12)


def covered(intervals):
    return {t for start, end in intervals for t in range(start, end)}


def pairs(result):
    return list(zip(*(array.tolist() for array in result), strict=True))


@given(INTERVALS)
def test_union_covers_the_same_times_in_ascending_disjoint_intervals(intervals):
    array = np.array(intervals, np.int64).reshape(-1, 2)
    merged = union(array[:, 0], array[:, 1])
    found = pairs(merged)
    assert covered(found) == covered(intervals)
    assert all(before[1] < after[0] for before, after in pairwise(found))
    free = pairs(complement(*merged, 3, 25))
    assert covered(free) == set(range(3, 25)) - covered(intervals)
    assert all(start < end for start, end in free)


def two_devices():
    return profile(
        activities=[
            kernel(100, 200),
            kernel(150, 250, stream_id=8),
            activity("memcpy", 250, 300),
            activity("memset", 400, 410),
            activity("synchronization", 0, 900),
            kernel(280, 420, device_id=1),
        ],
        info={"wall_ns": 1000},
    )


def test_a_device_is_busy_where_any_stream_works():
    assert pairs(index_of(two_devices()).busy(0)) == [(100, 300), (400, 410)]
    assert length(*index_of(two_devices()).busy(0)) == 210
    assert length(*index_of(two_devices()).busy(1)) == 140


def test_all_devices_together_are_busy_where_one_is():
    assert pairs(index_of(two_devices()).busy()) == [(100, 420)]
    assert length(*index_of(two_devices()).busy()) == 320


def test_a_device_that_did_nothing_was_never_busy():
    assert length(*index_of(two_devices()).busy(5)) == 0
    assert length(*index_of(profile()).busy()) == 0


def test_gaps_are_before_between_and_after_the_work_of_each_device():
    found = two_devices().gaps(min_ns=1)
    assert found[["device_id", "start_ns", "end_ns", "position"]].to_numpy().tolist() == [
        [0, 0, 100, "before"],
        [0, 300, 400, "between"],
        [0, 410, 1000, "after"],
        [1, 0, 280, "before"],
        [1, 420, 1000, "after"],
    ]
    assert (found["duration_ns"] == found["end_ns"] - found["start_ns"]).all()


def test_short_gaps_are_left_out():
    assert two_devices().gaps(min_ns=101)["duration_ns"].tolist() == [590, 280, 580]
    assert two_devices().gaps(min_ns=100)["duration_ns"].min() == 100
    assert len(two_devices().gaps()) == 0


def test_the_shortest_gap_is_that_of_the_summary(monkeypatch):
    monkeypatch.setattr("epprof_nb.analysis.utilisation.gaps.IDLE_GAP_NS", 101)
    assert two_devices().gaps()["duration_ns"].tolist() == [590, 280, 580]


def host(**more):
    """Line 1 launches, line 2 waits, line 3 launches again; a range is open in line 2."""
    return profile(
        ops=[
            line(1, 1, 0, 100),
            line(2, 2, 100, 900),
            op(3, "load", 200, 800, 2),
            line(4, 3, 900, 1000),
            op(9, "elsewhere", 0, 1000, thread_id=2),
        ],
        activities=[kernel(50, 90, 1, thread_id=1), kernel(910, 950, 4, **more)],
        info={"wall_ns": 1000},
    )


def test_host_op_is_the_deepest_one_open_in_the_middle_of_the_gap():
    found = host(thread_id=1).gaps(min_ns=500)
    assert found["op_id"].tolist() == [3]
    assert found["name"].tolist() == ["load"]
    assert found["line"].tolist() == [2]
    assert found["cell"].tolist() == ["In[1]"]


def test_host_op_is_that_of_the_thread_that_launches_next():
    assert host(thread_id=2).gaps(min_ns=500)["name"].tolist() == ["elsewhere"]


def test_host_op_is_that_of_the_ops_thread_without_a_launching_thread():
    assert host().gaps(min_ns=500)["name"].tolist() == ["load"]


def test_host_op_of_a_worker_is_that_of_the_waiting_thread():
    assert host(thread_id=77).gaps(min_ns=500)["name"].tolist() == ["load"]


def test_host_op_after_the_last_activity_is_that_of_its_thread():
    found = host(thread_id=1).gaps(min_ns=50)
    assert found["position"].tolist() == ["before", "between", "after"]
    assert found["name"].tolist() == ["line 1", "load", "line 3"]


def test_an_open_call_tells_apart_statements_that_share_a_row_each():
    coalesced = profile(
        ops=[
            line(1, 1, 0, 1000),
            line(2, 2, 10, 990, 1, count=9),
            line(3, 3, 20, 995, 1, count=9),
        ],
        activities=[kernel(0, 100, 2, thread_id=1), kernel(900, 950, 2, thread_id=1)],
        api_calls=[call(300, 700, op_id=2), call(710, 711, op_id=3)],
        info={"wall_ns": 1000},
    )
    assert coalesced.gaps(min_ns=500)["line"].tolist() == [2]


def test_a_gap_in_which_no_op_was_open_has_none():
    found = profile(activities=[kernel(500, 600)], info={"wall_ns": 600}).gaps(min_ns=1)
    assert found["op_id"].isna().all()
    assert found["name"].isna().all()
    assert len(found) == 1


def test_an_op_that_ended_is_not_open():
    ended = profile(
        [op(1, "outer", 0, 100), op(2, "inner", 10, 20, 1)],
        [kernel(90, 95, 1, thread_id=1)],
        info={"wall_ns": 95},
    )
    assert ended.gaps(min_ns=50)["name"].tolist() == ["outer"]


def test_empty_gaps_have_the_dtypes_of_full_ones():
    expected = {
        "device_id": "Int64",
        "start_ns": "int64",
        "end_ns": "int64",
        "duration_ns": "int64",
        "position": "category",
        "cause": "category",
        "not_launched_ns": "int64",
        "launching_ns": "int64",
        "waiting_ns": "int64",
        "held_ns": "int64",
        "unknown_ns": "int64",
        "op_id": "Int64",
        "name": "category",
        "cell": "category",
        "line": "Int64",
        "host_function": "category",
        "host_file": "category",
        "host_line": "Int64",
        "host_samples": "Int64",
    }
    for found in (profile().gaps(), host().gaps(min_ns=1)):
        assert {name: str(dtype) for name, dtype in found.dtypes.items()} == expected
        categories = [found[name].cat.categories.dtype for name in ("position", "name", "cell")]
        assert categories == [object] * 3


def test_busy_time_and_gaps_fill_the_wall():
    made_up = synthetic_profile(20_000, seed=1)
    idle = made_up.gaps(min_ns=1)
    assert length(*index_of(made_up).busy(0)) + idle["duration_ns"].sum() == made_up.wall_ns
    assert idle["start_ns"].is_monotonic_increasing
    long = made_up.gaps()
    waits = long[long["position"] == pd.Categorical(["between"])[0]]
    assert len(waits) > 0
    assert set(waits["line"]) == {4}


@pytest.mark.parametrize("end", [0, 600])
def test_work_past_the_stated_wall_is_no_gap(end):
    found = profile(activities=[kernel(0, 700)], info={"wall_ns": end}).gaps(min_ns=1)
    assert len(found) == 0


def test_the_gaps_of_a_profile_add_up_to_its_idle_time():
    loop = synthetic_profile(activities=500)
    assert loop.gaps(min_ns=0)["duration_ns"].sum() == loop.wall_ns - length(*index_of(loop).busy())
