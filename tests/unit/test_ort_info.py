"""What a profile's notes say of ONNX Runtime's sessions, on constructed tables."""

from __future__ import annotations

from epprof_nb.data.schema import ACTIVITIES, OPS
from epprof_nb.recorders.onnxruntime import info as ort_info
from tests.unit.tiny import kernel, op, table


def event(op_id, category, op_type, **more):
    return op(op_id, "n", 0, 10, category=category, op_type=op_type, session=71) | more


def told(*work):
    ops = table(OPS, [
        event(1, "node", "Relu", status="earlier"), event(2, "session", "run", run_id=0),
        event(3, "session", "run", run_id=1), op(4, "mine", 0, 10),
    ])  # fmt: skip
    activities = table(ACTIVITIES, work)
    return [n for n in ort_info.notes(ops, activities, ort_info.describe(ops)) if "captured" in n]


def replayed(op_id, capture_op_id=None):
    return kernel(1, 2, op_id, graph_id=5, graph_node_id=6, capture_op_id=capture_op_id)


def test_kernels_replayed_from_a_capture_that_was_seen_need_no_note():
    assert told(replayed(2, 1), kernel(1, 2, 2), replayed(4)) == []


def test_kernels_replayed_from_a_capture_that_was_not_seen_are_counted():
    (note,) = told(replayed(2, 1), replayed(2), replayed(3, 2), replayed(4), kernel(1, 2, 2))
    assert note.startswith("An ONNX Runtime session (session 71): 2 of 3 kernels, copies and sets")
    assert "capture all its graphs (each gpu_graph_id) inside one profile" in note


def stretched(*stretches):
    """What is told of sessions 1, 2, ... that were stretched so much."""
    info = {
        "onnxruntime_sessions": {str(i + 1): f"model {i + 1}" for i in range(len(stretches))},
        "onnxruntime_stretch": [
            {"session": i + 1, "runs": 4, "compared": 4, "stretch": stretch,
             "unprofiled_ns": 1_000_000, "profiled_ns": int(stretch * 1_000_000)}
            for i, stretch in enumerate(stretches)
        ],
    }  # fmt: skip
    return ort_info.notes(table(OPS, []), table(ACTIVITIES, []), info)


def test_sessions_that_were_stretched_share_one_note():
    (note,) = stretched(1.2, 1.5, 1.01, 1.3)
    assert note.startswith(
        "model 2 (session 2), and 2 others (session 4 1.30x, session 1 1.20x): being profiled "
        "stretched its runs 1.50x (1.00 ms -> 1.50 ms, medians). "
    )
    assert "session 3" not in note
    assert stretched(1.01) == []


def test_of_many_stretched_sessions_the_worst_are_named():
    (note,) = stretched(*[1.2 + i / 100 for i in range(9)])
    assert "(session 8 1.27x, session 7 1.26x, session 6 1.25x, 5 more)" in note
