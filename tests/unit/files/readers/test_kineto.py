"""Reading traces of torch.profiler."""

import gzip
import json
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import epprof_nb
from epprof_nb.files.readers.nesting import OpStacks
from tests.helpers.traces import KINETO, TRACES, gpu_trace, kineto, notes, x


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


STACKS = next(TRACES.glob("kineto_stacks*"))


def busy_ns(ops):
    """Length of the union of the times of the ops of one thread."""
    busy, until = 0, None
    for start, end in sorted(zip(ops["start_ns"], ops["end_ns"], strict=True)):
        until = start if until is None else until
        busy += max(end - max(start, until), 0)
        until = max(until, end)
    return busy


def is_nested_in_time(prof):
    """Whether no op begins before its parent, or ends after it."""
    ops = prof.ops
    inner = ops[ops["parent_op_id"].notna()]
    outer = ops.loc[inner["parent_op_id"]]
    begins = inner["start_ns"].to_numpy() >= outer["start_ns"].to_numpy()
    return bool((begins & (inner["end_ns"].to_numpy() <= outer["end_ns"].to_numpy())).all())


def test_self_times_of_a_trace_with_stacks_add_up_to_the_time_of_its_thread():
    prof = epprof_nb.read_trace(STACKS)
    by_op = prof.by_op()
    assert len(set(prof.ops["thread_id"])) == 1
    assert by_op["self_host_ns"].sum() == busy_ns(prof.ops)
    assert is_nested_in_time(prof)
    steps = prof.ops[prof.ops["name"] == "step"]
    assert "_record_function" not in " ".join(prof.ops.loc[steps["parent_op_id"], "name"])
    assert "calls of Python begin or end a range" in notes(prof)


def test_operators_and_ranges_of_a_trace_with_stacks_have_its_times_and_counts():
    prof = epprof_nb.read_trace(STACKS)
    events = json.loads(gzip.decompress(STACKS.read_bytes()))["traceEvents"]
    for category, op_type in (("cpu_op", "operator"), ("user_annotation", "range")):
        expected = Counter()
        for event in events:
            if event.get("cat") == category:
                expected[event["name"]] += round(event["dur"] * 1000)
        ops = prof.ops.replace({"op_type": {"autograd_node": "operator"}})
        times = ops[ops["op_type"] == op_type].groupby("name", observed=True)["duration_ns"].sum()
        assert times.to_dict() == expected
    operators = prof.by_operator()
    assert operators["count"].sum() == sum(e.get("cat") == "cpu_op" for e in events)
    linked = operators.set_index("name")
    nodes = linked[linked["op_type"] == "autograd_node"]
    assert {"AddmmBackward0", "ReluBackward0"} <= set(nodes.index)
    backward = linked["backward_host_ns"]
    assert backward["aten::addmm"] == linked.loc["AddmmBackward0", "host_ns"] > 0


def test_the_summary_counts_nested_calls_of_one_name_once(read):
    prof = read(kineto(
        x("call", 0, 100, "python_function"), x("call", 10, 50, "python_function"),
        x("aten::mm", 20, 30), x("call", 70, 20, "python_function"), x("call", 200, 5),
    ))  # fmt: skip
    rows = prof.summary().partition("ops below them included")[2].splitlines()[2:5]
    assert rows == [
        "call | function |  |  | 100000 | 3", "aten::mm | operator |  |  | 30000 | 1",
        "call | operator |  |  | 5000 | 1",
    ]  # fmt: skip
    by_op = prof.by_op()
    assert by_op["host_ns"].tolist() == [100_000, 30_000, 5_000]
    found = prof.sql("select sum(duration_ns) ns from nested_ops where is_outermost")
    assert found["ns"].tolist() == [135_000]


@pytest.mark.parametrize("unit", [1, 0.001])
def test_a_range_is_not_below_the_call_that_begins_it(read, unit):
    events = [
        x("main", 0, 300, "python_function"), x("enter", 10, 20, "python_function"),
        x("check", 12, 3, "python_function"), x("step", 20, 200, "user_annotation"),
        x("aten::mm", 40, 100), x("exit", 210, 30, "python_function"),
        x("inner", 212, 20, "python_function"),
    ]  # fmt: skip
    prof = read(kineto(*({**e, "ts": e["ts"] * unit, "dur": e["dur"] * unit} for e in events)))
    above = prof.ops["parent_op_id"].map(prof.ops["name"].astype(object)).astype(object)
    assert dict(zip(prof.ops["name"], above.where(above.notna(), None), strict=True)) == {
        "main": None, "enter": "main", "check": "enter", "step": "main", "aten::mm": "step",
        "exit": "main", "inner": "exit",
    }  # fmt: skip
    own = prof.by_op().set_index("name")["self_host_ns"] / (1000 * unit)
    assert own.to_dict() == {
        "main": 70, "enter": 7, "check": 3, "step": 100, "aten::mm": 100, "exit": 8, "inner": 12,
    }  # fmt: skip


@pytest.mark.parametrize("unit", [1, 1_000])
@pytest.mark.parametrize(("late", "parent"), [(0, 0), (2, 0), (3, -1)])
def test_an_op_ends_up_to_two_units_after_its_parent(unit, late, parent):
    start, end = np.array([[1, 101], [51, 101 + late]]).T * unit
    assert OpStacks(np.zeros(2, np.int64), start, end).parent.tolist() == [-1, parent]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=12), st.booleans())
def test_no_op_is_longer_than_its_parent(spans, is_whole):
    unit = 1_000 if is_whole else 1
    start = np.array([begin for begin, _ in spans], np.int64) * unit
    end = start + np.array([length for _, length in spans], np.int64) * unit
    thread = np.zeros(len(spans), np.int64)
    stacks = OpStacks(thread, start, end)
    inner = np.flatnonzero(stacks.parent >= 0)
    outer = stacks.parent[inner]
    assert (start[outer] <= start[inner]).all()
    assert ((end - start)[inner] <= (end - start)[outer]).all()
    assert (end[inner] - end[outer] <= 2 * unit).all()
    times = np.arange(-1, 95) * unit
    expected = []
    for time in times:
        rows = np.flatnonzero((start <= time) & (stacks.left > time))
        depth = [len(_above(stacks.parent, row)) for row in rows]
        expected.append(rows[np.argmax(depth)] if len(rows) else -1)
        assert len(set(depth)) == len(depth)  # they are one stack
    assert stacks.open_at(np.zeros(len(times), np.int64), times).tolist() == expected


def _above(parent, row):
    found = []
    while (row := parent[row]) >= 0:
        found.append(row)
    return found


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
    assert prof.info["devices"] == [{"device_id": 0, "name": "H200", "kind": "gpu"}]
    assert prof.info["started_at_epoch_ns"] == 10**18
    assert "category 'gpu_user_annotation'" in notes(prof)


def test_the_start_in_epoch_time_is_that_of_the_first_event(read):
    prof = read(kineto(x("aten::mm", 40, 100), baseTimeNanoseconds=10**18))
    assert prof.ops["start_ns"].tolist() == [0]
    assert prof.info["started_at_epoch_ns"] == 10**18 + 40_000


def test_kernels_of_a_graph_belong_to_its_launch(read):
    prof = read(gpu_trace())
    assert prof.activities["graph_id"].dropna().tolist() == [3, 3]  # 0 is none
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
    """The activities, their time and the busy time equal those in the JSON."""
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
    assert "2 threads have generated ids" in notes(prof)


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        (x("odd", 5, 1, cat=["kernel"]), "of category ''"),
        (x("odd", "5", 1), "without a valid time and duration"),
        ({"ph": "M", "name": "process_name", "args": ["odd"]}, None),
        (7, "that are invalid JSON objects"),
    ],
)
def test_values_of_other_types_change_no_other_event(read, odd, reason):
    """An event of other types is parsed in another way, and with it the events around it."""
    trace = gpu_trace()
    expected = read(trace)
    trace["traceEvents"].insert(3, odd)
    prof = read(trace)
    for name, table in expected.tables.items():
        pd.testing.assert_frame_equal(prof.tables[name].to_frame(), table.to_frame())
    added = [note for note in prof.info["notes"] if note not in expected.info["notes"]]
    assert added == ([f"Skipped events {reason}: 1."] if reason else [])


def test_ids_and_times_may_be_integers_or_text(read):
    prof = read(kineto(
        x("a", 1, 10, tid="7"), x("launch", 2, 1, "cuda_runtime", tid="7", correlation="5"),
        x("k1", 2**40, 3, "kernel", 0, 7, device="0", stream=2**31, correlation=5),
        x("k2", 2**40 + 5, 1.0004, "kernel", 0, 7, device=0, stream=2**64, correlation=0),
    ))  # fmt: skip
    first, second = prof.activities.to_dict("records")
    assert (first["start_ns"], first["duration_ns"]) == ((2**40 - 1) * 1000, 3_000)
    assert (first["device_id"], first["op_id"], prof.ops["thread_id"].item()) == (0, 1, 7)
    assert (second["duration_ns"], pd.isna(second["op_id"])) == (1_000, True)
    assert prof.activities[["stream_id", "grid_x"]].isna().all(axis=None)


def test_operators_of_equal_shapes_share_them(read):
    shapes = {"Input Dims": [[2, 3], []], "Input type": ["float", "Scalar"]}
    operators = [x("f", i, 1, **shapes) for i in range(3)]
    other = {"Input Dims": [[9]], "Input Type": ["int"]}
    prof = read(kineto(*operators, x("g", 5, 1, **other), x("h", 7, 1, **{"Input Dims": []})))
    two_and_three = '{"types":["float","Scalar"],"shapes":[[2,3],[]]}'
    nine = '{"types":["int"],"shapes":[[9]]}'
    assert prof.ops["input_shapes"].astype(object).tolist()[:4] == [*[two_and_three] * 3, nine]
    assert pd.isna(prof.ops["input_shapes"].iloc[4])


INFINITE, DEEP, NO_UTF8 = b"[1e999]", b"[" * 300 + b"]" * 300, b'["\xff"]'


# An event with a list as its process has all events parsed one by one.
@pytest.mark.parametrize("field", ["Input Dims", "Input type", "Input Type"])
@pytest.mark.parametrize(
    ("value", "other"),
    [(INFINITE, {}), (DEEP, {}), (NO_UTF8, {}), (INFINITE, {"pid": []}), (DEEP, {"pid": []})],
)
def test_shapes_that_are_invalid_are_missing_and_counted(read, field, value, other):
    good = {"Input Dims": [[2]], field: "VALUE"}
    text = json.dumps(kineto(x("a", 1, 2, **good), {**x("b", 3, 2), **other}))
    prof = read(text.encode().replace(b'"VALUE"', value))
    assert prof.ops["name"].tolist() == ["a", "b"]
    shapes = {"types": None, "shapes": [[2]]}
    expected = [] if field == "Input Dims" or value == DEEP else [json.dumps(shapes)]
    found = prof.ops["input_shapes"].dropna() if "input_shapes" in prof.ops else []
    assert [json.dumps(json.loads(text)) for text in found] == expected
    assert (
        "events' input shapes or types, which are invalid JSON or nested too deeply: 1."
        in notes(prof)
    )


@pytest.mark.parametrize("unknown", [{}, {"correlation": 0}])
def test_a_trace_of_rocm_without_correlation_ids_is_joined_by_external_ids(read, unknown):
    def launch(at, number):
        shape = {"stream": "0x0", "grid dim": [8, 1, 1], "External id": number, **unknown}
        return x("hipExtModuleLaunchKernel", at, 3, "cuda_runtime", **shape)

    prof = read(kineto(
        x("aten::mm", 0, 14, **{"External id": 1025}), launch(5, 58),
        x("aten::add", 20, 9, **{"External id": 1026}), launch(22, 60),
        x("gemm", 30, 100, "kernel", 2, 0, **{"External id": 58, **unknown}),
        x("add", 130, 50, "kernel", 2, 3, **{"External id": 60, **unknown}),
        x("lost", 190, 5, "kernel", 2, 0, **{"External id": 0}),
    ))  # fmt: skip
    names = prof.ops["name"].astype(object).to_dict()
    assert prof.activities["op_id"].map(names).tolist()[:2] == ["aten::mm", "aten::add"]
    assert prof.activities["op_id"].isna().tolist() == [False, False, True]
    assert prof.activities["device_id"].tolist() == [2, 2, 2]
    assert prof.activities["stream_id"].tolist() == [0, 3, 0]


def test_external_ids_join_nothing_where_there_are_correlation_ids(read):
    trace = gpu_trace()
    for event in trace["traceEvents"]:
        event["args"]["External id"] = 1
    assert read(trace).activities.equals(read(gpu_trace()).activities)


# Start and duration (us) of the kernels of two traces of MI300X in the repository of TraceLens
# (evals/unit_tests), and busy, idle and total time (ms) in the gpu_timeline.csv that it has there.
# TraceLens computes with float64 microseconds, here of 2**-10: its times are rounded to a
# nanosecond.
GEMM = [
    (222, 103), (325, 102), (427, 103), (530, 101), (631, 106), (737, 108), (845, 113), (958, 111),
    (1069, 112), (1181, 112),
]  # fmt: skip
ADD = [
    (5888467279898.213, 430.922), (5888467280329.136, 435.128), (5888467280764.265, 428.238),
    (5888467281192.504, 401.759), (5888467281594.264, 404.002), (5888467281998.267, 414.177),
    (5888467282412.445, 420.627), (5888467282833.073, 420.547), (5888467283253.621, 430.441),
    (5888467283684.063, 424.353),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kernels", "timeline"),
    [(GEMM, (1.071, 0.0, 1.071)), (ADD, (4.210193359375, 9.765625e-06, 4.210203125))],
)
def test_busy_and_idle_time_are_those_of_tracelens(read, kernels, timeline):
    prof = read(kineto(*(x("k", ts, dur, "kernel", 0, 0) for ts, dur in kernels)))
    row = prof.overlap().iloc[0]
    found = [row["span_ns"] - row["idle_ns"], row["idle_ns"], row["span_ns"]]
    assert found == pytest.approx([1e6 * time for time in timeline], abs=1)
