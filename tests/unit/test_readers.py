"""Traces of other tools: right tables, honest notes, and bounded reading of damaged files."""

import gc
import gzip
import json
import os
import threading
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from tiny import activity, call, kernel, line, op, profile

import epprof_nb
from epprof_nb.cli import main
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.readers import byte_stream, json_events
from epprof_nb.readers.json_events import JsonEvents
from epprof_nb.testing import synthetic_profile
from tests.unit.test_columns import FRAMES

TRACES = Path(__file__).parents[1] / "data" / "traces"
KINETO, OLD_ORT, NEW_ORT, VIZTRACER = (
    next(TRACES.glob(name))
    for name in ("kineto_cpu*", "onnxruntime_1.30*", "onnxruntime_1.31*", "viztracer*")
)


@pytest.fixture
def read(tmp_path):
    def write_and_read(content, name="trace.json", **options):
        path = tmp_path / name
        if not isinstance(content, str | bytes):
            content = json.dumps(content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return epprof_nb.read_trace(path, **options)

    return write_and_read


def x(name, ts, dur, cat="cpu_op", pid=1, tid=2, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur,
            "args": args}  # fmt: skip


def kineto(*events, **top):
    return {"schemaVersion": 1, **top, "traceEvents": list(events)}


def notes(prof):
    return "\n".join(prof.info["notes"])


# Kineto


def test_a_trace_of_torch_has_its_operators_nested():
    prof = epprof_nb.read_trace(KINETO)
    events = json.loads(gzip.decompress(KINETO.read_bytes()))["traceEvents"]
    slices = [e for e in events if e.get("cat") in ("cpu_op", "user_annotation")]
    ops = prof.ops
    assert Counter(ops["name"]) == Counter(e["name"] for e in slices)
    assert ops["duration_ns"].sum() == sum(round(e["dur"] * 1000) for e in slices)
    named = ops.groupby("name", observed=True)
    assert set(ops.loc[named.get_group("aten::addmm")["parent_op_id"], "name"]) == {"aten::linear"}
    assert named.get_group("step")["parent_op_id"].isna().all()
    assert "shapes" in ops.loc[ops["name"] == "aten::addmm", "input_shapes"].iloc[0]
    assert ops["start_ns"].min() >= 0
    memory = [e for e in events if e.get("name") == "[memory]"]
    assert len(prof.memory) == len(memory) > 0
    sizes = prof.memory["bytes"] * np.where(prof.memory["operation"] == "release", -1, 1)
    assert sizes.sum() == sum(e["args"]["Bytes"] for e in memory)
    assert "events of phase 's': " in notes(prof)


def gpu_trace():
    gpu = {"device": 0, "context": 1, "stream": 7}
    return kineto(
        x("step", 0, 100, "user_annotation"),
        x("aten::mm", 10, 20),
        x("cudaLaunchKernel", 12, 3, "cuda_runtime", correlation=5),
        x("cuLaunchKernel", 13, 1, "cuda_driver", correlation=5),
        x("gemm", 40, 10.5, "kernel", 0, 7, correlation=5, grid=[1, 2, 3], block=[4, 5, 6], **gpu),
        x("cudaGraphLaunch", 50, 2, "cuda_runtime", correlation=6),
        x("g1", 60, 5, "kernel", 0, 7, correlation=6, **{"graph id": 3, "graph node id": 8, **gpu}),
        x("g2", 65, 5, "kernel", 0, 7, correlation=6, **{"graph id": 3, "graph node id": 9, **gpu}),
        x("Memcpy HtoD (Pageable -> Device)", 80, 2, "gpu_memcpy", 0, 7, bytes=64, **gpu),
        x("step", 40, 40, "gpu_user_annotation", 0, 7),
        deviceProperties=[{"id": 0, "name": "H200"}], baseTimeNanoseconds=10**18,
    )  # fmt: skip


def test_correlation_ids_join_activities_calls_and_ops(read):
    prof = read(gpu_trace())
    name = prof.ops["name"].to_dict()
    by = {row["name"]: row for row in prof.activities.to_dict("records")}
    assert name[by["gemm"]["op_id"]] == "aten::mm"
    assert by["gemm"]["duration_ns"] == 10_500
    assert [by["gemm"][f"grid_{a}"] for a in "xyz"] == [1, 2, 3]
    copy = by["Memcpy HtoD (Pageable -> Device)"]
    assert (copy["copy_kind"], copy["src_kind"], copy["bytes"]) == ("HtoD", "pageable", 64)
    assert pd.isna(copy["op_id"])
    assert prof.info["attribution"] == {"stack": 3, "cell": 0, "none": 1}
    assert prof.info["devices"] == [{"device_id": 0, "name": "H200", "kind": "cuda"}]
    assert prof.info["started_at_epoch_ns"] == 10**18
    assert "category 'gpu_user_annotation'" in notes(prof)


def test_kernels_of_a_graph_belong_to_its_launch(read):
    prof = read(gpu_trace())
    in_graph = prof.activities[prof.activities["graph_id"] == 3]
    assert set(prof.ops.loc[in_graph["op_id"], "name"]) == {"step"}
    assert in_graph["capture_op_id"].isna().all()
    (graph,) = prof.graphs.reset_index().to_dict("records")
    assert (graph["nodes"], graph["replays"], graph["device_ns"]) == (2, 1, 10_000)
    assert "2 activities belong to 1 launches of CUDA graphs" in notes(prof)


def device_work(path):
    """Events of device work of a Kineto trace, and the length of the union of their intervals."""
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    work = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    times = sorted((round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000)) for e in work)
    busy, until = 0, times[0][0]
    for start, end in times:
        busy += max(end - max(start, until), 0)
        until = max(until, end)
    return work, busy


def has_the_totals_of_the_json(prof, path):
    """The activities are those of the JSON, and so are their time and the busy time."""
    work, busy = device_work(path)
    acts = prof.activities
    acts = acts[acts["kind"] != "synchronization"]
    assert Counter(acts["name"]) == Counter(e["name"] for e in work)
    assert acts["duration_ns"].sum() == sum(round(e["dur"] * 1000) for e in work)
    row = prof.overlap().iloc[0]
    assert row["span_ns"] - row["idle_ns"] == pytest.approx(busy, abs=2 * len(work))
    return acts


def test_a_trace_of_training_steps_on_a_gpu_has_the_operators_of_their_kernels():
    path = next(TRACES.glob("kineto_cuda*"))
    prof = epprof_nb.read_trace(path)
    acts = has_the_totals_of_the_json(prof, path)
    assert Counter(acts["kind"]) == {"kernel": 186, "memset": 18, "memcpy": 9}
    assert acts["op_id"].notna().all()
    by_op = prof.by_op().set_index("name")
    assert by_op["self_device_ns"].sum() == acts["duration_ns"].sum()
    # Forward passes belong to the steps. Backward passes run on a thread of autograd.
    steps = by_op.filter(like="ProfilerStep", axis=0)
    assert len(steps) == 3
    backward = by_op.filter(like="autograd::engine::evaluate_function", axis=0)
    total = steps["kernels"].sum() + backward["kernels"].sum()
    assert total == (acts["kind"] == "kernel").sum()
    copies = acts[acts["kind"] == "memcpy"]
    assert Counter(copies["copy_kind"]) == {"HtoD": 3, "DtoH": 3, "DtoD": 3}
    assert set(copies.loc[copies["copy_kind"] == "HtoD", "src_kind"]) == {"pinned"}
    waits = prof.waits()
    assert waits.loc[waits["name"] == "aten::_local_scalar_dense", "waits"].item() == 3


def test_a_trace_of_cuda_graphs_has_the_launches_of_their_kernels():
    path = next(TRACES.glob("kineto_graphs*"))
    prof = epprof_nb.read_trace(path)
    acts = has_the_totals_of_the_json(prof, path)
    calls = prof.api_calls.set_index("correlation_id")["name"].astype(str)
    launched_by = acts["correlation_id"].map(calls)
    replayed = acts[launched_by == "cudaGraphLaunch"]
    assert len(replayed) == 60
    assert replayed["correlation_id"].nunique() == 5
    assert set(prof.ops.loc[replayed["op_id"], "name"]) == {"step"}
    assert "60 activities belong to 5 launches of CUDA graphs" in notes(prof)
    assert acts["op_id"].notna().all()
    assert "ids of CUDA graphs" in prof.graphs.attrs["note"]


def test_a_correlation_id_of_two_threads_joins_nothing(read):
    calls = [x("launch", 5, 1, "cuda_runtime", pid=pid, tid=pid, correlation=5) for pid in (1, 2)]
    work = x("k", 9, 1, "kernel", 0, 7, device=0, correlation=5)
    prof = read(kineto(x("a", 0, 10, tid=1), *calls, work))
    assert prof.activities["op_id"].isna().all()
    assert "1 activities have no op" in notes(prof)


def test_a_correlation_id_of_two_calls_in_turn_joins_nothing(read):
    prof = read(kineto(
        x("a", 0, 10), x("launch", 5, 1, "cuda_runtime", correlation=5),
        x("b", 20, 10), x("launch", 25, 1, "cuda_runtime", correlation=5),
        x("launch", 28, 1, "cuda_runtime", correlation=6),
        *(x("query", ts, 1, "cuda_runtime", correlation=0) for ts in (40, 42)),
        x("k1", 9, 1, "kernel", 0, 7, device=0, correlation=5),
        x("k2", 29, 1, "kernel", 0, 7, device=0, correlation=5),
        x("k3", 31, 1, "kernel", 0, 7, device=0, correlation=6),
    ))  # fmt: skip
    assert prof.activities["op_id"].isna().tolist() == [True, True, False]
    (note,) = prof.info["notes"]
    assert note.startswith("2 activities have no op: several calls")
    assert "their 1 correlation ids" in note


def test_threads_of_several_processes_stay_apart(read):
    prof = read(kineto(x("a", 0, 10, pid=1), x("b", 2, 3, pid=2), x("c", 4, 1, pid="p", tid="t")))
    assert prof.ops["thread_id"].nunique() == 3
    assert prof.ops["parent_op_id"].isna().all()
    assert "2 threads have made-up ids" in notes(prof)


# ONNX Runtime


@pytest.mark.parametrize("path", [OLD_ORT, NEW_ORT], ids=lambda path: path.name)
def test_profiles_of_onnxruntime_valid_or_not(path):
    prof = epprof_nb.read_trace(path)
    nodes = prof.ops[prof.ops["category"] == "node"]
    assert set(nodes["name"]) == {'layer0/"Mat\\Mul"', "Relu\n1"}
    assert Counter(nodes["op_type"]) == {"MatMul": 2, "Relu": 2}
    assert set(nodes["provider"]) == {"CPUExecutionProvider"}
    assert sorted(nodes["run_id"]) == [0, 0, 1, 1]
    assert prof.by_node().set_index("name").loc["Relu\n1", "count"] == 2
    assert len(prof.by_run()) == 2
    content = gzip.decompress(path.read_bytes())
    if path is OLD_ORT:
        with pytest.raises(json.JSONDecodeError):
            json.loads(content)
        assert "4 events were invalid JSON" in notes(prof)
    else:
        assert len(prof.ops) == len(json.loads(content))
        assert prof.info["notes"] == []
        assert nodes["output_bytes"].tolist() == [32] * 4
        # The first node of each run may have times of earlier runs.
        assert nodes["pool_wait_ns"].isna().tolist() == [True, False] * 2
        assert nodes["pool_wait_ns"].dropna().tolist() == [0] * 2
        assert nodes["in_use_delta_bytes"].tolist() == [256, 256, 0, 256]
        assert prof.by_node().set_index("name").loc["Relu\n1", "output_bytes"] == 64


def test_a_profile_of_the_cuda_provider_has_the_node_that_fell_back():
    path = next(TRACES.glob("onnxruntime_cuda*"))
    prof = epprof_nb.read_trace(path)
    events = json.loads(gzip.decompress(path.read_bytes()))
    assert len(prof.ops) == len(events)
    assert prof.ops["duration_ns"].sum() == 1000 * sum(event["dur"] for event in events)
    nodes = prof.by_node().set_index("name")
    assert nodes.loc["angle", "provider"] == "CPUExecutionProvider"
    assert nodes.index[nodes["fell_back"]].tolist() == ["angle"]
    # One copy to it and one back in each of the three runs.
    assert nodes.loc["angle", "fallback_copies"] == 6
    assert len(prof.by_run()) == 3


def test_nodes_of_a_profile_of_onnxruntime_have_findings(read):
    def event(kind, name, start, end, **args):
        return (
            f'{{"cat" : "{kind}","pid" :1,"tid" :1,"dur" :{end - start},"ts" :{start},"ph" : "X",'
            f'"name" :"{name}","args" : {json.dumps(args, separators=(",", " : "))}}}'
        )

    cpu, cuda = "CPUExecutionProvider", "CUDAExecutionProvider"
    events = [
        event("Node", "product_kernel_time", 10, 20, op_name="MatMul", provider=cuda),
        event("Node", "angle_kernel_time", 20, 90, op_name="Atan", provider=cpu),
        event("Session", "model_run", 0, 100),
    ]
    prof = read("[\n" + ",\n".join(events) + "\n]\n")
    assert len(prof.ops) == 3
    kinds = prof.insights().set_index("kind")
    assert "`angle` (Atan) ran on the CPU for 70.0 µs" in kinds.loc["cpu fallback", "text"]


@pytest.mark.parametrize("path", sorted(TRACES.glob("*.gz")), ids=lambda path: path.name)
def test_every_table_of_a_real_trace_can_be_made(path):
    prof = epprof_nb.read_trace(path)
    for name, make in FRAMES.items():
        if name != "by_op" and not name.startswith("compare"):
            make(prof)
    work = prof.activities["kind"].isin(["kernel", "memcpy", "memset"])
    device_ns = prof.activities.loc[work, "duration_ns"].sum()
    assert prof.by_op()["self_device_ns"].sum() == device_ns


# Chrome traces


def test_a_trace_of_viztracer_has_its_calls():
    prof = epprof_nb.read_trace(VIZTRACER)
    calls = prof.ops[prof.ops["name"].astype(str).str.contains("fibonacci")]
    assert len(calls) == 15
    parents = calls["parent_op_id"].map(prof.ops["name"].astype(str)).astype(str)
    assert parents.str.contains("fibonacci").sum() == 14


def test_a_trace_of_jax_has_its_steps_and_the_work_of_xla():
    path = TRACES / "jax_cpu_0.10.2.json.gz"
    prof = epprof_nb.read_trace(path)
    assert prof.info["notes"] == []
    ops = prof.ops
    steps = ops[ops["name"] == "step"]
    assert [args["step_num"] for args in steps["args"]] == ["0", "1", "2"]
    calls = ops[ops["name"].astype(str).str.startswith("PjitFunction")]
    assert set(calls["parent_op_id"]) <= {*steps.index, *calls.index}
    # Three fused operations run per call, on threads of XLA.
    fused = ops[ops["name"].isin(["ynn_fusion", "wrapped_tanh", "wrapped_reduce"])]
    assert len(fused) == 3 * len(steps)
    assert not set(fused["thread_id"]) & set(steps["thread_id"])
    # An independent sum over the JSON, whose times are decimal microseconds.
    events = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)["traceEvents"]
    slices = [event for event in events if event.get("ph") == "X"]
    assert len(ops) == len(slices)
    assert ops["duration_ns"].sum() == pytest.approx(
        float(sum(event["dur"] for event in slices) * 1000), abs=len(slices)
    )


def test_a_trace_of_jax_on_a_gpu_has_its_graphs_and_the_calls_that_launched_them():
    path = next(TRACES.glob("jax_cuda*"))
    prof = epprof_nb.read_trace(path)
    events = json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)["traceEvents"]
    slices = [event for event in events if event.get("ph") == "X"]
    (device,) = {e["pid"] for e in events if e.get("args", {}).get("name") == "/device:GPU:0"}
    work = [event for event in slices if event["pid"] == device]
    acts = prof.activities
    assert Counter(acts["name"]) == Counter(event["name"] for event in work)
    assert acts["duration_ns"].sum() == sum(round(event["dur"] * 1000) for event in work)
    kernels, copies = (acts[acts["kind"] == kind] for kind in ("kernel", "memcpy"))
    assert len(kernels) + len(copies) == len(acts) == len(work)
    assert set(copies["copy_kind"]) == {"HtoD", "DtoH"}
    assert copies["bytes"].tolist() == [2**18, 2**10] * 3
    # Each of three replays of one graph belongs to the op that launched it, in its step.
    assert prof.graphs[["nodes", "replays"]].to_numpy().tolist() == [[17, 3]]
    assert set(prof.ops.loc[kernels["op_id"], "name"]) == {"command_buffer::execute"}
    by_op = prof.by_op().set_index("name")
    assert by_op.loc["step", "kernels"] == len(kernels) == 51
    assert by_op.loc["step", "device_ns"] == kernels["duration_ns"].sum()
    # XLA copies on threads without ops.
    assert copies["op_id"].isna().all()
    launches = [e for e in slices if e["pid"] != device and "correlation_id" in e.get("args", ())]
    assert Counter(prof.api_calls["name"]) == Counter(event["name"] for event in launches)
    assert len(prof.ops) == len(slices) - len(work) - len(launches)


def test_tracks_of_an_xla_device_that_repeat_its_streams_are_skipped(read):
    def name(kind, pid, text, tid=None):
        return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": text}}

    prof = read({"traceEvents": [
        name("process_name", 2, "/device:GPU:1"), name("process_name", 9, "/host:CPU"),
        name("thread_name", 2, "Stream #15(MemcpyD2H)", 15), name("thread_name", 2, "Steps", 3),
        x("MemcpyD2H", 5, 2, pid=2, tid=15, context_id="$$1", correlation_id="7",
          memcpy_details="kind_src:device kind_dst:pinned size:64 dest:0 async:1"),
        x("0", 0, 9, pid=2, tid=3), x("PjitFunction", 0, 9, pid=9, tid=15),
        x("odd", 7, 1, pid=2, tid=15, kernel_details="regs:x grid:1,2"),
        x("MemcpyD2H", 1, 3, pid=9, tid=15, device_id="1", correlation_id="7"),
    ]})  # fmt: skip
    copy, odd = prof.activities.to_dict("records")
    assert (copy["kind"], copy["copy_kind"], copy["bytes"]) == ("memcpy", "DtoH", 64)
    assert (copy["src_kind"], copy["dst_kind"]) == ("device", "pinned")
    assert (copy["device_id"], copy["stream_id"], copy["correlation_id"]) == (1, 15, 7)
    assert odd["kind"] == "kernel"
    assert pd.isna(odd["grid_x"])
    assert prof.ops["name"].tolist() == ["PjitFunction"]
    assert copy["op_id"] == prof.ops.index[0]
    assert pd.isna(odd["op_id"])
    assert "of a device that repeat those of its streams: 1" in notes(prof)


def xla_events():
    names = [
        {"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "/device:GPU:0"}},
        {"ph": "M", "name": "thread_name", "pid": 2, "tid": 3, "args": {"name": "Stream #3"}},
    ]
    slices = [
        x("step", 0, 50, pid=9), x("cuLaunchKernel", 5, 2, pid=9, correlation_id=1),
        x("fusion", 10, 9, pid=2, tid=3, correlation_id=1), x("XLA Ops", 10, 9, pid=2, tid=4),
    ]  # fmt: skip
    return names, slices


@pytest.mark.parametrize("pack", [lambda text: text, gzip.compress])
def test_a_trace_that_names_its_devices_after_their_slices_is_read_the_same(read, pack):
    names, slices = xla_events()
    first = read(pack(json.dumps(names + slices).encode()))
    assert len(first.activities) == len(first.api_calls) == len(first.ops) == 1
    for order in (slices + names, [names[0], *slices, names[1]], slices[:3] + names + slices[3:]):
        prof = read(pack(json.dumps(order).encode()))
        for table in ("ops", "activities", "api_calls"):
            pd.testing.assert_frame_equal(getattr(prof, table), getattr(first, table))
        assert prof.info == first.info


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes of Unix")
def test_a_pipe_that_names_its_devices_after_their_slices_has_a_note(tmp_path):
    names, slices = xla_events()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(
        target=pipe.write_bytes, args=(json.dumps(slices + names).encode(),), daemon=True
    )
    writer.start()
    prof = epprof_nb.read_trace(pipe)
    writer.join()
    assert len(prof.activities) == 0
    assert "names its devices after their slices" in notes(prof)


def test_a_kernel_of_xla_whose_name_is_that_of_a_copy_is_a_kernel(read):
    of_kernel = {"kernel_details": "regs:16 grid:2,1,1 block:128,1,1"}
    prof = read({"traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 2, "args": {"name": "/device:GPU:0"}},
        {"ph": "M", "name": "thread_name", "pid": 2, "tid": 3, "args": {"name": "Stream #3"}},
        x("memcpy_async_kernel", 1, 1, pid=2, tid=3, **of_kernel),
        x("MemsetTensor", 3, 1, pid=2, tid=3, **of_kernel),
        x("Memset", 5, 1, pid=2, tid=3, memset_details="kind:device size:64"),
    ]})  # fmt: skip
    assert prof.activities["kind"].tolist() == ["kernel", "kernel", "memset"]


def test_begin_and_end_events_become_ops(read):
    events = [
        {"ph": "B", "name": "outer", "pid": 1, "tid": 1, "ts": 1},
        {"ph": "B", "name": "inner", "pid": 1, "tid": 1, "ts": 2, "args": {"layer": 3}},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 5},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 9},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 10},
        {"ph": "B", "name": "open", "pid": 1, "tid": 1, "ts": 11},
        {"ph": "C", "name": "counter", "pid": 1, "ts": 1, "args": {"a": 1}},
    ]
    prof = read(events)
    assert prof.ops["name"].tolist() == ["outer", "inner"]
    assert prof.ops["duration_ns"].tolist() == [8_000, 3_000]
    assert prof.ops["args"].tolist() == [None, {"layer": 3}]
    for skipped in (
        "Skipped events that end a slice that has not begun: 1.",
        "Skipped events that begin a slice that does not end: 1.",
        "Skipped events of phase 'C': 1.",
    ):
        assert skipped in prof.info["notes"]


# Columns that a Chrome trace of this package cannot hold.
LACKING = {
    "ops": {"category", "source", "provider", "node_index", "input_shapes", "output_shapes",
            "session", "run_id", "suspended_ns", "cell", "end_line"},
    "activities": {"context_id", "capture_op_id", "attribution", "thread_id", "copy_kind",
                   "src_kind", "dst_kind", "src_device_id", "dst_device_id", "registers_per_thread",
                   "static_shared_bytes", "dynamic_shared_bytes", "graph_id", "graph_node_id"},
    "api_calls": {"domain", "op_id", "captured"},
}  # fmt: skip


def several():
    return profile(
        ops=[line(1, 1, -1_500, 90_001, args={"layer": 3}), op(2, "f", 10, 60_000, 1, repeat=0),
             op(3, "often", 70_000, 80_000, 1, count=7, repeat=0)],
        activities=[
            kernel(70_123, 80_000, 2, correlation_id=5, grid_x=1, grid_y=2, grid_z=3, repeat=0),
            activity("memcpy", 80_000, 80_001, 1, bytes=4096, stream_id=13, device_id=1),
        ],
        api_calls=[call(20, 30, correlation_id=5)],
        info={"devices": [{"device_id": 0, "name": "H200", "kind": "cuda"}], "wall_ns": 90_001,
              "repeats": [[0, 95_000]]},
    )  # fmt: skip


@pytest.mark.parametrize("make", [several, lambda: synthetic_profile(2_000)])
@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_our_own_chrome_traces_give_the_same_tables(make, name, tmp_path):
    prof = make()
    prof.to_chrome(tmp_path / name)
    again = epprof_nb.read_trace(tmp_path / name)
    for table, lacking in LACKING.items():
        keys = ["start_ns", "end_ns", "op_id" if table == "ops" else "correlation_id"]
        left, right = (
            p.tables[table].to_frame().reset_index().sort_values(keys, ignore_index=True)
            for p in (prof, again)
        )
        for column in set(left) - lacking - {"index"}:
            a, b = (frame[column].astype(object).to_list() for frame in (left, right))
            assert [*map(repr, a)] == [*map(repr, b)], (table, column)
        # The threads of waits are known, as they have tracks of their own.
        for column in lacking - {"thread_id"}:
            known = right[column].dropna()
            assert not known.astype(bool).any(), column
    assert again.wall_ns == prof.wall_ns
    assert again.info.get("repeats") == prof.info.get("repeats")
    assert again.info["devices"] == prof.info["devices"]
    assert "Skipped" not in notes(again)


# Bad input

GOOD = kineto(*(x(f'op {i} \\" \u00fc', i * 10, 5) for i in range(50)))


def test_cut_json_keeps_what_is_complete(read):
    text = json.dumps(GOOD)
    for at in (len(text) // 2, len(text) - 1, len(text) - 3):
        prof = read(text[:at])
        assert len(prof.ops) == text[:at].count('"args": {}}')
        if at < len(text) - 1:
            assert "The end of the trace is missing: the file is cut off" in notes(prof)


def test_truncated_and_damaged_gz(read):
    rng = np.random.default_rng(0)
    events = [x(rng.bytes(20).hex(), i, 1) for i in range(3_000)]
    data = gzip.compress(json.dumps(kineto(*events)).encode())
    prof = read(data[: len(data) // 2], "t.json.gz")
    assert 500 < len(prof.ops) < 3_000
    assert "compressed data is truncated" in notes(prof)
    flipped = data[: len(data) // 2] + bytes(64) + data[len(data) // 2 + 64 :]
    assert "compressed data is damaged" in notes(read(flipped, "t.json.gz"))
    with pytest.raises(ProfileFileError, match="could not be read"):
        read(data[:12], "t.json.gz")
    double = gzip.compress(json.dumps(GOOD).encode()[:900]) + gzip.compress(
        json.dumps(GOOD).encode()[900:]
    )
    assert len(read(double).ops) == 50


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{}", b"no json", b'{"a": 1}', b"PK\x03\x04", b'"traceEvents": [', b"\x1f\x8b"),
        *(b'{"x": {"traceEvents": [{}]}}', b"\xff\xfe" * 9, b"[" * 99, b"[", b"[1, 2"),
    ],
)
def test_other_files_are_refused(read, content):
    with pytest.raises(ProfileFileError, match="could not be read"):
        read(content)


def test_invalid_times_and_events_are_skipped_and_counted(read):
    bad = ["NaN", "Infinity", "1e300", "-1e300", '"soon"', "null", "true", "[]"]
    events = [
        f'{{"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":1,"ts":{ts},"dur":1}}' for ts in bad
    ]
    events += ['{"ph":"X","cat":"cpu_op","name":"n","pid":1,"tid":1,"ts":1,"dur":-1}', "[1]", "{a}"]
    events += ['{"ph":"X","cat":"cpu_op","name":"good","pid":1,"tid":1,"ts":-7,"dur":2}']
    prof = read('{"schemaVersion":1,"traceEvents":[' + ",".join(events) + "]}")
    assert prof.ops["name"].tolist() == ["good"]
    assert "Skipped events without a valid time and duration: 9." in prof.info["notes"]
    assert "Skipped events that are no valid JSON objects: 2." in prof.info["notes"]


def test_totals_that_would_overflow_are_refused(read):
    longest = 2**53 // 1000
    with pytest.raises(ProfileFileError, match=r"ops.duration_ns exceeds 64 bits"):
        read(kineto(*(x("a", 0, longest) for _ in range(600))))


def test_times_that_no_recording_has_count_as_0(read):
    prof = read(kineto(x("a", 1, 2), x("b", 3, 2**50)))
    assert prof.ops["duration_ns"].tolist() == [2_000, 0]
    assert prof.info["notes"][-1].startswith("1 of 2 rows of ops have impossible numbers (")


def test_deep_nesting_skips_one_event(read):
    deep = '{"ph":"X","args":' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}"
    prof = read('{"schemaVersion":1,"traceEvents":[' + deep + "," + json.dumps(x("a", 1, 1)) + "]}")
    assert prof.ops["name"].tolist() == ["a"]
    assert "Skipped events that are no valid JSON objects: 1." in prof.info["notes"]


def test_huge_events_are_skipped_and_huge_names_cut(read, monkeypatch):
    monkeypatch.setattr(json_events, "MAX_EVENT_BYTES", 100_000)
    monkeypatch.setattr(byte_stream, "PIECE_BYTES", 10_000)
    prof = read(kineto(x("a", 1, 1), x("{[" * 100_000, 2, 1), x("c" * 50_000, 3, 1), x("d", 4, 1)))
    assert [name[0] for name in prof.ops["name"]] == ["a", "c", "d"]
    assert len(prof.ops["name"].iloc[1]) == 32_769
    assert "Skipped events larger than 64 MiB: 1." in prof.info["notes"]


def test_zip_bombs_and_too_many_events_are_refused(read):
    bomb = gzip.compress(b'{"schemaVersion":1,"traceEvents":[' + b" " * (100 * 2**20), 9)
    with pytest.raises(ProfileFileError, match="300 times their size"):
        read(bomb, "t.json.gz")
    with pytest.raises(ProfileFileError, match="larger max_bytes"):
        read(GOOD, max_bytes=1_000)


def test_duplicate_events_and_disorder_are_kept(read):
    prof = read(kineto(x("b", 5, 1), x("a", 1, 10), x("b", 5, 1)))
    assert prof.ops["name"].tolist() == ["a", "b", "b"]
    assert prof.ops["parent_op_id"].tolist() == [pd.NA, 1, 2]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('ab"\\{}[],:\n\u00fc', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('a"\\}', max_size=3), inner)
    ),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(st.sampled_from(["a", 'b"', "c\\"]), _JSON), max_size=6),
       st.integers(1, 40), st.booleans())  # fmt: skip
def test_events_are_found_wherever_the_pieces_end(events, size, as_object):
    whole = {"before": 'x"traceEvents": [', "traceEvents": events, "after": [{}]}
    text = json.dumps(whole if as_object else events).encode()
    pieces = (text[i : i + size] for i in range(0, len(text), size))
    stream = JsonEvents(pieces)
    assert [event for piece in stream for event in piece] == events
    assert stream.complete
    assert (stream.invalid, stream.oversized) == (0, 0)
    if as_object:
        assert stream.metadata == {k: v for k, v in whole.items() if k != "traceEvents"}


# The command


@pytest.mark.parametrize("name", ["out.epprof", "out.html", "out.json", "out.json.gz"])
def test_traces_are_converted(tmp_path, name):
    out = tmp_path / name
    run = CliRunner().invoke(main, ["convert", str(KINETO), str(out)])
    assert run.exit_code == 0, run.output
    assert "note: Skipped" in run.output
    if "html" not in name:
        again = (epprof_nb.load if "epprof" in name else epprof_nb.read_trace)(out)
        assert len(again.ops) == len(epprof_nb.read_trace(KINETO).ops)


def test_bad_conversions_are_refused(tmp_path):
    assert CliRunner().invoke(main, ["convert", str(KINETO), "x.txt"]).exit_code == 2
    (tmp_path / "bad.json").write_text("nothing")
    run = CliRunner().invoke(
        main, ["convert", str(tmp_path / "bad.json"), str(tmp_path / "x.html")]
    )
    assert run.exit_code == 1
    assert "could not be read" in run.output
    summary = CliRunner().invoke(main, ["summary", str(NEW_ORT)])
    assert "MatMul" in summary.output


def test_reading_leaves_the_garbage_collector_as_it_was(read):
    read(GOOD)
    assert gc.isenabled()
    with pytest.raises(ProfileFileError):
        read(b"no trace")
    assert gc.isenabled()
    gc.disable()
    try:
        read(GOOD)
        assert not gc.isenabled()
    finally:
        gc.enable()
