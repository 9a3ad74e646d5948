"""Runs of ONNX Runtime that were not recorded node by node, in replays."""

import pytest

from tests.helpers.planted import info
from tests.helpers.tiny import call, kernel, op, profile

SHORT, LONG = 100, 1_000


def run(number, start, took, *, nodes="recorded", shapes=1, session=1):
    """A run of which the node ``a`` takes 70 %, and ``b`` 20 %."""
    of_run = {"session": session, "run_id": number}
    args = {"nodes": nodes, "call_ns": took, "shapes": shapes}
    ops = [
        op(10 * number, "model_run", start, start + took, op_type="run", category="session",
           args=args, **of_run)
    ]  # fmt: skip
    if nodes != "recorded":
        return ops
    parts = (("a", "MatMul", 0.0, 0.7), ("b", "Relu", 0.7, 0.9))
    return ops + [
        op(10 * number + 1 + i, name, start + round(begin * took), start + round(end * took),
           10 * number, op_type=op_type, category="node", node_index=i, **of_run)
        for i, (name, op_type, begin, end) in enumerate(parts)
    ]  # fmt: skip


def runs(*each):
    ops, start = [], 0
    for number, (took, more) in enumerate(each, 1):
        ops += run(number, start, took, **more)
        start += took
    return profile(ops, info=info(start))


RECORDED, OTHER = {}, {"nodes": "not recorded"}


def test_nodes_take_the_same_part_of_runs_that_were_not_recorded():
    prof = runs((SHORT, RECORDED), *[(SHORT, OTHER)] * 9)
    found = prof.what_if({"a": 0, "Relu": 0.5, "MatMul": 0.5}).set_index("changed")
    assert found["saving_ns"].to_dict() == {
        "a": 700,
        "Relu": 100,
        "MatMul": 350,
        "all of them": 800,
    }
    saving, low, high = found.loc["a", ["saving_ns", "saving_low_ns", "saving_high_ns"]]
    assert saving == low == high  # all runs took as long
    by_op = prof.critical_path(by="op").set_index("name")["saving_ns"]
    assert by_op.to_dict() == {"model_run": 1_000, "a": 700, "b": 200}
    assert prof.what_if({"model_run": 0.5})["saving_ns"].item() == 500
    assert prof.what_if({"a": 0}, on="device")["saving_ns"].item() == 0


def test_each_run_has_the_part_of_runs_of_its_shapes():
    prof = runs((SHORT, RECORDED), (LONG, {"shapes": 2}), *[(LONG, OTHER | {"shapes": 2})] * 5,
                *[(SHORT, OTHER)] * 10)  # fmt: skip
    assert prof.what_if({"a": 0})["saving_ns"].item() == 0.7 * (6 * LONG + 11 * SHORT)


def test_what_recording_adds_may_be_of_the_node_or_of_others():
    prof = runs((SHORT, RECORDED), *[(SHORT - 20, OTHER)] * 9)
    row = prof.what_if({"a": 0}).iloc[0]
    assert row["saving_ns"] == 70 + 9 * 56
    assert (row["saving_low_ns"], row["saving_high_ns"]) == (70 + 9 * 50, 70 + 9 * 70)


def test_the_part_of_other_shapes_is_not_known():
    prof = runs((SHORT, RECORDED), (LONG, OTHER | {"shapes": 2}))
    row = prof.what_if({"a": 0}).iloc[0]
    assert (row["saving_low_ns"], row["saving_ns"], row["saving_high_ns"]) == (70, 770, 1_070)


def with_kernels(*of_runs):
    """Runs that wait for their kernels: each has an op, a name and a duration."""
    ops, kernels, calls, at = [], [], [], 0
    for number, (more, launched) in enumerate(of_runs, 1):
        took = sum(ns for *_, ns in launched) + 10
        ops += run(number, at, took, **more)
        begin = at + 10
        for op_id, name, ns in launched:
            ids = {"correlation_id": len(calls), "stream_id": 7}
            kernels.append(kernel(begin, begin + ns, op_id, name=name, **ids))
            calls.append(call(at, at + 1, correlation_id=len(calls), op_id=op_id))
            begin += ns
        wait = {"correlation_id": len(calls), "name": "cudaDeviceSynchronize"}
        calls.append(call(at + 2, begin, op_id=10 * number, **wait))
        at = begin
    return profile(ops, kernels, calls, info=info(at))


@pytest.mark.parametrize(("name", "bounds"), [("gemm", (60, 60, 60)), ("other", (0, 30, 60))])
def test_kernels_of_runs_that_match_no_recorded_one(name, bounds):
    """The products of a run are of `a`; of a kernel of another name, nothing says it."""
    prof = with_kernels(
        (RECORDED, [(11, "gemm", 50), (12, "relu", 50)]),
        (OTHER, [(20, name, 60), (20, "relu", 40)]),
    )
    row = prof.what_if({"a": 0}, on="device").iloc[0]
    found = [row[f"saving_{part}ns"] - 50 for part in ("low_", "", "high_")]
    assert found == list(bounds)
    by_op = prof.critical_path(by="op").set_index("name")["saving_ns"]
    assert by_op["a"] == row["saving_ns"]


def test_runs_of_many_shapes_are_replayed():
    shapes = [{"shapes": number} for number in range(300)]
    pairs = [((SHORT + number, each), (SHORT + number, each | OTHER))
             for number, each in enumerate(shapes)]  # fmt: skip
    prof = runs(*[each for pair in pairs for each in pair])
    expected = 0.7 * 2 * sum(SHORT + number for number in range(300))
    assert prof.what_if({"a": 0})["saving_ns"].item() == pytest.approx(expected, rel=0.01)
    by_op = prof.critical_path(by="op").set_index("name")["saving_ns"]
    assert by_op["a"] == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("launching", [0, 30])
def test_learned_nodes_have_rows_for_the_time_in_which_they_launch(launching):
    """In each run, ``a`` takes 70 ns: of a learned one, the rest belongs to the run."""
    learned = run(2, SHORT, SHORT, nodes="learned")
    node = {"op_type": "MatMul", "category": "node", "node_index": 0, "status": "learned"}
    of_run = {"session": 1, "run_id": 2}
    around = {"op_type": "event", "category": "session"}
    learned.append(op(22, "Execute", SHORT, 2 * SHORT, 20, **around, **of_run))
    learned.append(op(21, "a", SHORT, SHORT + launching, 22, **node, **of_run))
    prof = profile(run(1, 0, SHORT) + learned, info=info(2 * SHORT))
    assert prof.what_if({"a": 0})["saving_ns"].item() == 2 * 70


def test_an_unknown_name_says_how_to_record_nodes():
    prof = runs((SHORT, OTHER), (SHORT, OTHER))
    with pytest.raises(ValueError, match="ort_nodes='every' records the nodes"):
        prof.what_if({"MatMul": 0})
    with pytest.raises(ValueError, match=r"called 'Conv'\. Name an op"):
        runs((SHORT, RECORDED)).what_if({"Conv": 0})
