"""Notes on ONNX Runtime's sessions, on constructed tables."""

from __future__ import annotations

from epprof_nb.analysis.onnx.profiler_slowdown import (
    by_session,
    largest_slowdown,
    slowdown_of,
    slowdown_of_nodes,
)
from epprof_nb.data.schema import ACTIVITIES, OPS
from epprof_nb.recording.onnxruntime import run_log, sessions
from epprof_nb.recording.onnxruntime.choice_of_runs import RunHistory
from epprof_nb.recording.onnxruntime.run_log import LoggedRun
from epprof_nb.recording.onnxruntime.sessions import ObservedSession
from epprof_nb.recording.onnxruntime.sessions_in_info import session_info, session_notes
from tests.helpers.tiny import kernel, op, table

SESSION = 1 << 40  # no session of other tests has this number


def event(op_id, category, op_type, **more):
    return op(op_id, "n", 0, 10, category=category, op_type=op_type, session=SESSION) | more


def capture_notes(*work):
    ops = table(OPS, [
        event(1, "node", "Relu", status="earlier"), event(2, "session", "run", run_id=0),
        event(3, "session", "run", run_id=1), op(4, "mine", 0, 10),
    ])  # fmt: skip
    activities = table(ACTIVITIES, work)
    return [n for n in session_notes(ops, activities, session_info(ops)) if "captured" in n]


def replayed(op_id, capture_op_id=None):
    return kernel(1, 2, op_id, graph_id=5, graph_node_id=6, capture_op_id=capture_op_id)


def test_kernels_replayed_from_a_recorded_capture_need_no_note():
    assert capture_notes(replayed(2, 1), kernel(1, 2, 2), replayed(4)) == []


def test_kernels_replayed_from_an_unrecorded_capture_are_counted():
    (note,) = capture_notes(
        replayed(2, 1), replayed(2), replayed(3, 2), replayed(4), kernel(1, 2, 2)
    )
    assert note.startswith("An ONNX Runtime session: 2 of 3 kernels, copies and memsets")
    assert "capture all its graphs (each gpu_graph_id) inside one profile" in note


FIRST = 1_000_000
"""Number of a session that no other test of this process creates."""


def overhead_notes(*ratios):
    """Notes on sessions 1, 2, ... whose runs were slowed by these ratios."""
    info = {
        "onnxruntime_sessions": {str(FIRST + i): f"model {i + 1}" for i in range(len(ratios))},
        "onnxruntime_stretch": [
            {"session": FIRST + i, "runs": 4, "compared": 4, "stretch": ratio,
             "unprofiled_ns": 1_000_000, "profiled_ns": int(ratio * 1_000_000)}
            for i, ratio in enumerate(ratios)
        ],
    }  # fmt: skip
    return session_notes(table(OPS, []), table(ACTIVITIES, []), info)


def test_sessions_with_overhead_share_one_note():
    (note,) = overhead_notes(1.2, 1.5, 1.01, 1.3)
    assert note.startswith(
        "model 2, and 2 others (model 4 1.30x, model 1 1.20x): profiling slowed "
        "these runs by 1.50x (median of the ratios to unprofiled runs with the same input shapes). "
    )
    assert "model 3" not in note
    assert overhead_notes(1.01) == []


def test_of_many_sessions_with_overhead_the_worst_are_named():
    (note,) = overhead_notes(*[1.2 + i / 100 for i in range(9)])
    assert "(model 8 1.27x, model 7 1.26x, model 6 1.25x, 5 more)" in note


def test_sessions_of_one_name_are_told_apart_by_their_numbers():
    names = ("lm", "lm", "other")
    info = {
        "onnxruntime_sessions": {str(FIRST + i): name for i, name in enumerate(names)},
        "onnxruntime_stretch": [
            {"session": number, "runs": 4, "compared": 4, "stretch": ratio,
             "unprofiled_ns": 1_000_000, "profiled_ns": int(ratio * 1_000_000)}
            for number, ratio in ((FIRST + 1, 3.0), (FIRST + 2, 2.0))
        ],
    }  # fmt: skip
    (note,) = session_notes(table(OPS, []), table(ACTIVITIES, []), info)
    assert note.startswith(f"lm (session {FIRST + 1}), and 1 other (other 2.00x):")


def unknown_overhead(recorded, runs):
    """Notes on a session whose inputs have other shapes in each run, as when a model decodes."""
    info = {
        "onnxruntime_sessions": {str(FIRST): "lm"},
        "onnxruntime_stretch": [{"session": FIRST, "runs": runs, "compared": 0}],
        "onnxruntime_runs": [
            {"session": FIRST, "runs": runs, "recorded": recorded, "learned": 0, "mismatched": 0,
             "not_recorded": runs - recorded}
        ],
    }  # fmt: skip
    notes = session_notes(table(OPS, []), table(ACTIVITIES, []), info)
    return [note for note in notes if "unknown factor" in note]


def test_an_unknown_overhead_is_named_where_most_runs_have_it():
    assert unknown_overhead(8, 200) == []
    assert unknown_overhead(0, 200) == []
    (note,) = unknown_overhead(200, 200)
    assert note.startswith("lm: recording the nodes slowed these runs down by an unknown factor")


def always_recorded(*ops, **state):
    number = 4_000_000_001
    given = ObservedSession("net.onnx", number=number, **state)
    session = type("Session", (), {})()
    sessions.register(session, given)
    runs = [event(i, "session", "run", run_id=i) | {"session": number} for i in range(1, 5)]
    every = [{"source": "onnxruntime"} | row for row in (*runs, *ops)]
    rows = table(OPS, [row | {"session": number} for row in every])
    notes = session_notes(rows, table(ACTIVITIES, []), session_info(rows))
    return [note for note in notes if "all its runs were recorded" in note]


def test_sessions_whose_runs_are_all_recorded_say_why(monkeypatch):
    monkeypatch.setattr(sessions, "_mode", "auto")
    nested = [event(9, "node", "If"), event(10, "session", "event", parent_op_id=9)]
    cuda = {"providers": ("CUDAExecutionProvider", "CPUExecutionProvider")}
    assert always_recorded() == []
    assert always_recorded(**cuda) == []
    assert always_recorded(*nested) == []
    opened = {"source": "nvtx"}  # by a library that the node calls
    assert always_recorded(nested[0], nested[1] | opened, **cuda) == []
    (note,) = always_recorded(*nested, **cuda)
    assert "net.onnx" in note
    assert "subgraphs" in note
    history = RunHistory(any_size=True)
    monkeypatch.setattr(run_log, "_log", [LoggedRun(i, history, True, False) for i in range(1, 5)])
    assert always_recorded(**cuda) == []
    history.may_learn = False
    assert "do not prove which node" in always_recorded(**cuda)[0]
    assert always_recorded() == []
    assert "ORT_PARALLEL" in always_recorded(uses_pool_threads=True, **cuda)[0]
    assert "whole session" in always_recorded(session_profile=True)[0]


def test_the_slowdown_of_few_recorded_runs_is_not_that_of_all():
    """Only the first of ten runs has a shape that ran before the profile, and it was recorded."""
    args = {"nodes": "recorded", "call_ns": 50, "unprofiled_ns": 10}
    others = [
        event(i, "session", "run", args={"nodes": "not recorded", "call_ns": 10})
        for i in range(2, 11)
    ]
    ops = table(OPS, [event(1, "session", "run", args=args), *others])
    (entry,) = by_session(ops)
    assert "stretch" not in entry
    assert entry["recorded_stretch"] == 5.0
    info = {"onnxruntime_stretch": [entry]}
    assert largest_slowdown(info) is None
    assert slowdown_of(info, SESSION) == 1.0
    assert slowdown_of_nodes(info, SESSION) == 5.0
    (entry,) = by_session(table(OPS, [event(1, "session", "run", args=args), others[0]]))
    assert entry["stretch"] == 5.0


def test_runs_of_several_shapes_are_compared_each_with_its_own():
    # Two of three are four times as long; the medians of both times differ by two.
    runs = [
        event(i, "session", "run", args={"call_ns": profiled, "unprofiled_ns": unprofiled})
        for i, (profiled, unprofiled) in enumerate([(4, 1), (40, 10), (20, 20)], 1)
    ]
    (entry,) = by_session(table(OPS, runs))
    assert entry["compared"] == 3
    assert entry["stretch"] == 4.0


def notes_of_runs(nodes):
    args = {"nodes": nodes, "call_ns": 50, "unprofiled_ns": 10}
    given = event(1, "session", "run", run_id=1, args=args)
    ops = table(OPS, [given])
    info = session_info(ops)
    return largest_slowdown(info), session_notes(ops, table(ACTIVITIES, []), info)


def test_only_runs_recorded_node_by_node_are_slowed_by_that():
    slowdown, (note,) = notes_of_runs("recorded")
    assert slowdown == 5.0
    assert "Most of this is ONNX Runtime's own profiling" in note
    slowdown, notes = notes_of_runs("learned")
    assert slowdown == 5.0
    assert "profiling slowed these runs by 5.00x" in notes[-1]
    assert "Most of this" not in notes[-1]
    slowdown, notes = notes_of_runs("not recorded")
    assert slowdown is None
    assert not any("slowed" in note for note in notes)
    assert "The nodes of 0 of 1 run were recorded" in notes[0]


def test_the_note_on_sampled_runs_counts_the_shapes_without_a_recorded_one():
    def note(*shapes):
        runs = [
            event(i, "session", "run", run_id=i, args={
                "nodes": "not recorded" if i else "recorded", "call_ns": 10, "shapes": shape,
            })
            for i, shape in enumerate(shapes)
        ]  # fmt: skip
        ops = table(OPS, runs)
        (found,) = session_notes(ops, table(ACTIVITIES, []), session_info(ops))
        return found

    told = note(1, 2, 1, 2, 3)
    assert "The nodes of 1 of 5 runs were recorded" in told
    assert "no recorded run has 2 of its 3 shapes of inputs" in told
    assert "shapes of inputs" not in note(1, 1, 1)
