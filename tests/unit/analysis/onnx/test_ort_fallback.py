"""ONNX Runtime nodes that fell back to the CPU, and the copies they caused."""

from __future__ import annotations

import pytest

from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.findings.ranking import findings
from epprof_nb.core.ort_binding import PROVIDER
from epprof_nb.views.queries.tables import breakdown_table
from epprof_nb.views.view_model import ViewModel
from tests.helpers.tiny import activity, kernel, op, profile

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
BIG, SMALL = "float[64,1024]", "int64[2]"
MS = 1_000_000


def run(op_id, start, end, session=1):
    return op(op_id, "model_run", start, end, op_type="run", category="session", session=session)


def node(op_id, name, op_type, at, took, parent, *, provider=CUDA, takes=BIG, gives=BIG, **more):
    more = {"session": 1, "node_index": op_id % 100} | more
    return op(
        op_id, name, at, at + took, parent, category="node", op_type=op_type, provider=provider,
        input_shapes=takes, output_shapes=gives, **more,
    )  # fmt: skip


def copied(op_id, at, kind="DtoH", took=MS, size=4_000_000):
    return activity("memcpy", at, at + took, op_id, copy_kind=kind, bytes=size)


def one_run(base, at):
    """MatMul on the GPU, TopK and Shape on the CPU, Add on the GPU; a copy to and one back."""
    ids = range(base, base + 7)
    ops = [
        run(ids[0], at, at + 20 * MS),
        node(ids[1], "matmul", "MatMul", at + 1 * MS, MS, base),
        node(ids[2], "to_cpu", "MemcpyToHost", at + 2 * MS, MS, base),
        node(ids[3], "shape", "Shape", at + 3 * MS, 10, base, provider=CPU, takes=SMALL,
             gives=SMALL),
        node(ids[4], "topk", "TopK", at + 4 * MS, 6 * MS, base, provider=CPU,
             takes=f"{BIG}, int64[1]", gives=f"float[64,5], {BIG}"),
        node(ids[5], "to_gpu", "MemcpyFromHost", at + 11 * MS, MS, base),
        node(ids[6], "add", "Add", at + 13 * MS, MS, base),
    ]  # fmt: skip
    # Executions of one node share its index.
    for i, each in enumerate(ops[1:]):
        each["node_index"] = i
    work = [
        kernel(at + 1 * MS, at + 2 * MS, ids[1]), copied(ids[2], at + 2 * MS),
        copied(ids[5], at + 12 * MS, "HtoD"), kernel(at + 14 * MS, at + 15 * MS, ids[6]),
    ]  # fmt: skip
    return ops, work


def two_runs(**info):
    (first, work), (second, more) = one_run(100, 0), one_run(200, 20 * MS)
    cuda = [{"device_id": 0, "name": "H", "kind": "gpu"}]
    info = {"wall_ns": 40 * MS, "devices": cuda, "onnxruntime_sessions": {"1": "m"}} | info
    return profile(first + second, work + more, info=info)


def rows(frame):
    return frame.set_index("name").to_dict("index")


def test_nodes_on_the_cpu_beside_an_accelerator_fell_back():
    found = rows(two_runs().by_node())
    assert {name for name, row in found.items() if row["fell_back"]} == {"topk", "shape"}


def test_the_first_columns_say_what_ran_where_how_often_and_how_long():
    prof = two_runs()
    first = ["name", "op_type", "provider", "count", "device_ns", "share", "host_ns"]
    assert list(prof.by_node())[:8] == [*first, "mean_host_ns"]
    assert list(prof.by_op_type())[:8] == [
        "op_type",
        "provider",
        "nodes",
        *first[3:],
        "mean_host_ns",
    ]


def test_the_table_of_a_page_names_fallbacks_only():
    table = breakdown_table(ViewModel(two_runs()), "node")
    shown = {column["name"]: column["values"] for column in table["columns"]}["fell_back"]
    assert shown == ["yes" if fell else None for fell in two_runs().by_node()["fell_back"]]
    assert set(shown) == {"yes", None}


def test_copies_count_for_the_node_whose_values_they_moved():
    found = rows(two_runs().by_node())
    assert found["topk"]["fallback_copies"] == 4
    assert found["topk"]["fallback_bytes"] == 16_000_000
    assert found["topk"]["fallback_copy_ns"] == 4 * MS
    # The shape node, which is nearer, has no input of that shape.
    for name in ("shape", "matmul", "add", "to_cpu", "to_gpu"):
        assert found[name]["fallback_copies"] == found[name]["fallback_bytes"] == 0
    # The copies still belong to the copy nodes: device work is counted once.
    assert found["to_cpu"]["self_device_ns"] == 2 * MS
    assert sum(row["self_device_ns"] for row in found.values()) == 8 * MS


def test_a_session_on_the_cpu_alone_has_nothing_to_fall_back_from():
    ops = [run(1, 0, 100), node(2, "a", "Relu", 1, 50, 1, provider=CPU)]
    frame = profile(ops).by_node()
    assert not frame["fell_back"].any()
    told = {"onnxruntime_providers": {"1": [CPU, "AzureExecutionProvider"]}}
    assert not profile(ops, info=told).by_node()["fell_back"].any()


def test_a_session_that_could_use_an_accelerator_and_never_did_fell_back():
    ops = [run(1, 0, 100), node(2, "a", "Relu", 1, 50, 1, provider=CPU)]
    info = {"onnxruntime_providers": {"1": [CUDA, CPU]}, "onnxruntime_sessions": {"1": "m"}}
    whole = profile(ops, info={**info, "wall_ns": 100})
    assert whole.by_node()["fell_back"].all()
    (finding,) = findings(ProfileIndex(whole))
    assert finding.text == (
        "Node `a` (Relu) ran on the CPU for 50 ns, although its session has an accelerator."
    )


@pytest.mark.parametrize(
    ("selected", "text", "remedy"),
    [
        ({"only": ["MatMul", "Add"]}, "left out by `only=`.", "Add operators or nodes to `only=`"),
        ({"nodes": ["add"]}, "left out by `nodes=`.", "Add operators or nodes to `nodes=`"),
        ({"only": ["TopK"]}, "has an accelerator.", "1 of these 2 nodes are left out by `only=`."),
        ({}, "has an accelerator.", "Use an operator, type or shape"),
    ],
)
def test_nodes_that_the_user_left_out_have_another_remedy(selected, text, remedy):
    made = two_runs(onnxruntime_selected={"1": selected})
    (finding,) = [f for f in findings(ProfileIndex(made), limit=None) if f.kind == "cpu fallback"]
    assert finding.text.endswith(text)
    assert remedy in finding.remedy


def test_nodes_beside_kernels_on_the_host_device_are_where_they_would_be():
    ops = [run(1, 0, 20 * MS), node(2, "gelu", "Gelu", 1, MS, 1, provider=PROVIDER),
           node(3, "matmul", "MatMul", 2 * MS, 9 * MS, 1, provider=CPU)]  # fmt: skip
    work = [kernel(100, MS, 2, device_id=1000)]
    host, cuda = ({"device_id": number, "name": kind, "kind": kind}
                  for number, kind in ((1000, "host"), (0, "gpu")))  # fmt: skip
    info = {"wall_ns": 20 * MS, "onnxruntime_sessions": {"1": "m"},
            "onnxruntime_selected": {"1": {"only": ["Gelu"]}}}  # fmt: skip

    def kinds(work, *devices):
        prof = profile(ops, work, info={**info, "devices": list(devices)})
        return {f.kind for f in findings(ProfileIndex(prof), limit=None)}

    assert "cpu fallback" not in kinds(work, host)
    assert "cpu fallback" not in kinds(work, cuda, host)
    assert "cpu fallback" not in kinds([], host)
    assert "cpu fallback" in kinds([kernel(100, MS, 2)], cuda)
    assert "cpu fallback" in kinds([], cuda)


def test_copies_to_nodes_beside_kernels_on_the_host_device_ask_for_kernels():
    ops = [run(1, 0, 40 * MS), node(2, "gelu", "Gelu", 1, 20 * MS, 1, provider=PROVIDER),
           node(3, "to_cpu", "MemcpyToHost", 21 * MS, MS, 1, provider=PROVIDER),
           node(4, "topk", "TopK", 23 * MS, 9 * MS, 1, provider=CPU)]  # fmt: skip
    work = [kernel(100, 20 * MS, 2, device_id=1000), copied(3, 21 * MS + 10, took=1_000) | {
        "device_id": 1000}]  # fmt: skip
    host = {"device_id": 1000, "name": "host", "kind": "host"}
    info = {"wall_ns": 40 * MS, "onnxruntime_sessions": {"1": "m"}, "devices": [host]}
    found = findings(ProfileIndex(profile(ops, work, info=info)), limit=None)
    (finding,) = [f for f in found if f.kind == "cpu fallback"]
    assert finding.text.startswith(
        "Node `topk` (TopK) ran on the CPU, with 1 copy (4.00 MB) to and from it that took "
        "1.00 ms, although its session has kernels in Python."
    )
    assert finding.remedy == 'Write kernels in Python for them, too: `@ep.kernel("TopK")`.'
    assert finding.gain_ns == MS  # not what the node takes, which is on the same device


@pytest.mark.parametrize("told", [7, {"1": 7}, {"x": ["A"]}, {"1": [7]}])
def test_malformed_info_is_tolerated(told):
    ops = [run(1, 0, 100), node(2, "a", "Relu", 1, 50, 1, provider=CPU)]
    assert len(profile(ops, info={"onnxruntime_providers": told}).by_node()) == 1


def test_another_sessions_accelerator_does_not_count():
    ops = [
        run(1, 0, 50), node(2, "a", "Relu", 1, 5, 1),
        run(3, 60, 90, session=2), node(4, "b", "Relu", 61, 5, 3, provider=CPU, session=2),
    ]  # fmt: skip
    assert not profile(ops).by_node()["fell_back"].any()


def test_copies_in_a_subgraph_serve_nodes_of_that_subgraph():
    ops = [
        run(1, 0, 100),
        node(2, "loop", "Loop", 1, 90, 1),
        op(3, "SequentialExecutor::Execute", 2, 80, 2, category="session", session=1),
        node(4, "to_cpu", "MemcpyToHost", 5, 1, 3),
        node(6, "inner", "Det", 10, 5, 3, provider=CPU),
        node(7, "outer", "Det", 92, 5, 1, provider=CPU),
    ]
    found = rows(profile(ops).by_node())
    assert found["inner"]["fallback_copies"] == 1
    assert found["outer"]["fallback_copies"] == 0


def test_the_finding_names_the_node_its_copies_and_its_place():
    found = findings(ProfileIndex(two_runs()), limit=9)
    (finding,) = (f for f in found if "on the CPU" in f.text)
    assert finding.text == (
        "Node `topk` (TopK) and 1 other ran on the CPU for 12.0 ms, with 4 copies (16.0 MB) "
        "to and from it, although its session has an accelerator."
    )
    assert finding.gain_ns == 12 * MS + 20 + 4 * MS
    assert (finding.start_ns, finding.end_ns) == (4 * MS, 10 * MS)
    names = dict(two_runs().ops["name"])
    assert names[finding.op_id] == "topk"


def test_the_gain_has_the_time_of_copy_nodes_on_the_host_but_not_kernels_they_wait_for():
    ops, work = one_run(100, 0)
    times = {"to_cpu": (1_500_000, 3 * MS), "to_gpu": (10_200_000, 13 * MS)}
    for row in ops:
        start, end = times.get(row["name"], (row["start_ns"], row["end_ns"]))
        row |= {"start_ns": start, "end_ns": end, "duration_ns": end - start}
    info = {"wall_ns": 20 * MS, "onnxruntime_sessions": {"1": "m"}}
    found = findings(ProfileIndex(profile(ops, work, info=info)), limit=9)
    (finding,) = (f for f in found if f.kind == "cpu fallback")
    # Half a millisecond of the first copy node, the kernel still ran. The device copies for 2 ms.
    assert finding.gain_ns == 6 * MS + 10 + MS + 2_800_000


def test_a_fallback_without_recorded_device_work_is_found():
    ops, _ = one_run(100, 0)
    info = {"wall_ns": 20 * MS, "onnxruntime_sessions": {"1": "m"}}
    found = findings(ProfileIndex(profile(ops, info=info)), limit=9)
    (finding,) = (f for f in found if f.kind == "cpu fallback")
    assert finding.gain_ns == 6 * MS + 10 + 2 * MS


def test_idle_time_in_which_a_node_ran_on_the_cpu_is_reported_once():
    prof = two_runs()
    found = findings(ProfileIndex(prof), limit=None)
    assert "cpu fallback" in {f.kind for f in found}
    assert not [f.text for f in found if f.kind == "idle" and "`topk`" in f.text]
    elsewhere = two_runs(onnxruntime_sessions={})
    texts = [f.text for f in findings(ProfileIndex(elsewhere), limit=None) if f.kind == "idle"]
    assert any("`topk`" in text for text in texts)


def test_the_finding_has_the_nodes_of_all_sessions():
    (ops, work), (others, more) = one_run(100, 0), one_run(200, 20 * MS)
    others = [row | {"session": 2} for row in others]
    info = {"wall_ns": 40 * MS, "onnxruntime_sessions": {"1": "m", "2": "m"}}
    prof = profile([*ops, *others], [*work, *more], info=info)
    found = findings(ProfileIndex(prof), limit=None)
    (rank,) = (n for n, f in enumerate(found, 1) if f.kind == "cpu fallback")
    assert prof.evidence(rank).index.tolist() == [103, 104, 203, 204]
    assert not [f.text for f in found if f.kind == "idle" and "`topk`" in f.text]


def test_a_small_fallback_is_no_finding():
    assert not any(
        "on the CPU" in f.text
        for f in findings(ProfileIndex(two_runs(wall_ns=4_000 * MS)), limit=9)
    )


def test_saving_excludes_the_slowdown_by_profiling():
    slow = two_runs(onnxruntime_stretch=[{"session": 1, "stretch": 2.0}])
    (finding,) = (f for f in findings(ProfileIndex(slow), limit=9) if "on the CPU" in f.text)
    assert finding.gain_ns == (16 * MS + 20) // 2
