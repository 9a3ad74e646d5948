"""Nodes identified by the launch sequence of their run, on constructed tables."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.analysis.onnx.recorded_runs import node_events
from epprof_nb.recording.onnxruntime import choice_of_runs, run_log
from epprof_nb.recording.onnxruntime.choice_of_runs import RunHistory
from tests.helpers.logged_runs import NODES, SPACING, WORK, Recording, nodes_of, states, taught


@pytest.fixture(autouse=True)
def log():
    run_log.begin_recording()
    yield
    run_log.begin_recording()


def test_a_run_with_the_same_launches_has_the_same_nodes():
    history, recording = taught()
    run = recording.run(history, recorded=False)
    assert states(recording) == ["recorded", "learned"]
    assert nodes_of(recording, run) == ["relu", "matmul", "matmul", "sigmoid"]


def test_rows_of_identified_nodes():
    history, recording = taught()
    run = recording.run(history, recorded=False, thread=5)
    found, _ = recording.identified()
    frame = found.ops.to_frame()
    added = frame[frame["status"] == "learned"]
    execute = added[added["name"] == "Execute"]
    nodes = added[added["category"] == "node"]
    assert execute["parent_op_id"].tolist() == [run]
    assert (execute["start_ns"].item(), execute["end_ns"].item()) == (1000, 1900)
    assert set(nodes["parent_op_id"]) == set(execute.index)
    assert nodes["op_type"].tolist() == list(NODES)
    assert nodes["node_index"].tolist() == [0, 1, 2, 3]
    assert set(nodes["run_id"]) == {1}
    assert set(nodes["session"]) == {7}
    assert set(nodes["thread_id"]) == {5}
    assert set(nodes["provider"]) == {"CUDA"}
    assert set(nodes["output_shapes"]) == {"float[2,4]"}
    assert nodes["input_shapes"].isna().all()
    assert set(nodes["source"]) == {"onnxruntime"}
    # The span of the API calls. Reshape made none, so it is empty at the end of the node before it.
    assert nodes["start_ns"].tolist() == [1010, 1110, 1230, 1310]
    assert nodes["end_ns"].tolist() == [1030, 1230, 1230, 1330]
    assert (nodes["duration_ns"] == nodes["end_ns"] - nodes["start_ns"]).all()
    assert frame.index.is_unique
    assert frame["start_ns"].is_monotonic_increasing
    assert found.is_learned.sum() == len(WORK)


@pytest.mark.parametrize(
    "work",
    [
        WORK[:-1],
        WORK[1:],
        (*WORK, ("sigmoid", 3)),
        (WORK[1], WORK[0], *WORK[2:]),
        (*WORK[:-1], ("tanh", 3)),
        (),
    ],
)
def test_a_run_with_other_launches_has_no_nodes(work):
    history, recording = taught()
    run = recording.run(history, recorded=False, work=work)
    assert states(recording)[1] == ("mismatched" if work else "not recorded")
    assert set(nodes_of(recording, run)) <= {"model_run"}
    assert not recording.identified()[0].is_learned.any()


@pytest.mark.parametrize(
    "change", [{"grid_x": 5}, {"grid_z": 2}, {"block_y": 2}, {"graph_node_id": 3}]
)
def test_grids_blocks_and_graphs_are_compared(change):
    history, recording = taught()
    recording.run(history, recorded=False, **change)
    assert states(recording) == ["recorded", "mismatched"]


@pytest.mark.parametrize(("size", "state"), [(64, "learned"), (64 + 2**32, "mismatched")])
def test_bytes_are_compared(size, state):
    history, recording = RunHistory(), Recording()
    work = (("copy", 0), *WORK)
    recording.run(history, recorded=True, work=work)
    recording.run(history, recorded=False, work=work)
    recording.work[len(work)]["bytes"] = size
    assert states(recording) == ["recorded", state]


def test_launches_of_another_thread_are_not_identified():
    history, recording = taught()
    recording.run(history, recorded=False)
    recording.work[-1]["thread_id"] = 9
    assert states(recording) == ["recorded", "mismatched"]


def test_launches_outside_of_nodes_stay_with_the_run():
    history, recording = RunHistory(), Recording()
    work = (("copy", None), *WORK)
    recording.run(history, recorded=True, work=work)
    run = recording.run(history, recorded=False, work=work)
    assert nodes_of(recording, run) == ["model_run", "relu", "matmul", "matmul", "sigmoid"]


def test_a_run_that_ends_after_the_recording_is_neither_learned_nor_mismatched():
    history, recording = taught()
    recording.run(history, recorded=False)
    recording.run(history, recorded=False, work=WORK[:2])  # its last records are missing
    found, _ = recording.identified(stopped_ns=2 * SPACING + 500)
    known = found.ops.to_frame()["args"].dropna()
    assert [args["nodes"] for args in known] == ["recorded", "learned", None]
    assert node_events(found.ops, np.flatnonzero(found.ops.names("op_type").equals("run"))) == [
        "recorded", "learned", None,
    ]  # fmt: skip


def test_a_run_that_is_open_at_the_end_has_no_state():
    history, recording = taught()
    recording.run(history, recorded=False)
    recording.ops[-1]["status"] = "open"
    found, _ = recording.identified()
    assert [args["nodes"] for args in found.ops.to_frame()["args"].dropna()] == ["recorded"]


def test_launches_are_compared_in_the_order_of_their_calls():
    history, recording = taught()
    recording.run(history, recorded=False)
    recording.work[-1]["start_ns"] -= 150  # on another stream
    assert states(recording) == ["recorded", "learned"]


def test_failed_runs_teach_nothing_and_are_not_identified():
    history, recording = RunHistory(), Recording()
    recording.run(history, recorded=True, failed=True)
    recording.run(history, recorded=False)
    assert states(recording) == ["recorded", "mismatched"]
    recording.run(history, recorded=True)
    recording.run(history, recorded=False, failed=True)
    recording.run(history, recorded=False)
    assert states(recording)[2:] == ["recorded", "mismatched", "learned"]


def test_nodes_whose_shapes_vary_are_identified_without_shapes():
    """As those of bound inputs, whose sizes are unknown and need not change the launches."""
    history, recording = taught()
    recording.run(history, recorded=True, rows=3)
    run = recording.run(history, recorded=False)
    assert states(recording) == ["recorded", "recorded", "learned"]
    assert nodes_of(recording, run) == ["relu", "matmul", "matmul", "sigmoid"]
    frame = recording.identified()[0].ops.to_frame()
    shapes = frame.query("category == 'node'").groupby("status", observed=True)["output_shapes"]
    assert shapes.nunique()["learned"] == 0
    # In further recordings, too.
    run_log.begin_recording()
    later = Recording()
    later.run(history, recorded=False)
    assert states(later) == ["learned"]


def test_equal_launches_of_different_nodes_are_not_identified():
    """Two recorded runs with one sequence and different nodes do not identify a third run."""
    history, recording = taught()
    recording.run(history, recorded=True, nodes=("Relu", "MatMul", "Reshape", "Tanh"))
    recording.run(history, recorded=False)
    assert states(recording) == ["recorded", "recorded", "mismatched"]
    assert history.must_record(first=False)


def test_nodes_inside_nodes_are_not_learned():
    history, recording = taught()
    recording.ops[-1]["parent_op_id"] = recording.ops[-2]["op_id"]
    recording.run(history, recorded=False)
    assert states(recording) == ["recorded", "mismatched"]


def test_sequences_outlive_the_recording_and_alternate():
    history, recording = taught()
    other = (*WORK, ("sigmoid", 3))
    recording.run(history, recorded=True, work=other)
    recording.identified()
    run_log.begin_recording()
    later = Recording()
    runs = [later.run(history, recorded=False, work=w) for w in (WORK, other, WORK[:2], other)]
    assert states(later) == ["learned", "learned", "mismatched", "learned"]
    assert nodes_of(later, runs[1])[-2:] == ["sigmoid", "sigmoid"]


def test_a_recording_uses_all_its_sequences_and_the_history_keeps_the_last():
    history, recording = RunHistory(), Recording()
    works = [WORK + WORK[:1] * extra for extra in range(choice_of_runs.MAX_SEQUENCES + 3)]
    for work in works:
        recording.run(history, recorded=True, work=work)
    for work in works:
        recording.run(history, recorded=False, work=work)
    assert states(recording) == ["recorded"] * len(works) + ["learned"] * len(works)
    run_log.begin_recording()
    later = Recording()
    for work in works:
        later.run(history, recorded=False, work=work)
    assert states(later) == ["mismatched"] * 3 + ["learned"] * choice_of_runs.MAX_SEQUENCES


def test_sequences_are_bounded_in_number_and_memory(monkeypatch):
    history = RunHistory()
    recording = Recording()
    for extra in range(choice_of_runs.MAX_SEQUENCES + 3):
        recording.run(history, recorded=True, work=WORK + WORK[:1] * extra)
    recording.identified()
    assert len(history.sequences) == choice_of_runs.MAX_SEQUENCES
    launches = 1000
    long, recording = RunHistory(), Recording()
    # About as many launches per node as in an exported transformer.
    recording.run(long, recorded=True, work=WORK * (launches // len(WORK)))
    recording.identified()
    assert long.nbytes <= 64 * launches
    monkeypatch.setattr(choice_of_runs, "MAX_BYTES", long.nbytes + history.nbytes // 2)
    long.used = 1
    recording.run(long, recorded=True, work=WORK)
    recording.identified()
    assert history.sequences == {}
    assert history.must_record(first=False)
    assert len(long.sequences) == 2


def test_runs_that_were_not_logged_are_left_alone():
    _, recording = taught()
    run_log.begin_recording()
    assert recording.identified()[0] is None


def test_runs_of_any_size_are_compared_by_kind_and_name():
    history, recording = RunHistory(any_size=True), Recording()
    recording.run(history, recorded=True)
    recording.run(history, recorded=True, grid_x=9, block_x=64)
    run = recording.run(history, recorded=False, grid_x=20)
    recording.run(history, recorded=False, grid_x=20, work=WORK[:-1])
    recording.run(history, recorded=False, grid_x=20, work=(*WORK[:-1], ("tanh", 3)))
    recording.run(history, recorded=False, grid_x=20, work=(WORK[1], WORK[0], *WORK[2:]))
    assert states(recording) == ["recorded", "recorded", "learned", *["mismatched"] * 3]
    assert nodes_of(recording, run) == ["relu", "matmul", "matmul", "sigmoid"]
    frame = recording.identified()[0].ops.to_frame()
    learned = frame[frame["status"] == "learned"]
    assert learned["output_shapes"].isna().all()  # not known of other sizes
    assert set(learned["provider"].dropna()) == {"CUDA"}
    run_log.begin_recording()
    later = Recording()
    later.run(history, recorded=False, grid_x=30)
    assert states(later) == ["learned"]
    assert history.nbytes <= 64 * len(WORK) + 256


def test_one_recorded_size_does_not_teach_other_sizes():
    history, recording = RunHistory(any_size=True), Recording()
    recording.run(history, recorded=True)
    recording.run(history, recorded=False)
    recording.run(history, recorded=False, grid_x=20)
    assert states(recording) == ["recorded", "learned", "mismatched"]
    recording.run(history, recorded=True, grid_x=9)
    assert states(recording) == ["recorded", "learned", "learned", "recorded"]


def test_sizes_with_other_nodes_teach_nothing():
    """The first node launched the kernel of the second one: names alone do not tell them apart."""
    history, recording = RunHistory(any_size=True), Recording()
    work = (("gemm", 1), ("gemm", 1), ("gemm", 3))
    recording.run(history, recorded=True, work=work)
    recording.run(history, recorded=True, work=(("gemm", 1), ("gemm", 3), ("gemm", 3)), grid_x=9)
    recording.run(history, recorded=False, work=work, grid_x=20)
    recording.run(history, recorded=False, work=work)
    assert states(recording) == ["recorded", "recorded", "mismatched", "mismatched"]
    assert history.must_record(first=False)


def test_names_that_do_not_tell_the_nodes_apart_teach_nothing():
    """A gemm more in one MatMul, and one less in the next: the names would be the same."""
    history, recording = RunHistory(any_size=True), Recording()
    nodes = ("MatMul", "MatMul", "Relu", "Relu")
    work = (("gemm", 0), ("gemm", 0), ("gemm", 1))
    for size in (1, 2):
        recording.run(history, recorded=True, nodes=nodes, work=work, grid_x=size)
    recording.run(history, recorded=False, nodes=nodes, work=work, grid_x=3)
    assert states(recording) == ["recorded", "recorded", "mismatched"]
    assert history.must_record(first=False)


@pytest.mark.parametrize("nodes", [("Neg", "Neg"), ("Abs", "Neg")])
def test_nodes_whose_data_may_be_empty_teach_nothing(nodes):
    """Each launches the kernel if its data is not empty, which was so for the first one only."""
    history, recording = RunHistory(), Recording()
    for _ in range(2):
        first = recording.run(history, recorded=True, nodes=nodes, work=(("same", 0),))
        last = next(row for row in recording.ops if row["op_id"] == first + 3)
        last["output_shapes"] = "float[0,4]"
    recording.run(history, recorded=False, work=(("same", 1),))
    assert states(recording) == ["recorded", "recorded", "mismatched"]
    assert history.must_record(first=False)


def test_nodes_of_one_operator_that_share_their_launches_in_two_ways_teach_nothing():
    history, recording = RunHistory(), Recording()
    for _ in range(2):
        recording.run(history, recorded=True, nodes=("Neg", "Neg"), work=(("same", 0),))
    recording.run(history, recorded=False, work=(("same", 1),))
    assert states(recording) == ["recorded", "recorded", "mismatched"]


@pytest.mark.parametrize(
    ("provider", "shape"), [("CPUExecutionProvider", "float[0,4]"), ("CUDA", "float[10,4]")]
)
def test_nodes_that_never_launch_do_no_harm(provider, shape):
    history, recording = RunHistory(), Recording()
    first = recording.run(history, recorded=True)
    reshape = next(row for row in recording.ops if row["op_id"] == first + 4)
    reshape |= {"provider": provider, "output_shapes": shape}
    recording.run(history, recorded=False)
    assert states(recording) == ["recorded", "learned"]


def with_ranges():
    """Runs in which MatMul opens a range around its two launches."""
    history, recording = RunHistory(), Recording()
    first = recording.run(history, recorded=True)
    recording.open_range(first, (1, 2), start=105, end=240)
    run = recording.run(history, recorded=False)
    return history, recording, run


def test_a_range_that_a_library_opens_in_a_node_is_no_subgraph():
    history, recording, run = with_ranges()
    opened = recording.open_range(run, (1, 2), start=105, end=240)
    assert states(recording) == ["recorded", "learned"]
    assert history.may_learn
    assert nodes_of(recording, run) == ["relu", "cub::scan", "cub::scan", "sigmoid"]
    frame = recording.identified()[0].ops.to_frame()
    matmul = frame[(frame["status"] == "learned") & (frame["op_type"] == "MatMul")]
    assert frame.at[opened, "parent_op_id"] == matmul.index.item()
    # The node lasts as long as the range in it.
    assert (matmul["start_ns"].item(), matmul["end_ns"].item()) == (1105, 1240)
    assert recording.identified()[0].is_learned.sum() == len(WORK)


def test_ranges_in_ranges_of_a_node():
    _, recording, run = with_ranges()
    outer = recording.open_range(run, (1, 2), start=105, end=240)
    inner = recording.open_range(run, (2,), start=200, end=230, parent=outer, number=51)
    frame = recording.identified()[0].ops.to_frame()
    assert frame.at[inner, "parent_op_id"] == outer
    assert frame["name"][frame.at[outer, "parent_op_id"]] == "matmul"


def test_a_range_around_several_nodes_stays_in_the_run():
    _, recording, run = with_ranges()
    opened = recording.open_range(run, (0, 1), start=5, end=195)
    assert nodes_of(recording, run) == ["relu", "matmul", "matmul", "sigmoid"]
    frame = recording.identified()[0].ops.to_frame()
    assert frame.at[opened, "parent_op_id"] == run
