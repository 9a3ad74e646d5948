"""by_node and by_op_type: host times of nodes in runs of which only some were recorded."""

from __future__ import annotations

import pytest

from epprof_nb.views.view_model import ViewModel
from tests.helpers.tiny import kernel, op, profile

HOST = ["host_ns", "mean_host_ns", "p50_host_ns", "p95_host_ns", "unprofiled_host_ns"]


def run(number, start, nodes, took=100, shapes=1):
    """A run with two nodes, of which the second takes the rest of its time."""
    args = {"nodes": nodes, "call_ns": took, "shapes": shapes}
    of_run = {"session": 1, "run_id": number}
    ops = [
        op(10 * number, "model_run", start, start + took, op_type="run", category="session",
           args=args, **of_run)
    ]  # fmt: skip
    if nodes == "not recorded":
        return ops
    status = "learned" if nodes == "learned" else "complete"
    for i, (name, begin, end) in enumerate((("a", 0, 10), ("b", 10, took))):
        ops.append(
            op(10 * number + 1 + i, name, start + begin, start + end, 10 * number, op_type="Add",
               category="node", node_index=i, status=status, **of_run)
        )  # fmt: skip
    return ops


def on_device(ops):
    return [
        kernel(each["start_ns"], each["end_ns"], each["op_id"])
        for each in ops
        if each["category"] == "node"
    ]


def test_host_times_of_learned_runs_are_missing():
    ops = [*run(1, 0, "learned"), *run(2, 200, "learned")]
    prof = profile(ops, on_device(ops))
    for frame in (prof.by_node(), prof.by_op_type()):
        assert frame[HOST].isna().all(axis=None)
        assert (frame["recorded"] == 0).all()
        assert frame["device_ns"].sum() == 200
    by_op = prof.by_op().set_index("name")
    assert by_op["host_ns"].isna().to_dict() == {"a": True, "b": True, "model_run": False}
    learned = ViewModel(profile([each for each in ops if each["category"] == "node"]))
    assert learned.top_operators(5) == []


def test_host_times_are_those_of_the_recorded_runs():
    ops = [*run(1, 0, "recorded"), *run(2, 200, "learned")]
    frame = profile(ops, on_device(ops)).by_node().set_index("name")
    assert frame["count"].to_dict() == {"a": 2, "b": 2}
    assert frame["recorded"].to_dict() == {"a": 1, "b": 1}
    assert frame["host_ns"].to_dict() == {"a": 10, "b": 90}
    assert frame["p50_host_ns"].to_dict() == {"a": 10, "b": 90}


def test_work_without_a_node_has_no_host_time():
    ops = run(1, 0, "recorded")
    frame = profile(ops, [*on_device(ops), kernel(300, 400)]).by_node()
    assert frame["name"].tolist() == ["b", "a", "(no node)"]
    assert frame[HOST].isna().all(axis=1).tolist() == [False, False, True]


def sampled():
    """Two recorded runs of each of two shapes, of 98 short and 2 long ones."""
    ops, start = [], 0
    for number in range(1, 101):
        is_long = number > 98
        nodes = "recorded" if number <= 2 or is_long else "not recorded"
        ops += run(number, start, nodes, 1010 if is_long else 110, shapes=2 if is_long else 1)
        start += 2000
    return ops


def test_recorded_runs_weigh_by_the_runs_of_their_shapes():
    frame = profile(sampled()).by_node().set_index("name")
    assert frame["recorded"].to_dict() == {"a": 4, "b": 4}
    assert frame.loc["b", "host_ns"] == 2 * 100 + 2 * 1000
    assert frame.loc["b", "mean_host_ns"] == pytest.approx((98 * 100 + 2 * 1000) / 100, abs=1)
    assert frame.loc["b", ["p50_host_ns", "p95_host_ns"]].tolist() == [100, 100]
    assert frame.loc["b", "unprofiled_host_ns"] == 98 * 100 + 2 * 1000
    assert frame.loc["a", "mean_host_ns"] == 10


def test_runs_that_were_all_recorded_weigh_the_same():
    ops = [*run(1, 0, "recorded", 110), *run(2, 2000, "recorded", 1010, shapes=2)]
    frame = profile(ops).by_node().set_index("name")
    assert frame.loc["b", "mean_host_ns"] == 550
    assert frame.loc["b", "p95_host_ns"] == 1000


def test_delayed_runs_do_not_count_in_the_estimate():
    """Another process ran for 5,000 ns, in a recorded run, and in one without nodes."""
    ops, start = [], 0
    for number in range(1, 31):
        took = 5110 if number in (2, 20) else 110
        ops += run(number, start, "recorded" if number <= 3 else "not recorded", took)
        start += 6000
    frame = profile(ops).by_node().set_index("name")
    assert frame["unprofiled_host_ns"].to_dict() == {"a": 30 * 10, "b": 30 * 100}
    assert frame.loc["b", "host_ns"] == 5100 + 2 * 100  # as recorded
