"""Device work by stream, and group statistics, against sums computed row by row."""

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from epprof_nb.arrays.percentiles import GroupStatistics
from epprof_nb.testing import synthetic_profile
from tests.helpers.tiny import activity, call, kernel, op, profile


def streams():
    return profile(
        ops=[op(1, "a", 0, 100)],
        activities=[
            kernel(10, 20, 1, stream_id=7, correlation_id=1),
            kernel(15, 30, 1, stream_id=7),
            activity("memcpy", 30, 40, 1, stream_id=7, bytes=500),
            activity("memcpy", 30, 50, 1, stream_id=13, bytes=4000),
            activity("memset", 50, 55, 1, stream_id=13, bytes=64),
            activity("synchronization", 0, 90, 1, stream_id=7),
            activity("synchronization", 0, 90, 1, stream_id=15),  # a stream without work
        ],
        api_calls=[call(4, 5, correlation_id=1)],
    )


def test_by_stream_sums_activities():
    frame = streams().by_stream().set_index("stream")
    assert frame.index.tolist() == ["stream 7", "stream 13"]
    first, second = frame.loc["stream 7"], frame.loc["stream 13"]
    assert (first["count"], first["kernels"], first["memcpys"]) == (3, 2, 1)
    assert (first["device_ns"], first["busy_ns"], first["p95_device_ns"]) == (35, 30, 15)
    assert first["launch_delay_ns"] == 6
    assert pd.isna(second["launch_delay_ns"])
    assert second["bytes"] == 4064
    # Copies alone have a bandwidth: 4000 bytes in 20 ns.
    assert second["bandwidth"] == 2e11
    assert second["share"] == 25 / 60
    assert frame["device_ns"].sum() == 60


def test_streams_of_one_number_are_told_apart():
    frame = profile(
        activities=[
            kernel(0, 1, device_id=0, context_id=1),
            kernel(0, 1, device_id=0, context_id=2),
            kernel(0, 1, device_id=1, context_id=3, stream_id=9),
        ]
    ).by_stream()
    assert frame["stream"].tolist() == [
        "stream 7, device 0, context 1",
        "stream 7, device 0, context 2",
        "stream 9, device 1",
    ]


def test_empty_by_stream_has_its_columns():
    empty, some = profile().by_stream(), streams().by_stream()
    assert len(empty) == 0
    assert empty.dtypes.astype(str).tolist() == some.dtypes.astype(str).tolist()


def test_by_stream_adds_up_to_the_device_time():
    made = synthetic_profile(activities=3000)
    by_stream = made.by_stream()
    assert by_stream["device_ns"].sum() == made.by_op()["self_device_ns"].sum()
    assert (by_stream["busy_ns"] <= by_stream["device_ns"]).all()


def test_executions_of_an_op_have_a_mean_and_a_percentile():
    times = [10, 20, 30, 400]
    starts = np.cumsum([0, *times])
    found = profile(
        ops=[op(i + 1, "f", starts[i], starts[i] + 2 * t) for i, t in enumerate(times)],
        activities=[kernel(starts[i], starts[i] + t, i + 1) for i, t in enumerate(times)],
    ).by_op()
    row = found.iloc[0]
    assert (row["mean_device_ns"], row["p95_device_ns"]) == (115, 400)
    assert (row["mean_host_ns"], row["p95_host_ns"]) == (230, 800)


def test_a_row_of_many_executions_counts_as_that_many():
    found = profile([op(1, "f", 0, 9000, count=99, duration_ns=990), op(2, "f", 9000, 9500)])
    row = found.by_op().iloc[0]
    assert row["count"] == 100
    assert row["mean_host_ns"] == round((990 + 500) / 100)
    assert row["p95_host_ns"] == 10


values = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-5, 2**40), st.integers(1, 4)), max_size=30
)


@settings(max_examples=60, deadline=None)
@given(values, st.booleans(), st.sampled_from([0, 50, 95, 100]))
def test_statistics_equal_those_of_repeated_values(rows, weighted, percent):
    groups, numbers, weights = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    spread = GroupStatistics(groups, numbers, 5, weights if weighted else None)
    for group in range(5):
        own = sorted(
            value for g, value, w in rows if g == group for _ in range(w if weighted else 1)
        )
        assert spread.count[group] == len(own)
        assert spread.total[group] == sum(own)
        rank = max(-(-len(own) * percent // 100), 1)
        assert spread.percentile(percent)[group] == (own[rank - 1] if own else 0)
