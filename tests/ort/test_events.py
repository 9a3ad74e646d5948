"""Ops recorded by the observer in real sessions: their names, nesting and runs."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import epprof_nb
from epprof_nb.profiles import Profile
from epprof_nb.recording.session.session import start
from tests.helpers.threads import run_all
from tests.ort import models, search_models
from tests.ort.rows import nested_in_time, nodes, path, runs

EXECUTE = "SequentialExecutor::Execute"


def test_each_node_is_an_op_under_its_run_and_the_users_range(installed, x):
    session = installed.InferenceSession(models.chain())
    for _ in range(2):
        session.run(None, {"x": x})
    with epprof_nb.profile() as prof, epprof_nb.op("mine"):
        session.run(None, {"x": x})
    found = nodes(prof)
    assert found["name"].tolist() == ["first", "second", "third"]
    assert found["op_type"].tolist() == ["Relu", "MatMul", "Sigmoid"]
    assert set(found["provider"]) == {"CPUExecutionProvider"}
    assert found["node_index"].tolist() == [0, 1, 2]
    assert set(found["input_shapes"]) == {"float[2,4]"}
    assert set(found["output_shapes"]) == {"float[2,4]"}
    assert set(found["source"]) == {"onnxruntime"}
    assert set(found["status"]) == {"complete"}
    for op_id in found.index:
        assert path(prof, op_id)[:-1] == ["mine", "model_run", EXECUTE]
    assert (found["duration_ns"] > 0).all()
    assert nested_in_time(prof)
    other = [note for note in prof.info["notes"] if "profiling slowed these runs" not in note]
    assert not [note for note in other if "node" in note or "ONNX" in note]


def test_nodes_of_subgraphs_nest_under_their_node(installed, x):
    session = installed.InferenceSession(models.branching())
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x, "flag": np.array(True)})
    paths = {path(prof, i)[-1]: path(prof, i) for i in nodes(prof).index}
    outer = ["model_run", EXECUTE, "outer_if", EXECUTE]
    assert paths["then_add"] == [*outer, "then_add"]
    assert paths["inner_tanh"] == [*outer, "inner_if", EXECUTE, "inner_tanh"]
    assert "else_abs" not in paths
    assert "inner_neg" not in paths
    assert nested_in_time(prof)


@pytest.mark.parametrize(
    ("make", "feeds", "node", "body", "times"),
    [
        (models.looping, {"times": np.array(3)}, "loop", "body_sigmoid", 3),
        (models.scanning, {"start": np.zeros(4, np.float32)}, "scan", "body_add", 2),
    ],
)
def test_the_body_of_a_loop_runs_under_it_each_time(installed, x, make, feeds, node, body, times):
    session = installed.InferenceSession(make())
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x, **feeds})
    found = nodes(prof)
    bodies = found.index[found["name"] == body]
    assert len(bodies) == times
    for op_id in bodies:
        assert path(prof, op_id) == ["model_run", EXECUTE, node, EXECUTE, body]
    assert set(found["run_id"]) == {0}
    table = prof.by_node().set_index("name")
    assert table.at[body, "count"] == times
    assert table.at[body, "inside"] == node


def test_runs_keep_their_numbers_inside_repeats(installed, x):
    session = installed.InferenceSession(models.chain())
    recording = start()
    for _ in range(2):
        recording.mark_repeat()
        for _ in range(2):
            with epprof_nb.op("mine"):
                session.run(None, {"x": x})
    prof = Profile.from_data(recording.stop())
    assert runs(prof)["run_id"].tolist() == [0, 1, 2, 3]
    assert runs(prof)["repeat"].tolist() == [0, 0, 1, 1]
    assert nodes(prof)["repeat"].tolist() == [0] * 6 + [1] * 6
    ranges = prof.ops[prof.ops["op_type"] == "range"]
    assert ranges["repeat"].tolist() == [0, 0, 1, 1]
    assert ranges["run_id"].isna().all()


@pytest.mark.parametrize("kind", ["GreedySearch", "BeamSearch"])
def test_the_decoder_of_a_search_runs_under_it_for_each_token(installed, kind):
    session = installed.InferenceSession(search_models.searching(kind, length=6))
    with epprof_nb.profile() as prof:
        (sequences,) = session.run(None, {"input_ids": np.array([[1, 2]], np.int32)})
    assert sequences.shape[-1] == 6
    found = nodes(prof)
    decoder = found[found["name"] != "search"]
    assert len(decoder) == 4 * len(search_models.DECODER)  # two tokens of six were given
    for op_id in decoder.index:
        assert path(prof, op_id)[:-1] == ["model_run", EXECUTE, "search", EXECUTE]
    # Each token is an execution of its own, with all the decoder's nodes.
    by_token = decoder["name"].astype(str).groupby(decoder["parent_op_id"]).agg(set)
    assert by_token.tolist() == [set(search_models.DECODER)] * 4
    assert set(found["run_id"]) == {0}
    assert nested_in_time(prof)


@pytest.mark.parametrize("way", ["run", "run_async", "run_with_ort_values", "run_with_iobinding"])
@pytest.mark.parametrize("own_options", [False, True])
def test_every_way_to_run_is_seen(installed, x, way, own_options):
    session = installed.InferenceSession(models.chain())
    options = installed.RunOptions() if own_options else None
    # The callback of an asynchronous run comes before ONNX Runtime has ended the run's profile.
    for pause_s in (0.1, 1, 10) if way == "run_async" else (0,):
        with epprof_nb.profile() as prof:
            run_in_one_way(installed, session, x, way, options)
            time.sleep(pause_s)
        if len(nodes(prof)) == 3:
            break
    assert nodes(prof)["name"].tolist() == ["first", "second", "third"]
    assert len(runs(prof)) == 1
    assert set(nodes(prof)["run_id"]) == {0}


def run_in_one_way(ort, session, x, way, options):
    if way == "run":
        session.run(None, {"x": x}, options)
    elif way == "run_async":
        done = threading.Event()
        session.run_async(None, {"x": x}, lambda *_: done.set(), None, options)
        assert done.wait(120)
    elif way == "run_with_ort_values":
        session.run_with_ort_values(None, {"x": ort.OrtValue.ortvalue_from_numpy(x)}, options)
    else:
        binding = session.io_binding()
        binding.bind_cpu_input("x", x)
        binding.bind_output("t2")
        session.run_with_iobinding(binding, options)


@pytest.mark.parametrize("parallel", [False, True])
def test_overlapping_runs_have_exactly_their_own_nodes(installed, x, parallel):
    options = installed.SessionOptions()
    if parallel:
        options.execution_mode = installed.ExecutionMode.ORT_PARALLEL
        options.inter_op_num_threads = 3
    session = installed.InferenceSession(models.wide(), options)

    def work():
        for _ in range(25):
            session.run(None, {"x": x})

    with epprof_nb.profile() as prof:
        run_all(threading.Thread(target=work) for _ in range(4))
    found = nodes(prof)
    assert len(runs(prof)) == 100
    assert found["run_id"].notna().all()
    names = found.groupby("run_id")["name"].agg(lambda n: tuple(sorted(n)))
    assert set(names) == {(*sorted(f"branch{i}" for i in range(6)), "join")}
    assert (prof.by_run()["nodes"] == 7).all()
    assert nested_in_time(prof)


def test_two_sessions_are_told_apart(installed, x):
    a = installed.InferenceSession(models.chain())
    b = installed.InferenceSession(models.chain())
    with epprof_nb.profile() as prof:
        a.run(None, {"x": x})
        b.run(None, {"x": x})
        a.run(None, {"x": x})
    by_run = prof.by_run()
    first, second, third = by_run["session"]
    assert first == third != second
    assert set(prof.info["onnxruntime_sessions"]) == {str(first), str(second)}
    assert len(prof.by_node()) == 6
    assert prof.by_op_type().set_index("op_type").at["MatMul", "count"] == 3
    assert prof.by_op_type().set_index("op_type").at["MatMul", "nodes"] == 2


def test_session_profiling_gives_the_file_and_the_ops(installed, x, tmp_path):
    options = installed.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "whole")
    session = installed.InferenceSession(models.chain(), options)
    session.run(None, {"x": x})
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x})
        session.run(None, {"x": x})
    assert len(nodes(prof)) == 6
    assert sorted(nodes(prof)["run_id"].unique()) == [0, 1]
    assert session.end_profiling().startswith(str(tmp_path / "whole"))
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x})
    assert len(nodes(prof)) == 3


def test_a_run_that_fails_keeps_its_exception_and_its_events(installed, x):
    session = installed.InferenceSession(models.failing())
    with epprof_nb.profile() as prof:
        with pytest.raises(Exception, match="out of data bounds"):
            session.run(None, {"x": x, "i": np.array([9])})
        session.run(None, {"x": x, "i": np.array([0])})
    assert nodes(prof)["name"].tolist() == ["before", "gather"] * 2
    assert nodes(prof)["run_id"].tolist() == [0, 0, 1, 1]


def test_a_cancelled_run_leaves_nothing_open(installed, x):
    session = installed.InferenceSession(models.chain())
    options = installed.RunOptions()
    options.terminate = True
    with epprof_nb.profile() as prof:
        with pytest.raises(Exception, match="terminate"):
            session.run(None, {"x": x}, options)
        options.terminate = False
        session.run(None, {"x": x}, options)
    assert nodes(prof)["run_id"].tolist() == [1, 1, 1]
    assert runs(prof)["status"].tolist() == ["failed", "complete"]
    assert set(prof.ops["status"]) == {"complete", "failed"}


def test_a_model_without_nodes_has_a_run(installed):
    session = installed.InferenceSession(models.no_nodes())
    with epprof_nb.profile() as prof:
        session.run(None, {})
    assert len(runs(prof)) == 1
    assert nodes(prof).empty
    assert prof.by_node().empty
    assert prof.by_run()["nodes"].tolist() == [0]


HOSTILE = (
    'say "hi"', "two\nlines\ttab", "größe-層", "<script>alert(1)</script>", "nul-ish \\u0000",
)  # fmt: skip


def test_nodes_without_a_name_get_one_from_onnx_runtime(installed, x):
    session = installed.InferenceSession(models.chain(("", "", "")))
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x})
    assert nodes(prof)["name"].tolist() == ["Relu_0", "MatMul_1", "Sigmoid_2"]
    assert len(prof.by_node()) == 3


def test_hostile_node_names_come_through(installed, x, tmp_path):
    session = installed.InferenceSession(models.chain(HOSTILE))
    with epprof_nb.profile() as prof:
        session.run(None, {"x": x})
    assert nodes(prof)["name"].tolist() == list(HOSTILE)
    prof.save(tmp_path / "p.epprof")
    assert nodes(epprof_nb.load(tmp_path / "p.epprof"))["name"].tolist() == list(HOSTILE)
    prof.to_html(tmp_path / "p.html")
    assert "<script>alert(1)" not in (tmp_path / "p.html").read_text()


def test_empty_tables_keep_their_columns():
    with epprof_nb.profile() as prof:
        pass
    for frame in (prof.by_node(), prof.by_op_type(), prof.by_run()):
        assert frame.empty
        assert len(frame.columns) > 5
    assert str(prof.by_node()["count"].dtype) == "int64"
    assert str(prof.by_node()["session"].dtype) == "Int64"


def test_new_shapes_are_new_details_and_old_ones_stay(installed):
    session = installed.InferenceSession(models.chain())
    with epprof_nb.profile() as prof:
        for rows in (1, 2, 1, 3):
            session.run(None, {"x": np.zeros((rows, 4), np.float32)})
    first = nodes(prof)[nodes(prof)["name"] == "first"]
    assert first["input_shapes"].tolist() == [f"float[{n},4]" for n in (1, 2, 1, 3)]


def test_sessions_are_named_by_the_user_or_after_their_model(installed, x, tmp_path):
    path = tmp_path / "encoder.onnx"
    path.write_bytes(models.chain())
    options = installed.SessionOptions()
    options.logid = "my encoder"
    sessions = [
        installed.InferenceSession(path),
        installed.InferenceSession(models.chain()),
        installed.InferenceSession(path, options),
    ]
    with epprof_nb.profile() as prof:
        for session in sessions:
            session.run(None, {"x": x})
    names = list(prof.info["onnxruntime_sessions"].values())
    assert names == ["encoder.onnx", "chain", "my encoder"]
