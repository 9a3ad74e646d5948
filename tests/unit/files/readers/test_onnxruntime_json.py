"""Reading profiles that ONNX Runtime writes."""

import gzip
import json
from collections import Counter

import pytest

import epprof_nb
from tests.helpers.traces import NEW_ORT, OLD_ORT, TRACES, notes


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


DEVICE = ["device_ns", "self_device_ns", "share", "kernels", "memcpys", "memsets", "bytes"]


@pytest.mark.parametrize("kernels", [0, 2])
def test_device_times_that_no_node_has_are_missing(kernels, read, tmp_path):
    events = [
        event("Session", "model_run", 0, 100),
        event("Node", "product_kernel_time", 10, 20, op_name="MatMul", provider="CUDA"),
        *[event("Kernel", "gemm", 30, 39, op_name="MatMul")] * kernels,
    ]
    prof = read("[\n" + ",\n".join(events) + "\n]\n")
    prof.save(tmp_path / "again.epprof")
    for again in (prof, epprof_nb.load(tmp_path / "again.epprof")):
        by_node = again.by_node().set_index("name")
        assert by_node.loc["product", [*DEVICE, "mean_device_ns", "p95_device_ns"]].isna().all()
        assert by_node.loc["product", "host_ns"] == 10_000
        if kernels:
            assert by_node.loc["(no node)", ["device_ns", "kernels"]].tolist() == [18_000, 2]
        for table in (again.by_op(), again.by_op_type(), again.by_run(), again.by_path()):
            has_op = ~table[table.columns[0]].astype(str).isin(["(no op)", "(no node)", "session"])
            of_ops = table.loc[has_op & table["host_ns"].notna()]
            shared = [name for name in DEVICE if name in table]
            assert set(of_ops["device_ns"].dropna()) <= {18_000}  # of the session
            of_ops = of_ops.loc[of_ops["device_ns"].isna(), shared]
            assert len(of_ops) >= 1
            assert of_ops.isna().to_numpy().all()
        summary = str(again.summary())
        assert ("device_ns: " in summary) == bool(kernels)
        assert ("The trace has no device work" in summary) == (not kernels)


def test_a_comparison_has_no_device_times_of_such_nodes():
    table = epprof_nb.compare(*(epprof_nb.read_trace(path) for path in (OLD_ORT, NEW_ORT))).ops
    unknown = ["device_before_ns", "device_after_ns", "bytes_before", "bytes_after"]
    assert table[unknown].isna().to_numpy().all()
    assert (table[["host_before_ns", "host_after_ns"]] > 0).to_numpy().all()


def event(kind, name, start, end, **args):
    """A line of the file, as ONNX Runtime writes it."""
    return (
        f'{{"cat" : "{kind}","pid" :1,"tid" :1,"dur" :{end - start},"ts" :{start},"ph" : "X",'
        f'"name" :"{name}","args" : {json.dumps(args, separators=(",", " : "))}}}'
    )


def test_nodes_of_a_profile_of_onnxruntime_have_findings(read):
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


def test_calls_and_the_kernels_that_they_launched_share_an_id(read):
    args = {"correlation_id": "12", "op_name": "MatMul", "parent_name": "product"}
    events = [
        event("Session", "model_run", 0, 100),
        event("Kernel", "gemm", 30, 39, **args),
        event("Api", "cuLaunchKernel", 20, 25, **args),
        event("Api", "cudaMemcpyAsync", 40, 46),
    ]
    prof = read("[\n" + ",\n".join(events) + "\n]\n")
    assert prof.api_calls["name"].tolist() == ["cuLaunchKernel", "cudaMemcpyAsync"]
    assert prof.api_calls["domain"].tolist() == ["driver", "runtime"]
    assert prof.api_calls["duration_ns"].tolist() == [5000, 6000]
    assert prof.activities["correlation_id"].tolist() == [12]
    assert prof.api_calls["correlation_id"].isna().tolist() == [False, True]
