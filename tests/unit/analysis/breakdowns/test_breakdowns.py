"""Breakdowns: known results of small profiles, and sums that always add up."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epprof_nb.analysis.base.device_work import device_work
from epprof_nb.analysis.base.op_tree import NO_OP
from epprof_nb.profiles import Profile
from epprof_nb.testing import synthetic_profile
from tests.helpers.tiny import activity, call, kernel, line, nested, op, profile, rows


def test_by_op_counts_an_op_and_all_below_it():
    found = rows(nested().by_op())
    assert found["attention"]["device_ns"] == found["attention"]["self_device_ns"] == 70
    assert found["line 2"]["device_ns"] == 80
    assert found["line 2"]["self_device_ns"] == 10
    assert found["line 1"]["device_ns"] == found["In[1]"]["device_ns"] == 85
    assert found["line 1"]["self_device_ns"] == 5
    assert found["In[1]"]["self_device_ns"] == 0
    assert found["line 2"]["count"] == found["attention"]["count"] == 2
    assert found["line 2"]["bytes"] == 1024
    assert found["line 1"]["bytes"] == 1088
    counts = ("kernels", "memcpys", "memsets")
    assert [found["line 1"][name] for name in counts] == [2, 1, 1]
    assert [found["attention"][name] for name in counts] == [2, 0, 0]


def test_by_op_keeps_work_without_an_op_in_a_last_row():
    frame = nested().by_op()
    assert frame["name"].iloc[-1] == NO_OP
    last = frame.iloc[-1]
    assert (last["device_ns"], last["self_device_ns"], last["kernels"]) == (7, 7, 1)
    assert last["count"] == 0
    assert frame["host_ns"].isna().tolist() == [False] * (len(frame) - 1) + [True]
    assert frame["self_device_ns"].sum() == 92
    assert pd.isna(last["op_type"])
    assert last["share"] == pytest.approx(7 / 92)


def test_by_op_measures_host_time_once():
    found = rows(nested().by_op())
    assert found["line 2"]["host_ns"] == 200
    assert found["line 2"]["self_host_ns"] == 200 - 120
    assert found["line 1"]["host_ns"] == 900
    assert found["line 1"]["self_host_ns"] == 700
    assert found["attention"]["host_ns"] == found["attention"]["self_host_ns"] == 120


def test_by_op_averages_the_delay_of_launches():
    found = rows(nested().by_op())
    assert found["attention"]["launch_delay_ns"] == (10 + 20) // 2
    assert pd.isna(found[NO_OP]["launch_delay_ns"])


def test_a_kernel_that_seems_to_start_before_its_launch_has_no_delay():
    early = profile(
        [op(1, "a", 0, 10)], [kernel(3, 9, 1, correlation_id=5)], [call(4, 5, correlation_id=5)]
    )
    assert rows(early.by_op())["a"]["launch_delay_ns"] == 0


def test_by_op_is_sorted_by_device_time_then_host_time():
    assert nested().by_op()["name"].tolist() == ["In[1]", "line 1", "line 2", "attention", NO_OP]


def test_an_op_that_nests_in_itself_counts_once():
    recursive = profile(
        ops=[op(1, "f", 0, 100), op(2, "g", 10, 90, 1), op(3, "f", 20, 80, 2)],
        activities=[kernel(0, 5, 1), kernel(5, 15, 3)],
    )
    found = rows(recursive.by_op())
    assert found["f"]["device_ns"] == found["f"]["self_device_ns"] == 15
    assert found["f"]["host_ns"] == 100
    assert found["f"]["self_host_ns"] == 20 + 60
    assert found["f"]["kernels"] == 2
    assert found["f"]["count"] == 2
    assert found["g"]["device_ns"] == 10


def test_ops_of_one_name_below_different_parents_add_up():
    twice = profile(
        ops=[op(1, "a", 0, 10), op(2, "f", 1, 9, 1), op(3, "b", 10, 20), op(4, "f", 11, 19, 3)],
        activities=[kernel(0, 5, 2), kernel(5, 7, 4)],
    )
    found = rows(twice.by_op())
    assert found["f"]["device_ns"] == 7
    assert found["f"]["host_ns"] == 16


def test_equal_statements_of_different_lines_are_different_rows():
    frame = profile(
        [op(1, "f()", 0, 1, cell="In[1]", line=1), op(2, "f()", 1, 2, cell="In[1]", line=4)]
    ).by_op()
    assert sorted(frame["line"]) == [1, 4]


def test_work_of_an_op_that_is_not_in_the_profile_is_work_without_an_op():
    found = rows(profile([op(1, "a", 0, 10)], [kernel(0, 4, 77)]).by_op())
    assert found[NO_OP]["self_device_ns"] == 4
    assert found["a"]["device_ns"] == 0


def test_an_op_whose_parent_is_not_in_the_profile_is_a_root():
    frame = profile([op(1, "a", 0, 10, parent=99)], [kernel(0, 4, 1)]).by_op()
    assert frame["device_ns"].tolist() == [4]


def test_ops_that_are_their_own_ancestors_do_not_hang():
    cycle = profile(
        ops=[op(1, "a", 0, 9, 2), op(2, "b", 0, 9, 1), op(3, "c", 0, 9, 3), op(4, "d", 0, 9, 1)],
        activities=[kernel(0, 4, 1), kernel(4, 5, 2), kernel(5, 7, 3), kernel(7, 15, 4)],
    )
    found = rows(cycle.by_op())
    assert sum(row["self_device_ns"] for row in found.values()) == 15
    assert found["a"]["device_ns"] == 12


def test_coalesced_statements_count_all_their_executions():
    found = rows(profile([line(1, 2, 0, 100, count=5000, duration_ns=60)]).by_op())
    assert found["line 2"]["count"] == 5000
    assert found["line 2"]["host_ns"] == 60


def replayed():
    return profile(
        ops=[
            op(1, "warm-up", -50, -10, status="earlier"),
            op(2, "replay", 0, 50),
            op(3, "unused", -90, -60, status="earlier"),
        ],
        activities=[
            kernel(0, 10, 2, capture_op_id=1),
            kernel(10, 14, 2, capture_op_id=55),
            kernel(14, 15, 2),
        ],
    )


def test_a_replayed_node_counts_for_the_op_that_replayed():
    found = rows(replayed().by_op())
    assert set(found) == {"replay"}
    assert found["replay"]["device_ns"] == 15


def test_capture_attribution_counts_for_the_capturing_op():
    found = rows(replayed().by_op(attribution="capture"))
    assert found["warm-up"]["device_ns"] == 10
    assert found["replay"]["device_ns"] == 5
    assert "unused" not in found
    assert pd.isna(found["warm-up"]["host_ns"])  # it ran before the profile
    assert found["warm-up"]["count"] == 1


@pytest.mark.parametrize("name", ["by_op", "by_line"])
def test_an_unknown_attribution_is_refused(name):
    with pytest.raises(ValueError, match="'launch' or 'capture'"):
        getattr(nested(), name)(attribution="kernel")


def test_a_graph_launch_is_work_only_where_its_nodes_are_not_recorded():
    launches = profile(
        [op(1, "a", 0, 100)],
        [
            activity("graph_launch", 0, 30, 1, correlation_id=1),
            activity("graph_launch", 30, 60, 1, correlation_id=2),
            kernel(30, 55, 1, correlation_id=2),
        ],
    )
    assert device_work(launches.tables["activities"]).tolist() == [True, False, True]
    assert rows(launches.by_op())["a"]["device_ns"] == 30 + 25


def test_by_kernel_summarises_durations():
    durations = [1] * 10 + [5] * 9 + [100]
    grids = [(1, 1, 1)] * 8 + [(2, 3, 4)] * 12
    shapes = [dict(zip(("grid_x", "grid_y", "grid_z"), grid, strict=True)) for grid in grids]
    found = profile(
        [op(1, "a", 0, 1), op(2, "b", 0, 1)],
        [
            kernel(0, d, 1 + i % 2, name="gemm", **shape)
            for i, (d, shape) in enumerate(zip(durations, shapes, strict=True))
        ]
        + [kernel(0, 400, name="other"), activity("memcpy", 0, 445)],
    ).by_kernel()
    assert found["name"].tolist() == ["other", "gemm"]
    other, gemm = found.iloc[0], found.iloc[1]
    assert other["min_device_ns"] == other["p95_device_ns"] == other["max_device_ns"] == 400
    assert (gemm["count"], gemm["device_ns"], gemm["mean_device_ns"]) == (20, 155, 8)
    assert (gemm["min_device_ns"], gemm["p95_device_ns"], gemm["max_device_ns"]) == (1, 5, 100)
    assert gemm["grid"] == (2, 3, 4)
    assert gemm["block"] is None
    assert found["ops"].tolist() == [0, 2]
    assert found["share"].tolist() == pytest.approx([0.4, 0.155])


@pytest.mark.parametrize("name", ["by_op", "by_line", "by_kernel"])
def test_empty_breakdowns_have_the_dtypes_of_full_ones(name):
    def dtypes(frame):
        return {
            column: str(getattr(getattr(dtype, "categories", None), "dtype", dtype))
            for column, dtype in frame.dtypes.items()
        }

    empty, full = getattr(profile(), name)(), getattr(nested(), name)()
    assert len(empty) == 0
    assert dtypes(empty) == dtypes(full)
    assert "object" in dtypes(empty).values()


trees = st.lists(
    st.tuples(
        st.integers(-1, 12), st.sampled_from("abc"), st.sampled_from([None, 1, 2]), st.booleans()
    ),
    max_size=12,
)


work = st.lists(
    st.tuples(
        st.sampled_from(["kernel", "memcpy", "memset", "synchronization"]),
        st.integers(0, 2**40),
        st.integers(-1, 14),
        st.integers(-1, 14),
    ),
    max_size=20,
)


@settings(deadline=None)
@given(trees, work, st.sampled_from(["launch", "capture"]))
def test_own_device_time_always_adds_up(tree, launched, attribution):
    some = profile(
        [
            op(i, name, 0, 9, parent, line=at, cell="In[1]" if at else None, thread_id=1 + other)
            for i, (parent, name, at, other) in enumerate(tree)
        ],
        [
            activity(kind, 0, duration, op_id, capture_op_id=capture)
            for kind, duration, op_id, capture in launched
        ],
    )
    everything = sum(d for kind, d, _, _ in launched if kind != "synchronization")
    ops = some.by_op(attribution=attribution)
    lines = some.by_line(attribution=attribution)
    own = some.by_line(attribution=attribution, inclusive=False)
    for inclusive, self_ in ((ops, ops), (lines, own)):
        assert self_["self_device_ns"].sum() == everything
        assert (self_["self_device_ns"] <= inclusive["device_ns"]).all()
        assert (inclusive["device_ns"] <= everything).all()
        assert (self_["self_host_ns"] >= 0).all()


def test_a_large_profile_adds_up():
    large = synthetic_profile(50_000, seed=3)
    activities = large.tables["activities"]
    everything = activities["duration_ns"][device_work(activities)].sum()
    assert large.by_op()["self_device_ns"].sum() == everything
    assert large.by_line(inclusive=False)["self_device_ns"].sum() == everything
    kernels = activities.names("kind").equals("kernel")
    assert large.by_kernel()["device_ns"].sum() == activities["duration_ns"][kernels].sum()


def test_columns_that_repeat_one_value_in_memory():
    made = nested()
    activities = made.tables["activities"]
    same = {name: np.full(len(activities), 7) for name in ("bytes", "correlation_id")}
    expected = Profile({**made.tables, "activities": activities.replace(**same)}, made.info)
    repeated = Profile({**made.tables, "activities": activities.replace(**same)}, made.info)
    for name, values in same.items():
        repeated.tables["activities"]._columns[name] = np.broadcast_to(values[0], len(activities))
    for method in ("by_op", "by_stream", "by_kernel", "critical_path"):
        found, plain = getattr(repeated, method)(), getattr(expected, method)()
        pd.testing.assert_frame_equal(found, plain)
