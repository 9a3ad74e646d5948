"""Time of devices by activity, and idle time by its cause."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epprof_nb.analysis.base.index import index_of
from epprof_nb.arrays.intervals import length
from tests.helpers.tiny import activity, call, kernel, line, op, profile

PARTS = ["compute_ns", "copy_ns", "communication_ns", "overlap_ns", "idle_ns",
         "not_recorded_ns"]  # fmt: skip
CAUSES = [
    f"idle_{cause}_ns" for cause in ("not_launched", "launching", "waiting", "held", "unknown")
]
WORK = st.lists(
    st.tuples(
        st.sampled_from(["kernel", "memcpy", "memset", "nccl", "graph_launch", "synchronization"]),
        st.integers(0, 60), st.integers(0, 25), st.integers(0, 1), st.integers(0, 3),
        st.booleans(),
    ),
    max_size=14,
)  # fmt: skip


def random_profile(work, waits=()):
    activities, calls = [], []
    for i, (kind, start, duration, device, lead, is_node) in enumerate(work):
        name = "ncclDevKernel_AllReduce" if kind == "nccl" else kind
        row = activity("kernel" if kind == "nccl" else kind, start, start + duration, 1 + i % 3,
                       name=name, device_id=device, correlation_id=i, thread_id=1,
                       graph_id=5 if is_node else None)  # fmt: skip
        activities.append(row)
        if lead:
            calls.append(call(start - 3 * lead, start - lead, correlation_id=i, op_id=1))
    calls += [call(start, start + 9, name="cuStreamSynchronize", correlation_id=1_000 + start)
              for start in waits]  # fmt: skip
    return profile([op(1, "f", 0, 90), op(2, "g", 10, 50, 1)], activities, calls,
                   info={"wall_ns": 90})  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(WORK, st.lists(st.integers(0, 80), max_size=3, unique=True))
def test_the_parts_add_up_to_the_span(work, waits):
    prof = random_profile(work, waits)
    found = prof.overlap()
    assert (found[PARTS].sum(axis=1) == found["span_ns"]).all()
    assert (found[CAUSES].sum(axis=1) == found["idle_ns"]).all()
    assert (found[[*PARTS, *CAUSES]] >= 0).all().all()
    for row in found.itertuples():
        assert row.span_ns - row.idle_ns == length(*index_of(prof).busy(row.device_id))


@settings(max_examples=60, deadline=None)
@given(WORK, st.lists(st.integers(0, 80), max_size=3, unique=True))
def test_the_causes_add_up_to_each_gap(work, waits):
    gaps = random_profile(work, waits).gaps(1)
    causes = ["not_launched_ns", "launching_ns", "waiting_ns", "held_ns", "unknown_ns"]
    assert (gaps[causes].sum(axis=1) == gaps["duration_ns"]).all()
    assert (gaps[causes] >= 0).all().all()
    largest = gaps[causes].max(axis=1).to_numpy()
    of_cause = [gaps[f"{cause.replace(' ', '_')}_ns"].iloc[i]
                for i, cause in enumerate(gaps["cause"])]  # fmt: skip
    assert (largest == of_cause).all()


def test_the_parts_add_up_if_work_precedes_the_profile():
    prof = profile(activities=[kernel(-90, -80), kernel(-50, -40), kernel(10, 20)],
                   info={"wall_ns": 30})  # fmt: skip
    (row,) = prof.overlap().to_dict("records")
    assert (row["span_ns"], row["compute_ns"], row["idle_ns"]) == (110, 30, 80)
    assert sum(row[cause] for cause in CAUSES) == row["idle_ns"]
    assert prof.gaps(0)["start_ns"].tolist() == [-80, -40, 20]


@settings(max_examples=40, deadline=None)
@given(WORK)
def test_the_sum_over_ops_and_the_unattributed_is_the_device_time(work):
    prof = random_profile(work)
    by_op = prof.by_op()
    executed = prof.activities[prof.activities["kind"].isin(["kernel", "memcpy", "memset"])]
    nodes = set(executed["correlation_id"])
    alone = prof.activities[(prof.activities["kind"] == "graph_launch")
                            & ~prof.activities["correlation_id"].isin(nodes)]  # fmt: skip
    expected = executed["duration_ns"].sum() + alone["duration_ns"].sum()
    assert by_op["self_device_ns"].sum() == expected
    transfers = prof.transfers()
    copies = prof.activities[prof.activities["kind"] == "memcpy"]
    assert transfers["device_ns"].sum() == copies["duration_ns"].sum()
    assert transfers["copies"].sum() == len(copies)
    assert (transfers["exposed_ns"] <= transfers["device_ns"]).all()


def test_each_kind_of_work_is_counted_alone_and_together():
    prof = profile(activities=[
        kernel(0, 10), kernel(5, 20, stream_id=8), activity("memcpy", 15, 30, copy_kind="HtoD"),
        activity("memset", 40, 45), kernel(50, 60, name="ncclDevKernel_AllGather"),
        kernel(55, 58), activity("memcpy", 70, 80, copy_kind="PtoP"),
    ])  # fmt: skip
    (row,) = prof.overlap().to_dict("records")
    assert [row[name] for name in ("span_ns", *PARTS)] == [80, 15, 15, 17, 8, 25, 0]


def test_the_host_waited_for_a_copy_that_ended_before_its_call_returned():
    copies = [activity("memcpy", 10, 20, correlation_id=i) for i in range(4)]
    calls = [call(5, end, correlation_id=i) for i, end in enumerate([19, 20, 21])]
    assert profile(activities=copies, api_calls=calls).transfers()["synchronous"].item() == 2


def gap(**more):
    """A gap from 100 to 200; its causes."""
    found = profile(info={"wall_ns": 300}, **more).gaps(1)
    (row,) = found[found["position"] == "between"].to_dict("records")
    causes = ("not_launched", "launching", "waiting", "held", "unknown")
    return [row[f"{cause}_ns"] for cause in causes]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([call(180, 190, correlation_id=2)], [80, 20, 0, 0, 0]),
        ([call(20, 30, correlation_id=2)], [0, 0, 0, 100, 0]),
        ([], [0, 0, 0, 0, 100]),
        ([call(180, 190, correlation_id=2), call(90, 140, name="cuStreamSynchronize")],
         [40, 20, 40, 0, 0]),
        ([call(180, 190, correlation_id=2), call(90, 140, name="cudaMemcpy")], [40, 20, 40, 0, 0]),
        ([call(180, 190, correlation_id=2), call(90, 140, name="cudaMemcpyAsync")],
         [80, 20, 0, 0, 0]),
        ([call(180, 190, correlation_id=2), call(90, 140, 5, name="cuStreamSynchronize")],
         [80, 20, 0, 0, 0]),
    ],
)  # fmt: skip
def test_idle_time_has_the_cause_of_the_next_launch(calls, expected):
    work = [kernel(0, 100, correlation_id=1), kernel(200, 210, correlation_id=2, thread_id=1)]
    assert gap(activities=work, api_calls=calls) == expected


def test_a_launch_that_takes_much_longer_than_others_was_held():
    # Other launches start 5 ns after their call returned.
    work = [kernel(i * 1_000, i * 1_000 + 500, correlation_id=i) for i in range(9)]
    calls = [call(i * 1_000 - 10, i * 1_000 - 5, correlation_id=i) for i in range(9)]
    work[8] = kernel(8_100, 8_200, correlation_id=8)
    found = profile(activities=work, api_calls=calls, info={"wall_ns": 9_000}).gaps(1)
    last = found.iloc[-2]
    assert last[["not_launched_ns", "launching_ns", "held_ns"]].tolist() == [490, 15, 95]
    assert found["cause"].iloc[1] == "not launched"


def replay(recorded_nodes):
    """A graph replay from 100 to 200: its nodes, or its launch alone."""
    graph = {"graph_id": 7, "correlation_id": 3, "thread_id": 1}
    rows = [kernel(0, 50, 1, correlation_id=1), activity("graph_launch", 100, 200, 2, **graph)]
    if recorded_nodes:
        rows += [kernel(100 + 20 * i, 118 + 20 * i, 2, graph_node_id=i, **graph) for i in range(5)]
    calls = [call(0, 5, correlation_id=1, op_id=1),
             call(80, 90, name="cuGraphLaunch", correlation_id=3, op_id=2)]  # fmt: skip
    ops = [line(1, 1, 0, 60), line(2, 2, 60, 95)]
    return profile(ops, rows, calls, info={"wall_ns": 200})


def test_a_graph_replay_is_busy_whether_its_nodes_were_recorded_or_not():
    (nodes,), (whole,) = (replay(r).overlap().to_dict("records") for r in (True, False))
    assert [whole[name] for name in ("span_ns", "compute_ns", "idle_ns")] == [200, 150, 50]
    # Between two nodes, the replay is on its way to the next one.
    assert [nodes[name] for name in ("span_ns", "compute_ns", "idle_ns")] == [198, 140, 58]
    assert nodes["idle_launching_ns"] == 10 + 10 + 8
    assert nodes["idle_held_ns"] == whole["idle_held_ns"] == 0


@pytest.mark.parametrize(("recorded_nodes", "kernels"), [(True, 5), (False, 0)])
def test_a_graph_replay_is_one_launch(recorded_nodes, kernels):
    rows = replay(recorded_nodes).launches().set_index("line")
    assert rows.loc[2, ["launches", "graph_launches", "kernels"]].tolist() == [1, 1, kernels]
    assert rows.loc[1, ["launches", "graph_launches", "kernels"]].tolist() == [1, 0, 1]
    assert np.isclose(rows.loc[2, "launch_delay_ns"], 20)
