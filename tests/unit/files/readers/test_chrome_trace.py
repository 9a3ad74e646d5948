"""Reading Chrome traces: those of viztracer, JAX and this package."""

import gzip
import json
import os
import threading
from collections import Counter
from decimal import Decimal

import pandas as pd
import pytest

import epprof_nb
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.testing import synthetic_profile
from tests.helpers.tiny import activity, call, kernel, line, op, profile
from tests.helpers.traces import TRACES, VIZTRACER, notes, x


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
    assert "of a device that repeat slices of its streams: 1" in notes(prof)


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


def test_the_slices_of_a_tpu_are_ops_and_a_note_says_so(read):
    names, slices = xla_events()
    tpu = names[0] | {"args": {"name": "/device:TPU:0"}}
    prof = read([tpu, names[1], *slices])
    assert len(prof.activities) == 0
    assert {"fusion", "XLA Ops"} <= set(prof.ops["name"])
    assert "The slices of /device:TPU:0 are ops" in notes(prof)
    assert "are ops" not in notes(read([*names, *slices]))


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


def test_arguments_with_lone_surrogates_are_kept(read):
    event = x("f", 1, 2, **{"x": "\udcff.py", "\udcfe": 1})
    prof = read([event])
    assert prof.ops["args"].tolist() == [{"x": "\ufffd.py", "\ufffd": 1}]
    assert notes(prof) == ""


@pytest.mark.parametrize("value", ["[" * 300 + "]" * 300, f"[NaN, {2**70}]"])
@pytest.mark.parametrize("is_own", [False, True])
def test_arguments_that_cannot_be_written_are_counted(read, value, is_own):
    args = {"op_id": 1, "args": {"x": "VALUE"}} if is_own else {"x": "VALUE"}
    event = json.dumps(x("f", 1, 2, **args)).replace('"VALUE"', value)
    head = '{"otherData": {"epprof_nb": {}}, "traceEvents": [' if is_own else '{"traceEvents": ['
    prof = read(head + event + "]}")
    assert prof.ops["name"].tolist() == ["f"]
    assert "which are nested too deeply or have integers of more than 64 bits: 1." in notes(prof)


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
        info={"devices": [{"device_id": 0, "name": "H200", "kind": "gpu"}], "wall_ns": 90_001,
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
    assert again.ops["suspended_ns"].isna().all()
    assert again.wall_ns == prof.wall_ns
    assert again.info.get("repeats") == prof.info.get("repeats")
    assert again.info["devices"] == prof.info["devices"]
    assert "Skipped" not in notes(again)


def own_trace(*events):
    return '{"otherData": {"epprof_nb": {}}, "traceEvents": [' + json.dumps(events)[1:] + "}"


def test_return_values_that_a_trace_lacks_are_missing_and_stay_so(read, tmp_path):
    called = {"ph": "X", "cat": "api", "name": "cuMemcpy", "pid": 1, "tid": 7, "ts": 1, "dur": 1}
    values = [{"return_value": 2}, {"return_value": 0}, {}]
    prof = read(own_trace(
        *({**called, "args": {"correlation_id": i, **value}} for i, value in enumerate(values))
    ))  # fmt: skip
    assert prof.api_calls["return_value"].fillna(-1).tolist() == [2, 0, -1]
    prof.to_chrome(tmp_path / "again.json")
    events = json.loads((tmp_path / "again.json").read_bytes())["traceEvents"]
    of_calls = [event["args"] for event in events if event.get("cat") == "api"]
    assert [of_call.get("return_value") for of_call in of_calls] == [2, 0, None]


def test_own_ops_that_do_not_end_are_counted(read):
    begin = {"cat": "user", "name": "a", "pid": 1, "tid": 7, "ts": 1, "args": {"op_id": 1}}
    prof = read(own_trace(
        {**begin, "ph": "b", "id": 1}, {**begin, "ph": "b", "id": 2}, {**begin, "ph": "b", "id": 2},
        {"ph": "e", "id": 2, "ts": 5}, {"ph": "e", "id": 3, "ts": 5}, {**begin, "ph": "b", "id": 4},
        {"ph": "e", "id": 4, "ts": 0},
    ))  # fmt: skip
    assert prof.ops["duration_ns"].tolist() == [4_000]
    assert [note for note in prof.info["notes"] if "Skipped" in note] == [
        "Skipped events that begin a slice that does not end: 2.",
        "Skipped events that end a slice that has not begun: 1.",
        "Skipped events that end a slice before it begins: 1.",
    ]


def test_own_ops_that_do_not_end_count_as_memory(read):
    events = [{"ph": "b", "id": i, "ts": 1, "args": {"op_id": i}} for i in range(2_000)]
    with pytest.raises(ProfileFileError, match="more than 500,000 bytes"):
        read(own_trace(*events), max_bytes=500_000)


@pytest.mark.parametrize("number", ["9" * 19, "-" + "9" * 19, "9" * 30])
def test_numbers_of_own_tracks_beyond_64_bits_are_missing(read, number):
    track = {"ph": "M", "name": "thread_name", "pid": 3, "tid": 1}
    work = {"ph": "X", "cat": "kernel", "name": "k", "pid": 3, "tid": 1, "ts": 1, "dur": 1}
    prof = read(own_trace({**track, "args": {"name": f"stream {number}"}}, work))
    assert prof.activities["stream_id"].isna().all()
