"""Nodes with kernels in Python, in profiles."""

from __future__ import annotations

import json

import numpy as np
import pytest

import epprof_nb
from tests.ep.sessions import CPU, OURS
from tests.ort import models
from tests.ort.rows import nested_in_time, nodes, path, runs

pytestmark = pytest.mark.usefixtures("installed")


def profiled(made, feeds, times=1):
    with epprof_nb.profile() as prof:
        for _ in range(times):
            made.run(None, feeds)
    return prof


def test_each_node_appears_once_with_its_kernel(ep, x):
    made = ep.session(models.chain())
    prof = profiled(made, {"x": x}, times=3)
    assert sorted(nodes(prof)["name"]) == sorted(["first", "second", "third"] * 3 + copies(prof))
    assert len(runs(prof)) == 3
    kernels = prof.activities[prof.activities["kind"] == "kernel"]
    assert len(kernels) == len(prof.activities) == 9
    assert (kernels["attribution"] == "stack").all()
    names = dict(zip(prof.ops.loc[kernels["op_id"], "name"], kernels["name"], strict=True))
    assert names == {"first": "relu", "second": "matmul", "third": "sigmoid"}
    table = prof.by_node().set_index("name")
    assert (table.loc[["first", "second", "third"], "provider"] == OURS).all()
    assert (table.loc[["first", "second", "third"], "kernels"] == 3).all()
    assert table.loc["first", "device_ns"] > 0
    assert nested_in_time(prof)


def copies(prof):
    return [n for n in nodes(prof)["name"] if n.startswith("Memcpy")]


def test_a_kernel_lies_within_its_node(ep, x):
    prof = profiled(ep.session(models.chain()), {"x": x})
    for _, kernel in prof.activities.iterrows():
        node = prof.ops.loc[kernel["op_id"]]
        assert node["start_ns"] <= kernel["start_ns"]
        assert kernel["end_ns"] <= node["end_ns"]


@pytest.mark.parametrize(
    ("serialized", "feeds", "inside"),
    [
        (models.branching(), {"flag": np.array(True)}, "then_add"),
        (models.looping(), {"times": np.array(3)}, "body_sigmoid"),
        (models.scanning(), {"start": np.zeros(4, np.float32)}, "body_add"),
    ],
    ids=["if", "loop", "scan"],
)
def test_nodes_of_subgraphs_are_nested(ep, x, serialized, feeds, inside):
    made = ep.session(serialized)
    prof = profiled(made, {"x": x, **feeds})
    found = nodes(prof)[nodes(prof)["name"] == inside]
    assert len(found)
    for op_id, node in found.iterrows():
        assert node["provider"] == OURS
        assert path(prof, op_id)[-3:-1] != []
        assert (prof.activities["op_id"] == op_id).sum() == 1


def test_the_loop_is_closed(ep, x):
    """The profile shows what fell back and its copies; the kernel removes both."""
    left = ep.session(models.chain(), only=["Relu", "Sigmoid"])
    prof = profiled(left, {"x": x})
    # ONNX Runtime 1.25 does not return the options of a plugin provider.
    wanted = [{"only": ["Relu", "Sigmoid"]}] if left.get_provider_options()[OURS] else []
    assert list(prof.info["onnxruntime_selected"].values()) == wanted
    table = prof.by_node().set_index("name")
    assert table.loc["second", "provider"] == CPU
    assert table.loc["second", "fell_back"]
    assert table.loc["second", "fallback_copies"] == 2
    assert table.loc["second", "fallback_bytes"] == 2 * x.nbytes
    table = profiled(ep.session(models.chain()), {"x": x}).by_node().set_index("name")
    assert not table["fell_back"].any()
    assert not table["fallback_copies"].any()


def test_copies_between_providers_are_activities_of_their_nodes(ep, x):
    prof = profiled(ep.session(models.chain(), only=["Relu", "Sigmoid"]), {"x": x})
    moved = prof.activities[prof.activities["kind"] == "memcpy"].set_index("copy_kind")
    assert sorted(moved.index) == ["DtoH", "HtoD"]
    assert (moved["bytes"] == x.nbytes).all()
    assert (moved["attribution"] == "stack").all()
    types = prof.ops.loc[moved["op_id"], "op_type"]
    assert dict(zip(moved.index, types, strict=True)) == {
        "DtoH": "MemcpyToHost", "HtoD": "MemcpyFromHost",
    }  # fmt: skip


def test_overlapping_runs_keep_their_nodes(ep, x):
    from concurrent.futures import ThreadPoolExecutor

    made = ep.session(models.chain())
    with epprof_nb.profile() as prof, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: made.run(None, {"x": x}), range(40)))
    per_run = nodes(prof).groupby("run_id")["name"].apply(set)
    assert len(per_run) == 40
    assert all({"first", "second", "third"} <= names for names in per_run)
    kernels = prof.activities
    assert (prof.ops.loc[kernels["op_id"], "thread_id"].to_numpy()
            == kernels["thread_id"].to_numpy()).all()  # fmt: skip


def test_onnxruntimes_own_json_has_the_nodes_and_kernels(ep, x, tmp_path):
    import onnxruntime

    made = ep.session(models.chain())
    run_options = onnxruntime.RunOptions()
    epprof_nb.onnxruntime.enable_profiling(run_options, profile_file_prefix=str(tmp_path / "run"))
    made.run(None, {"x": x}, run_options)
    (file,) = tmp_path.iterdir()
    events = json.loads(file.read_text())
    own = [e for e in events if e["cat"] == "Node" and e["args"].get("provider") == OURS]
    assert {e["args"]["op_name"] for e in own} >= {"Relu", "MatMul", "Sigmoid"}


def test_session_profiling_records_each_node_once(ep, x, tmp_path):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "session")
    made = ep.session(models.chain(), sess_options=options)
    prof = profiled(made, {"x": x})
    assert sorted(n for n in nodes(prof)["name"] if not n.startswith("Memcpy")) == [
        "first", "second", "third",
    ]  # fmt: skip
    made.end_profiling()


def test_a_failing_kernel_is_recorded_too(ep, x):
    @ep.kernel("Sigmoid")
    def broken(ctx, x):
        raise ValueError("no")

    made = ep.session(models.chain())
    with epprof_nb.profile() as prof, pytest.raises(Exception, match="ValueError: no"):
        made.run(None, {"x": x})
    assert "broken" in set(prof.activities["name"])
