"""Runs on ONNX Runtime's CUDA provider whose launches do not identify their nodes."""

import json
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper

import epprof_nb
from epprof_nb.data.ort_arguments import NODE_MEMORY, NODE_SIZES
from tests.gpu.cuda_provider import CUDA, LAUNCHES, ort, states
from tests.ort import models
from tests.ort.rows import nested_in_time, nodes, runs

pytestmark = pytest.mark.usefixtures("observed_sessions")


@pytest.fixture
def x():
    return np.random.default_rng(0).standard_normal((64, 4)).astype(np.float32)


def of_kind(prof, *kinds):
    return prof.activities[prof.activities["kind"].isin(kinds)]


def kernels_by_node(prof):
    """Number of kernels by the name of the op that launched them."""
    names = prof.ops["name"].reindex(of_kind(prof, "kernel")["op_id"])
    return Counter(names.astype(str))


def assert_all_work_belongs_to_runs(prof):
    work = of_kind(prof, *LAUNCHES)
    assert len(work)
    assert work["op_id"].notna().all()
    assert prof.ops["run_id"].reindex(work["op_id"]).notna().all()
    assert nested_in_time(prof)


@pytest.mark.parametrize(
    ("model", "feed", "name", "times"),
    [
        (models.looping(), {"times": np.array(7)}, "body_sigmoid", 7),
        (models.scanning(), {"start": np.zeros(4, np.float32)}, "body_relu", 64),
    ],
    ids=["Loop", "Scan"],
)
def test_each_pass_of_a_subgraph_has_its_nodes_and_kernels(x, model, feed, name, times):
    session = ort.InferenceSession(model, providers=CUDA)
    with epprof_nb.profile() as prof:
        for _ in range(5):
            session.run(None, {"x": x} | feed)
    print(states(prof), prof.info["notes"])
    assert states(prof) == {"recorded": 5}
    assert (nodes(prof)["name"] == name).sum() == 5 * times
    assert kernels_by_node(prof)[name] >= 5 * times
    assert_all_work_belongs_to_runs(prof)


def test_nodes_on_pool_threads_keep_their_kernels(x):
    options = ort.SessionOptions()
    options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
    options.inter_op_num_threads = 3
    session = ort.InferenceSession(models.wide(), options, providers=CUDA)
    with epprof_nb.profile() as prof:
        for _ in range(10):
            session.run(None, {"x": x})
    print(states(prof), prof.info["notes"], kernels_by_node(prof))
    assert states(prof) == {"recorded": 10}
    assert any("ORT_PARALLEL" in note for note in prof.info["notes"])
    found = kernels_by_node(prof)
    assert all(found[f"branch{i}"] == 10 for i in range(6)), found
    assert_all_work_belongs_to_runs(prof)


def test_asynchronous_runs_have_their_nodes_and_kernels(x):
    session = ort.InferenceSession(models.chain(), providers=CUDA)
    finished = threading.Semaphore(0)
    with epprof_nb.profile() as prof:
        for _ in range(10):
            session.run_async(None, {"x": x}, lambda *_: finished.release(), None)
            assert finished.acquire(timeout=60)
    print(states(prof), kernels_by_node(prof))
    assert states(prof) == {"recorded": 10}
    found = kernels_by_node(prof)
    assert found["first"] == found["third"] == 10
    assert found["second"] >= 10
    assert_all_work_belongs_to_runs(prof)


def convolution():
    """Three convolutions whose algorithm cuDNN chooses when the session first runs."""
    rng = np.random.default_rng(0)
    made, weights, last = [], [], "x"
    for i in range(3):
        values = rng.standard_normal((16, 16, 3, 3)).astype(np.float32)
        weights.append(numpy_helper.from_array(values, f"w{i}"))
        made.append(
            helper.make_node("Conv", [last, f"w{i}"], [f"c{i}"], name=f"conv{i}", pads=[1] * 4)
        )
        last = f"c{i}"
    shape = ("N", 16, "H", "W")
    ends = [models.value("x", shape)], [models.value(last, shape)]
    return models.serialized(helper.make_graph(made, "convolution", *ends, weights))


def test_a_search_for_algorithms_is_part_of_the_first_run():
    providers = [("CUDAExecutionProvider", {"cudnn_conv_algo_search": "EXHAUSTIVE"})]
    session = ort.InferenceSession(convolution(), providers=providers)
    feeds = [{"x": np.ones((1, 16, n, n), np.float32)} for n in (16, 32)]
    with epprof_nb.profile() as prof:
        for feed in feeds:
            for _ in range(10):
                session.run(None, feed)
    print(states(prof), prof.info["notes"], prof.by_run()[["node_events", "kernels"]])
    assert states(prof)["mismatched"] == 0
    assert states(prof)["learned"] >= 14
    by_run = prof.by_run()
    assert by_run["kernels"].iloc[0] >= by_run["kernels"].iloc[-1]
    found = kernels_by_node(prof)
    assert min(found[f"conv{i}"] for i in range(3)) > 0
    assert_all_work_belongs_to_runs(prof)


def test_runs_during_which_the_arena_grows():
    options = {"arena_extend_strategy": "kSameAsRequested"}
    session = ort.InferenceSession(
        models.chain(width=64), providers=[("CUDAExecutionProvider", options)]
    )
    with epprof_nb.profile() as prof:
        for rows in (32, 4096, 32, 65536, 32, 4096):
            for _ in range(4):
                session.run(None, {"x": np.ones((rows, 64), np.float32)})
    print(states(prof), prof.info["notes"])
    assert states(prof) == {"recorded": 6, "learned": 18}
    assert_all_work_belongs_to_runs(prof)
    kernels = prof.by_node().set_index("name")["kernels"]
    assert kernels["first"] == kernels["third"] == 24


def test_nodes_have_the_memory_of_their_allocators():
    session = ort.InferenceSession(models.chain(width=64), providers=CUDA)
    rows = (1024, 65536)
    with epprof_nb.profile(ort_nodes="every") as prof:
        for n in rows:
            session.run(None, {"x": np.ones((n, 64), np.float32)})
    found = nodes(prof)
    of_chain = found[found["name"].isin(["first", "second", "third"])]
    print(of_chain[["name", "provider", *NODE_SIZES, *NODE_MEMORY]].to_string())
    assert of_chain["output_bytes"].tolist() == [256 * n for n in rows for _ in range(3)]
    release = tuple(map(int, ort.__version__.split(".")[:2]))
    table = prof.by_node().set_index("name")
    print(table[[*NODE_SIZES, "in_use_bytes", "arena_held_delta_bytes"]].T.to_string())
    if release >= (1, 28):
        assert of_chain[list(NODE_MEMORY)].notna().all(axis=None)
        assert (of_chain["in_use_bytes"] <= of_chain["peak_bytes"]).all()
        # The input and the output of a node are in use at its end.
        assert table.at["third", "in_use_bytes"] >= 256 * rows[1]
        assert table.at["third", "in_use_bytes"] == of_chain["in_use_bytes"].iloc[-1]
        growth = of_chain.groupby("name")["arena_held_delta_bytes"].sum()
        assert table.at["first", "arena_held_delta_bytes"] == growth["first"] > 0
    print(prof.insights().to_string())


def test_a_whole_session_and_its_runs_have_files_with_kernels(x, tmp_path):
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "whole")
    session = ort.InferenceSession(models.chain(), options, providers=CUDA)
    of_run = ort.RunOptions()
    epprof_nb.onnxruntime.enable_profiling(of_run, profile_file_prefix=str(tmp_path / "run"))
    session.run(None, {"x": x})
    with epprof_nb.profile() as prof:
        for _ in range(3):
            session.run(None, {"x": x}, of_run)
    whole = json.loads(Path(session.end_profiling()).read_text())
    files = sorted(tmp_path.glob("run*.json"))
    print(len(files), prof.info["notes"])
    assert len(files) == 3
    assert states(prof) == {"recorded": 3}

    def launched_by(events):
        found = [e["args"] for e in events if e["cat"] == "Kernel"]
        return Counter(args["parent_name"] for args in found if args["grid_x"] != "-1")

    one = kernels_by_node(prof)
    for path in files:
        found = launched_by(json.loads(path.read_text()))
        print(found)
        assert {name: 3 * found[name] for name in ("first", "second", "third")} == {
            name: one[name] for name in ("first", "second", "third")
        }
    print(launched_by(whole))
    assert launched_by(whole)["first"] == 4
    assert len(runs(prof)) == 3
