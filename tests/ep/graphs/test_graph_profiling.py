"""Graphs in profiles: each activity of a replay belongs to its run and to its node."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import epprof_nb
from tests.ep.sessions import OURS, model
from tests.ort import models
from tests.ort.rows import nested_in_time, nodes, runs

pytestmark = pytest.mark.usefixtures("installed")


def session(ep):
    return ep.session(models.chain(), enable_cuda_graph=True)


def profiled(made, feeds, times=3):
    with epprof_nb.profile() as prof:
        for _ in range(times):
            made.run(None, feeds)
    return prof


def in_replays(prof):
    """The activities of the nodes of graphs."""
    return prof.activities[prof.activities["graph_node_id"].notna()]


def captured_names(prof):
    """Name of the kernel and of the node that captured it, for each activity of a replay."""
    replayed = in_replays(prof)
    names = prof.ops.loc[replayed["capture_op_id"], "name"]
    return list(zip(replayed["name"], names, strict=True))


CHAIN = [("relu", "first"), ("matmul", "second"), ("sigmoid", "third")]


@pytest.fixture(params=["before", "in another profile", "inside"])
def replays(request, ep, x):
    """The profile of three replays, whose graph was captured at this time."""
    made = session(ep)
    if request.param == "before":
        made.run(None, {"x": x})
    elif request.param == "in another profile":
        profiled(made, {"x": x}, 1)
    return profiled(made, {"x": x}, 4 if request.param == "inside" else 3)


def test_each_kernel_of_a_replay_has_the_node_that_captured_it(replays):
    assert captured_names(replays) == CHAIN * 3
    captured = replays.ops.loc[replays.activities["capture_op_id"].dropna()]
    assert (captured["provider"] == OURS).all()
    assert set(captured["op_type"]) == {"Relu", "MatMul", "Sigmoid"}


def test_replays_are_executions_of_the_captured_nodes(ep, x):
    made = session(ep)
    made.run(None, {"x": x})
    nodes = profiled(made, {"x": x}).by_node().set_index("name").loc[["first", "second", "third"]]
    assert nodes["count"].tolist() == nodes["kernels"].tolist() == [3, 3, 3]
    assert nodes["recorded"].tolist() == [0, 0, 0]
    assert (nodes["mean_device_ns"] - nodes["device_ns"] / 3).abs().max() < 1


def test_each_kernel_of_a_replay_belongs_to_its_run(replays):
    replayed = in_replays(replays)
    assert (replayed["attribution"] == "stack").all()
    launched_by = replays.ops.loc[replayed["op_id"]]
    assert (launched_by["name"] == "model_run").all()
    assert (launched_by["run_id"].value_counts() == 3).all()
    assert launched_by["run_id"].nunique() == 3


class RunOptionsSeen:
    """ONNX Runtime's session, which notes the options of its runs."""

    def __init__(self, inner):
        self.inner, self.options = inner, []

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def run_with_iobinding(self, binding, options):
        self.options.append(options)
        return self.inner.run_with_iobinding(binding, options)


@pytest.mark.parametrize("own_options", [False, True])
@pytest.mark.parametrize("observer", ["installed first", "installed last"])
def test_replays_are_not_profiled_by_onnxruntime(ep, x, own_options, observer):
    """Two orders of the wrappers of a session."""
    if observer == "installed last":
        epprof_nb.onnxruntime.uninstall()
        ep.provider("host")
        epprof_nb.onnxruntime.install()
    made = session(ep)
    seen = made._sess = RunOptionsSeen(made._sess)
    options = onnxruntime.RunOptions() if own_options else None
    with epprof_nb.profile() as prof:
        for i in range(3):
            made.run(None, {"x": x + i}, options)
    assert [each is not None for each in seen.options] == [True, False, False]
    assert captured_names(prof) == CHAIN * 2
    assert len(runs(prof)) == 3
    made.run(None, {"x": x}, options)
    assert seen.options[-1] is options  # outside of a profile they are the user's


def test_replays_with_a_profile_file_are_profiled(ep, x, tmp_path):
    made = session(ep)
    seen = made._sess = RunOptionsSeen(made._sess)
    made.run(None, {"x": x})
    options = onnxruntime.RunOptions()
    epprof_nb.onnxruntime.enable_profiling(options, profile_file_prefix=str(tmp_path / "run"))
    with epprof_nb.profile():
        made.run(None, {"x": x}, options)
    assert seen.options[-1] is options
    assert list(tmp_path.glob("run*.json"))


def test_a_replay_is_one_launch(replays):
    calls = replays.api_calls[replays.api_calls["name"] == "hostGraphLaunch"]
    replayed = in_replays(replays)
    assert len(calls) == 3
    assert set(replayed["correlation_id"]) == set(calls["correlation_id"])


def test_a_replay_is_a_bracket_around_its_nodes(replays):
    whole = replays.activities[replays.activities["kind"] == "graph_launch"]
    assert list(whole["name"]) == ["graph 0"] * 3
    inside = in_replays(replays).groupby("correlation_id")
    for _, bracket in whole.iterrows():
        nodes_of = inside.get_group(bracket["correlation_id"])
        assert bracket["start_ns"] <= nodes_of["start_ns"].min()
        assert nodes_of["end_ns"].max() <= bracket["end_ns"]
        assert (nodes_of["stream_id"] == bracket["stream_id"]).all()
        assert (nodes_of["op_id"] == bracket["op_id"]).all()


def test_the_graph_has_a_row(replays):
    (graph,) = replays.graphs.reset_index().to_dict("records")
    replayed = in_replays(replays)
    assert graph["gpu_graph_id"] == 0
    assert graph["session"] == runs(replays)["session"].iloc[0]
    assert replays.ops.loc[graph["capture_op_id"], "name"] == "graph_capture"
    assert "made.run(None, feeds)" in graph["captured_in"] or "made.run" in graph["captured_in"]
    assert (graph["nodes"], graph["replays"]) == (3, 3)
    assert graph["device_ns"] == replayed["duration_ns"].sum()
    assert graph["launch_ns"] > 0
    spans = replayed.groupby("correlation_id").agg(
        start=("start_ns", "min"), end=("end_ns", "max"), busy=("duration_ns", "sum")
    )
    gaps = spans["end"] - spans["start"] - spans["busy"]
    assert graph["gap_ns"] == gaps.sum() // 3


def test_by_node_has_the_device_time_as_if_the_nodes_had_run(replays):
    table = replays.by_node().set_index("name")
    kernels = replays.activities[replays.activities["kind"] == "kernel"]
    assert set(table.index) == {"first", "second", "third"}
    assert table["device_ns"].sum() == kernels["duration_ns"].sum()
    assert table["kernels"].nunique() == 1


def test_by_node_has_replays_without_a_node_by_launch(replays):
    table = replays.by_node(attribution="launch").set_index("name")
    assert table.loc["(no node)", "device_ns"] == in_replays(replays)["duration_ns"].sum()


def test_ops_stay_nested(replays):
    assert nested_in_time(replays)


def test_the_capture_is_an_op_with_its_nodes(ep, x):
    prof = profiled(session(ep), {"x": x}, 1)
    (capture,) = prof.ops[prof.ops["name"] == "graph_capture"].index
    inside = nodes(prof)
    parents = prof.ops.loc[inside["parent_op_id"]]
    assert sum(op == capture or parent == capture for op, parent in
               zip(parents.index, parents["parent_op_id"], strict=True)) == 3  # fmt: skip
    # Two runs that warm up, and the capture, which is a run as well.
    assert sorted(inside["name"]) == sorted(["first", "second", "third"] * 3)
    kernels = prof.activities
    assert len(kernels) == 9
    assert (prof.ops.loc[kernels["op_id"], "category"] == "node").all()


def test_nodes_with_kernels_of_the_same_type_are_told_apart(ep):
    """Each node has a kernel of its own name, so that a wrong node cannot pass."""
    count = 12
    ops = [f"Step{i}" for i in range(count)]
    for i, op_type in enumerate(ops):
        exec(  # the name of the kernel is that of the function
            f"def step_{i}(ctx, x):\n    np.add(x, {i}, out=ctx.out(x.shape, x.dtype))",
            scope := {"np": np},
        )
        ep.kernel(op_type, domain="steps")(scope[f"step_{i}"])
    made_nodes = [
        helper.make_node(op_type, [f"v{i}"], [f"v{i + 1}"], name=f"node_{i}", domain="steps")
        for i, op_type in enumerate(ops)
    ]
    feeds = {"v0": np.zeros(3, np.float32)}
    made = ep.session(
        model(made_nodes, feeds, {f"v{count}": np.float32}, domains=["steps"]),
        enable_cuda_graph=True,
    )
    prof = profiled(made, feeds)
    want = [(f"step_{i}", f"node_{i}") for i in range(count)]
    assert captured_names(prof) == want * 2
    np.testing.assert_array_equal(made.run(None, feeds)[0], np.full(3, sum(range(count))))


def test_graphs_of_several_threads_and_ids_are_told_apart(ep, x):
    made = session(ep)

    def work(number):
        for times in range(10):
            options = onnxruntime.RunOptions()
            options.add_run_config_entry("gpu_graph_id", str(times % 2))
            made.run(None, {"x": x * number}, options)

    with epprof_nb.profile() as prof, ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    graphs = prof.graphs
    assert sorted(graphs["gpu_graph_id"]) == [0] * (len(graphs) // 2) + [1] * (len(graphs) // 2)
    replayed = in_replays(prof)
    names = captured_names(prof)
    assert set(names) == set(CHAIN)
    assert len(names) == 3 * graphs["replays"].sum()
    assert (prof.ops.loc[replayed["op_id"], "thread_id"].to_numpy()
            == replayed["thread_id"].to_numpy()).all()  # fmt: skip


def test_profiles_begin_and_end_between_capture_and_replay(ep, x):
    made = session(ep)
    first = profiled(made, {"x": x}, 1)
    made.run(None, {"x": x})
    second = profiled(made, {"x": x}, 1)
    made.release_captured_graph(0)
    assert first.graphs["replays"].tolist() == [0]
    assert captured_names(second) == CHAIN
    third = profiled(made, {"x": x}, 2)
    assert third.graphs.index[0] != second.graphs.index[0]
    assert captured_names(second) == CHAIN


def test_a_capture_is_one_run_with_its_graph(ep, x):
    made = session(ep)
    with epprof_nb.profile() as prof:
        for rows in (1, 2, 3, 2):
            made.run(None, {"x": x[:1].repeat(rows, axis=0)})
    graphs = prof.graphs.reset_index()
    assert graphs["replays"].tolist() == [0, 1, 0]
    assert graphs["nodes"].tolist() == [3, 3, 3]
    assert graphs.loc[[0, 2], "device_ns"].tolist() == [0, 0]
    of_replays = ["device_ns_per_replay", "launch_ns", "gap_ns"]
    assert graphs.loc[[0, 2], of_replays].isna().all(axis=None)
    assert graphs.loc[1, of_replays].notna().all()
    assert (prof.ops.loc[graphs["capture_op_id"], "name"] == "graph_capture").all()
    by_run = prof.by_run()
    ids = graphs["graph_id"].tolist()
    assert by_run["graph_id"].tolist() == [*ids, ids[1]]
    # Two runs that warm up, and the capture.
    assert by_run["nodes"].tolist() == [9, 9, 9, 3]
    assert by_run["node_events"].tolist() == ["recorded"] * 3 + ["captured"]
    assert nested_in_time(prof)


def test_eager_and_replayed_profiles_have_the_same_nodes(ep, x):
    eager = profiled(ep.session(models.chain()), {"x": x}).by_node()
    made = session(ep)
    made.run(None, {"x": x})
    replayed = profiled(made, {"x": x}).by_node()
    columns = ["name", "op_type", "provider", "kernels"]
    assert (
        eager[columns].sort_values("name").to_dict("list")
        == replayed[columns].sort_values("name").to_dict("list")
    )  # fmt: skip


def test_paths_lead_from_the_run_over_the_captured_nodes_to_the_kernels(replays):
    paths = replays.by_path()
    nodes_of_replays = paths[(paths["level"] == "node") & (paths["parent"].map(
        paths["op_type"]).astype(object) == "run")]  # fmt: skip
    assert sorted(nodes_of_replays["name"]) == ["first", "second", "third"]
    assert (nodes_of_replays["count"] == 3).all()
    assert nodes_of_replays["device_ns"].sum() == in_replays(replays)["duration_ns"].sum()
    kernels = paths[paths["level"] == "kernel"]
    below = dict(zip(kernels["parent"].map(paths["name"]), kernels["name"], strict=True))
    assert below == {"first": "relu", "second": "matmul", "third": "sigmoid"}
    assert (
        paths["self_device_ns"].sum()
        == replays.activities.query("kind == 'kernel'")["duration_ns"].sum()
    )


def test_a_session_that_is_profiled_as_a_whole_has_each_run_once(ep, x, tmp_path):
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "session")
    made = ep.session(models.chain(), enable_cuda_graph=True, sess_options=options)
    made.run(None, {"x": x})
    prof = profiled(made, {"x": x})
    assert captured_names(prof) == CHAIN * 3
    assert len(runs(prof)) == 3
    assert in_replays(prof)["op_id"].nunique() == 3
    made.end_profiling()
    assert captured_names(profiled(made, {"x": x})) == CHAIN * 3
