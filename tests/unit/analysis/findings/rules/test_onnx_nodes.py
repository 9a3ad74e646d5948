"""Findings on ONNX Runtime's nodes without device work."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.findings.ranking import findings
from epprof_nb.analysis.onnx.profiler_slowdown import without_profiling
from tests.helpers.tiny import op, profile

INFO = {"wall_ns": 10_000_000, "onnxruntime_sessions": {"7": "m"}, "onnxruntime_stretch": []}


def node(op_id, name, op_type, start, duration, **more):
    return op(op_id, name, start, start + duration, category="node", op_type=op_type, session=7,
              node_index=op_id, provider="CPUExecutionProvider", **more)  # fmt: skip


def found(ops, **info):
    return findings(ProfileIndex(profile(ops, info=INFO | info)))


def test_the_operator_that_takes_most_of_the_time_is_named():
    ops = [
        node(1, "up", "MatMul", 0, 300_000),
        node(2, "down", "MatMul", 400_000, 500_000),
        node(3, "act", "Gelu", 1_000_000, 200_000),
    ]
    (finding,) = found(ops)
    assert finding.text == (
        "MatMul nodes account for 80 % of the time of all nodes (800 \u00b5s in 2 executions); the "
        "slowest is `down` (500 \u00b5s, mean of 1 execution)."
    )
    assert (finding.start_ns, finding.end_ns) == (400_000, 900_000)
    assert finding.gain_ns == 800_000
    slowed = [{"session": 7, "stretch": 2.0}]
    (finding,) = found(ops, onnxruntime_stretch=slowed)
    assert finding.gain_ns == 400_000
    assert "(800 µs in 2 executions, 400 µs without the profiler)" in finding.text
    assert "`down` (250 µs without the profiler, mean of 1 execution)" in finding.text


def test_a_loop_is_not_what_takes_the_time_of_its_body():
    ops = [
        node(1, "loop", "Loop", 0, 900_000),
        node(2, "act", "Gelu", 10_000, 800_000, parent=1),
        node(3, "up", "MatMul", 910_000, 50_000),
    ]
    (finding,) = found(ops)
    assert finding.text.startswith("Gelu nodes account for 94 %")


def test_sessions_on_threads_save_at_most_the_wall_time():
    ops = [
        node(thread + 1, "up", "MatMul", 0, 300_000, thread_id=thread, run_id=thread)
        for thread in range(4)
    ]
    ops.append(node(9, "act", "Gelu", 300_000, 10_000))
    (finding,) = found(ops, wall_ns=310_000)
    assert "(1.20 ms in 4 executions)" in finding.text
    assert (finding.low_ns, finding.gain_ns, finding.high_ns) == (0, 310_000, 310_000)


def test_no_operator_stands_out():
    kinds = ("Add", "Mul", "Sub", "Div")
    assert found([node(i + 1, k, k, i * 1000, 1000) for i, k in enumerate(kinds)]) == []
    assert found([node(1, "up", "MatMul", 0, 300_000)]) == []


def test_a_node_is_named_if_no_operator_stands_out():
    kinds = ("Add", "Mul", "Sub", "Div")
    ops = [node(i + 1, k, k, i * 1000, 400) for i, k in enumerate(kinds)]
    same = [node(i + 1, f"mm{i}", "MatMul", i * 10_000, 1000 + 3000 * (i == 2)) for i in range(4)]
    assert found(ops) == []
    (finding,) = found(same, wall_ns=100_000)
    assert finding.text == (
        "Node `mm2` (MatMul) accounts for 57 % of the time of all nodes (4.00 \u00b5s in 1 "
        "execution)."
    )
    assert (finding.start_ns, finding.end_ns) == (20_000, 24_000)
    slowed = [{"session": 7, "stretch": 4.0}]
    (finding,) = found(same, wall_ns=10_000, onnxruntime_stretch=slowed)
    assert "(4.00 µs in 1 execution, 1.00 µs without the profiler)" in finding.text


def test_conversions_that_were_not_fused_are_named():
    kinds = ("QuantizeLinear", "Conv", "DequantizeLinear", "Relu", "Clip", "Add", "Mul", "Sub")
    ops = [
        node(i + 1, f"n{i}", k, i * 1000, 300 if "Lin" in k else 100) for i, k in enumerate(kinds)
    ]
    (finding,) = found(ops, wall_ns=10_000)
    assert finding.text == (
        "2 nodes that quantize or dequantize account for 50 % of the time of all nodes (600 ns): "
        "ONNX Runtime did not fuse them into quantized operators."
    )
    slowed = [{"session": 7, "stretch": 4.0}]
    (finding,) = found(ops, wall_ns=5_000, onnxruntime_stretch=slowed)
    assert "(600 ns, 150 ns without the profiler)" in finding.text
    casts = [
        node(i + 1, f"InsertedPrecisionFreeCast_{i}" if k == "Cast" else f"n{i}", k, i * 1000, 100)
        for i, k in enumerate(("Cast", "Conv", "Relu", "Clip", "Add"))
    ]
    (finding,) = found(casts, wall_ns=5_000)
    assert finding.text == (
        "1 Cast node inserted by ONNX Runtime accounts for 20 % of the time of all nodes (100 ns): "
        "the execution provider has no kernels for the types of the model."
    )
    for row in casts:  # a Cast of the model itself is what its author wanted
        row["name"] = "n" + str(row["op_id"])
    assert found(casts, wall_ns=5_000) == []


def test_time_lost_to_the_thread_pool_is_named():
    ops = [
        node(1, "up", "MatMul", 0, 400, pool_start_ns=50, pool_wait_ns=150),
        node(2, "down", "Add", 400, 600, pool_start_ns=50, pool_wait_ns=0),
    ]
    finding, hot = found(ops, wall_ns=1_000)
    assert (finding.kind, hot.kind) == ("thread pool", "hot operator")
    assert finding.text == (
        "Of their time, nodes spent 10 % starting and 15 % waiting for threads of the session's "
        "pool."
    )
    assert "intra_op_num_threads" in finding.remedy
    assert (finding.start_ns, finding.end_ns, finding.gain_ns) == (0, 400, 250)
    ops[0]["pool_start_ns"], ops[0]["pool_wait_ns"], ops[1]["pool_start_ns"] = 0, 250, 4
    assert found(ops, wall_ns=1_000)[0].text == (
        "Of their time, nodes spent 25 % waiting for threads of the session's pool."
    )
    ops[0]["pool_start_ns"], ops[0]["pool_wait_ns"] = 250, 0
    assert found(ops, wall_ns=1_000)[0].text == (
        "Of their time, nodes spent 25 % starting threads of the session's pool."
    )
    ops[0]["pool_start_ns"], ops[0]["pool_wait_ns"] = 50, 90
    assert not any("pool" in finding.text for finding in found(ops, wall_ns=1_000))


def test_the_node_with_the_most_memory_is_named():
    ops = [
        node(1, "up", "MatMul", 0, 300_000, in_use_bytes=3_000_000_000),
        node(2, "act", "Gelu", 400_000, 300_000, in_use_bytes=2_000_000_000),
        node(3, "down", "Add", 700_000, 300_000),
    ]
    for each in ops[:2]:
        each["arena_held_bytes"] = 4_000_000_000
    finding = found(ops)[-1]
    assert finding.text == (
        "ONNX Runtime used the most memory in node `up` (MatMul): 3.00 GB of 4.00 GB that its "
        "allocator held."
    )
    assert (finding.start_ns, finding.end_ns, finding.gain_ns) == (0, 300_000, 0)
    ops[0]["in_use_bytes"] = ops[1]["in_use_bytes"] = 30_000_000
    assert not any("memory" in finding.text for finding in found(ops))


def test_learned_nodes_do_not_count():
    ops = [
        node(1, "up", "MatMul", 0, 300_000),
        node(2, "act", "Gelu", 400_000, 100_000),
        node(2, "act", "Gelu", 500_000, 9_000_000, status="learned"),
    ]
    (finding,) = found(ops)
    assert "MatMul nodes account for 75 % of the time of all nodes (300" in finding.text


def sampled(recorded, runs, *, wall_ns):
    """Runs of 100 us, or 1 ms with all their nodes; MatMul takes half of the time."""
    ops, start = [], 0
    for number in range(runs):
        state, took = ("recorded", 1_000_000) if number < recorded else ("not recorded", 100_000)
        args = {"nodes": state, "call_ns": took, "unprofiled_ns": 100_000}
        more = {"category": "session", "op_type": "run", "session": 7, "args": args}
        ops.append(op(100 + number, "run", start, start + took, **more))
        if number < recorded:
            ops.append(node(1000 + number, "up", "MatMul", start, 500_000, parent=100 + number))
            act = node(2000 + number, "act", "Gelu", start + 500_000, 400_000, parent=100 + number)
            ops.append(act)
            for row in ops[-2:]:
                row["node_index"] = row["op_id"] // 1000
        start += took
    stretch = [{"session": 7, "stretch": 1.0, "recorded_stretch": 10.0}]
    return found(ops, wall_ns=wall_ns, onnxruntime_stretch=stretch)


def test_the_gain_is_that_of_all_runs_of_which_some_were_recorded():
    (operator,) = sampled(6, 200, wall_ns=30_000_000)
    # Half of the 100 us that each of 200 runs takes, not the 3 ms that six slow ones took.
    assert operator.gain_ns == 10_000_000
    assert operator.text == (
        "MatMul nodes account for 56 % of the time of all nodes (3.00 ms in 6 executions, recorded "
        "in 6 of 200 runs; about 10.0 ms in all runs without the profiler)."
    )
    # The threshold refers to the same gain.
    assert sampled(6, 200, wall_ns=500_000_000)
    assert not sampled(6, 200, wall_ns=501_000_000)
    (of_all,) = sampled(200, 200, wall_ns=300_000_000)
    assert "runs" not in of_all.text


def generation(recorded, steps=31, **prefill):
    """A prefill of 10 ms, of which Softplus has 80 %, and decode steps of 1 ms, of which 5 %."""
    ops, start = [], 0
    for number in range(1 + steps):
        tokens, took, softplus = (1, 1_000_000, 0.05) if number else (64, 10_000_000, 0.8)
        state = "recorded" if number < recorded else "not recorded"
        args = {"nodes": state, "call_ns": took, "batch": 1, "tokens": tokens,
                "past_tokens": number and 63 + number}  # fmt: skip
        args |= {} if number else prefill
        ops.append(op(100 + number, "run", start, start + took, category="session", op_type="run",
                      session=7, args=args))  # fmt: skip
        if state == "recorded":
            part = int(took * softplus)
            times = (("act", "Softplus", start, part), ("up", "MatMul", start + part, took - part))
            for index, (name, kind, begin, length) in enumerate(times):
                made = node(1000 + 2 * number + index, name, kind, begin, length,
                            parent=100 + number)  # fmt: skip
                ops.append(made | {"node_index": index})
        start += took
    return profile(ops, info={"wall_ns": start, "onnxruntime_sessions": {"7": "m"}})


@pytest.mark.parametrize("recorded", [2, 6, 32])
def test_each_shape_counts_with_all_its_runs(recorded):
    prof = generation(recorded)
    for frame in (prof.by_node(), prof.by_op_type()):
        times = frame.set_index("op_type")["unprofiled_host_ns"]
        # 8 of 10 ms in the prefill, and 5 % of 31 ms, not of the few recorded steps.
        assert times["Softplus"] == pytest.approx(9_550_000, abs=2)
        assert times["MatMul"] == pytest.approx(31_450_000, abs=2)
    (finding,) = findings(ProfileIndex(prof))
    assert "MatMul nodes account for 77 % of the time of all nodes" in finding.text
    assert finding.gain_ns == pytest.approx(31_450_000, abs=2)


def test_runs_of_a_shape_of_which_none_was_recorded_count_as_the_others():
    prof = generation(1)
    times = prof.by_node().set_index("name")["unprofiled_host_ns"]
    assert times.sum() == pytest.approx(41_000_000, abs=2)
    assert times["act"] == pytest.approx(0.8 * 41_000_000, abs=2)


def test_a_slowest_node_says_of_how_many_runs_it_is_known():
    ops = [
        node(1, "up", "MatMul", 0, 300_000),
        node(1, "up", "MatMul", 400_000, 100_000),
        node(2, "down", "MatMul", 600_000, 10_000),
        node(3, "act", "Gelu", 800_000, 50_000),
    ]
    for row, at in zip(ops, (1, 1, 2, 3), strict=True):
        row["node_index"] = at
    (finding,) = found(ops)
    assert "the slowest is `up` (200 \u00b5s, mean of 2 executions)" in finding.text
    args = [{"nodes": "recorded", "call_ns": 1000}] + 9 * [{"nodes": "not recorded",
                                                            "call_ns": 1000}]  # fmt: skip
    runs = [op(100 + i, "run", 1000 * i, 1000 * i + 1000, category="session", op_type="run",
               session=7, args=each) for i, each in enumerate(args)]  # fmt: skip
    nodes = [node(1, "up", "MatMul", 0, 500, parent=100), node(2, "down", "MatMul", 500, 100,
             parent=100), node(3, "act", "Gelu", 600, 50, parent=100)]  # fmt: skip
    (finding,) = found([*runs, *nodes], wall_ns=10_000)
    assert "the slowest is `up` (about 5.00 \u00b5s of it, from 1 of 10 runs)" in finding.text


def test_recording_costs_a_long_run_no_more_than_a_short_one():
    """Each run executes the same nodes, each of which takes a time to record."""
    info = {"onnxruntime_stretch": [{"session": 7, "stretch": 3.0, "unprofiled_ns": 100_000}]}
    calls = np.array([300_000, 10_000_000, 150_000])
    assert without_profiling(info, 7, calls).tolist() == [100_000, 9_800_000, 50_000]
    assert without_profiling({}, 7, calls) is None


def test_runs_that_were_not_measured_without_the_profiler_count_as_recorded():
    def rows(known):
        args = [{"nodes": "recorded"}, {"nodes": "not recorded"}, {"nodes": "not recorded"}]
        if known:
            args[0] |= {"call_ns": 1_000_000}
        ops = [
            op(i + 1, "run", i * 2_000_000, i * 2_000_000 + (1_000_000 if i == 0 else 250_000),
               category="session", op_type="run", session=7, args=each)
            for i, each in enumerate(args)
        ]  # fmt: skip
        return [
            *ops,
            node(10, "up", "MatMul", 0, 800_000, parent=1),
            node(11, "act", "Gelu", 800_000, 100_000, parent=1),
        ]

    slow = [{"session": 7, "stretch": 1.0, "recorded_stretch": 4.0}]
    for known in (False, True):
        (finding,) = found(rows(known), onnxruntime_stretch=slow)
        # 80 % of three runs of 250 us each.
        assert finding.gain_ns == 600_000


def test_a_gain_without_the_profiler_is_not_reduced_by_what_profiling_added():
    ops = [node(1, "up", "MatMul", 0, 900_000), node(2, "act", "Gelu", 900_000, 100_000)]
    for added in ({}, {"added_ns": {"total": 500_000, "error": 9}}):
        (finding,) = found(ops, wall_ns=1_000_000, **added)
        assert finding.gain_ns == 900_000
