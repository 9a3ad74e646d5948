"""Device memory: OrtValue, IOBinding, copies between nodes, reuse."""

from __future__ import annotations

import resource
from types import SimpleNamespace

import numpy as np
import onnxruntime
import pytest
from onnx import helper

import epprof_nb
from epprof_nb.core.errors import KernelError
from tests.ep.sessions import CPU, OURS, model, on_cpu, placement, session
from tests.ort import models


@pytest.fixture
def registered(ep, device):
    """`epprof_nb.ep`, registered for a device: the host device, and CUDA's stand-in."""
    ep.provider(device)
    return ep


@pytest.fixture
def kind(device):
    """The device's type for ONNX Runtime."""
    return "gpu" if device == "host" else "cuda"


def test_an_ortvalue_moves_to_the_device_and_back(registered, x, kind):
    value = onnxruntime.OrtValue.ortvalue_from_numpy(x, kind, 0)
    assert value.device_name() == "cuda"  # ONNX Runtime's name of any device of this type
    assert value.data_ptr() != x.ctypes.data
    np.testing.assert_array_equal(value.numpy(), x)


def test_an_ortvalue_is_updated_in_place(registered, x, kind):
    value = onnxruntime.OrtValue.ortvalue_from_numpy(x, kind, 0)
    address = value.data_ptr()
    value.update_inplace(x * 3)
    assert value.data_ptr() == address
    np.testing.assert_array_equal(value.numpy(), x * 3)


def test_iobinding_keeps_results_on_the_device(registered, x, device, kind):
    if kind == "cuda" and onnxruntime.__version__.startswith("1.25."):
        pytest.skip("bind_output of this release's CPU wheel does not know memory of CUDA")
    made = registered.session(models.chain(), device=device)
    binding = made.io_binding()
    binding.bind_ortvalue_input("x", onnxruntime.OrtValue.ortvalue_from_numpy(x, kind, 0))
    binding.bind_output(made.get_outputs()[0].name, kind, 0)
    made.run_with_iobinding(binding)
    (result,) = binding.get_outputs()
    assert result.device_name() == "cuda"
    expected = on_cpu(models.chain()).run(None, {"x": x})[0]
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


@pytest.mark.skipif(
    tuple(int(n) for n in onnxruntime.__version__.split(".")[:2]) < (1, 26),
    reason="ONNX Runtime 1.25 binds an output to the buffer of the last run",
)
@pytest.mark.release_independent
def test_profiles_have_the_memory_of_sessions_on_the_host_device(ep):
    made = ep.session(models.chain(), device="host")
    x = np.ones((40_000, 4), np.float32)
    binding = made.io_binding()
    binding.bind_cpu_input("x", x)
    kept = []
    with epprof_nb.profile(detail="memory") as prof:
        for _ in range(3):
            binding.bind_output(made.get_outputs()[0].name, "gpu", 0)
            made.run_with_iobinding(binding)
            kept += binding.get_outputs()
    pool = prof.memory_pools().set_index(["pool", "device_id"]).loc[("kernels in Python", 1000)]
    assert pool["held_bytes"] >= pool["in_use_bytes"] >= 3 * x.nbytes
    assert pool["free_bytes"] == pool["held_bytes"] - pool["in_use_bytes"]
    blocks = prof.memory_blocks[prof.memory_blocks["pool"] == "kernels in Python"]
    stays = blocks[blocks["allocated_ns"].notna() & blocks["freed_ns"].isna()]
    (name,) = set(stays["op_id"].map(prof.ops["name"]))
    assert name == "third"
    assert stays["requested_bytes"].tolist() == [x.nbytes] * 3
    held = prof.memory_at("end")
    assert held[held["name"] == "third"]["bytes"].tolist() == [stays["bytes"].sum()]
    nodes = prof.ops[prof.ops["in_use_bytes"].notna()]
    assert (nodes["in_use_bytes"] > 0).all()
    assert nodes["requested_bytes"].isna().all()


def test_copies_are_nodes_between_providers(registered, x, device):
    made = session(models.chain(), registered.provider(device, nodes=["first", "third"]))
    assert placement(made) == {"first": OURS, "second": CPU, "third": OURS}
    expected = on_cpu(models.chain()).run(None, {"x": x})[0]
    np.testing.assert_allclose(made.run(None, {"x": x})[0], expected, rtol=1e-6)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,) * 8])
def test_scalars_and_empty_tensors(registered, shape, device):
    value = np.full(shape, -2, np.float32)
    node = helper.make_node("Abs", ["x"], ["y"], name="node")
    made = session(model([node], {"x": value}, {"y": np.float32}), registered.provider(device))
    assert placement(made)["node"] == OURS
    result = made.run(None, {"x": value})[0]
    assert result.shape == shape
    assert (result == 2).all()


def test_non_contiguous_inputs_arrive_in_order(registered, device):
    value = np.arange(12, dtype=np.float32).reshape(3, 4).T
    node = helper.make_node("Neg", ["x"], ["y"], name="node")
    made = session(model([node], {"x": value}, {"y": np.float32}), registered.provider(device))
    np.testing.assert_array_equal(made.run(None, {"x": value})[0], -value)


def test_two_sessions_run_in_turn(registered, x, device):
    first, second = (
        registered.session(models.chain(), device=device),
        registered.session(models.wide(), device=device),
    )
    expected = [on_cpu(m).run(None, {"x": x})[0] for m in (models.chain(), models.wide())]
    for _ in range(3):
        for made, right in zip((first, second), expected, strict=True):
            np.testing.assert_allclose(made.run(None, {"x": x})[0], right, rtol=1e-5)


def test_memory_stays_flat_over_many_runs(registered, device):
    made = registered.session(models.chain(), device=device)
    big = np.ones((50_000, 4), np.float32)

    def run(times):
        for i in range(times):
            made.run(None, {"x": big[: 40_000 + i % 7]})
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = run(20)
    assert run(60) - before < 25_000  # kB; one array of each run would be 38,400


def test_a_block_of_memory_serves_any_number_of_runs(ep):
    """It is kept after a run, though others would fit where it lies."""
    addresses, held = [], []

    @ep.kernel("Neg", types="float32")
    def large(ctx, x):
        y = ctx.out((10_000_000,))
        addresses.append(y.ctypes.data)

    @ep.kernel("Abs", types="float32")
    def first(ctx, x):
        ctx.out((1,))[...] = 0

    nodes = [helper.make_node("Neg", ["x"], ["t"]), helper.make_node("Abs", ["t"], ["y"])]
    x = np.ones(1, np.float32)
    made = ep.session(model(nodes, {"x": x}, {"y": np.float32}))
    for _ in range(8):
        made.run(None, {"x": x})
        held.append(np.empty(10_000_000, np.float32))
    assert len(set(addresses)) == 1


def test_the_parallel_executor_works(registered, x, device):
    made = session(
        models.wide(), registered.provider(device),
        execution_mode=onnxruntime.ExecutionMode.ORT_PARALLEL, inter_op_num_threads=3,
    )  # fmt: skip
    expected = on_cpu(models.wide()).run(None, {"x": x})[0]
    for _ in range(20):
        np.testing.assert_allclose(made.run(None, {"x": x})[0], expected, rtol=1e-5)


def test_a_tensor_too_large_names_the_node_and_its_size(ep, x):
    @ep.kernel("Abs")
    def huge(ctx, x):
        ctx.out((2**22, 2**25), x.dtype)

    node = helper.make_node("Abs", ["x"], ["y"], name="node")
    made = session(model([node], {"x": x}, {"y": np.float32}), ep.provider("host"))
    with pytest.raises(Exception, match=f"node 'node' .*MemoryError.*output 0.* {2**49} bytes"):
        made.run(None, {"x": x})
    ep.kernel("Abs")(lambda ctx, x: np.abs(x, out=ctx.out(x.shape)) is None)
    with pytest.raises(Exception, match="returned <class 'bool'>"):
        made.run(None, {"x": x})


def test_copy_tensors_copies_in_all_directions(registered, x, kind):
    def on_device(value):
        return onnxruntime.OrtValue.ortvalue_from_numpy(value, kind, 0)

    host = onnxruntime.OrtValue.ortvalue_from_numpy(x, "cpu")
    first, second = on_device(np.zeros_like(x)), on_device(np.zeros_like(x))
    onnxruntime.copy_tensors([host], [first])
    onnxruntime.copy_tensors([first], [second])
    back = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros_like(x), "cpu")
    onnxruntime.copy_tensors([second], [back])
    np.testing.assert_array_equal(back.numpy(), x)


@pytest.mark.parametrize(
    ("serialized", "more"),
    [
        (models.branching(), {"flag": np.array(True)}),
        (models.looping(), {"times": np.array(3)}),
        (models.scanning(), {"start": np.zeros(4, np.float32)}),
    ],
    ids=["if", "loop", "scan"],
)
def test_control_flow_works_in_device_memory(registered, x, device, serialized, more):
    feeds = {"x": x, **more}
    made = registered.session(serialized, device=device)
    for value, right in zip(
        made.run(None, feeds), on_cpu(serialized).run(None, feeds), strict=True
    ):
        np.testing.assert_allclose(value, right, rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_scan_moves_axes_in_device_memory(registered, device, axis):
    body = helper.make_graph(
        [helper.make_node("Add", ["sum_in", "item"], ["sum"], name="add"),
         helper.make_node("Identity", ["sum"], ["scanned"], name="same")],
        "body",
        [helper.make_tensor_value_info(n, 1, ["a", "b"]) for n in ("sum_in", "item")],
        [helper.make_tensor_value_info(n, 1, ["a", "b"]) for n in ("sum", "scanned")],
    )  # fmt: skip
    node = helper.make_node(
        "Scan", ["start", "x"], ["last", "all"], name="scan", body=body, num_scan_inputs=1,
        scan_input_axes=[axis], scan_output_axes=[axis],
    )  # fmt: skip
    value = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    feeds = {"start": np.zeros(np.delete(value.shape, axis), np.float32), "x": value}
    serialized = model([node], feeds, {"last": np.float32, "all": np.float32})
    made = session(serialized, registered.provider(device))
    assert placement(made)["scan"] == OURS
    for value, right in zip(
        made.run(None, feeds), on_cpu(serialized).run(None, feeds), strict=True
    ):
        np.testing.assert_allclose(value, right)


def test_dlpack_shares_the_memory(registered, device, x):
    from epprof_nb import ep

    kind = "gpu" if device == "host" else "cuda"
    value = onnxruntime.OrtValue.ortvalue_from_numpy(x, kind, 0)
    shared = ep.dlpack(value)
    assert shared.__dlpack_device__() == ((1, 0) if device == "host" else (2, 0))
    if device == "host":
        array = np.from_dlpack(shared)
        assert array.ctypes.data == value.data_ptr()
        value.update_inplace(x + 1)
        del value
        np.testing.assert_array_equal(array, x + 1)
    else:
        with pytest.raises(Exception, match=r"CUDA|device"):  # NumPy reads the capsule's device
            np.from_dlpack(shared)


@pytest.mark.parametrize("index", [0, 1])
def test_dlpack_shares_memory_that_another_provider_allocated(ep, fake_cuda, index):
    ep.provider("cuda:0")
    with fake_cuda.module.cuda.Device(index):
        memory = fake_cuda.module.cuda.allocate(16)
    value = SimpleNamespace(data_ptr=lambda: memory.ptr, device_name=lambda: "cuda")
    assert ep.dlpack(value).__dlpack_device__() == (2, index)


def test_dlpack_refuses_memory_that_is_no_cuda_device_s(ep, fake_cuda, x):
    value = SimpleNamespace(
        data_ptr=lambda: x.ctypes.data, device_name=lambda: "cuda", shape=lambda: [2, 4]
    )
    with pytest.raises(KernelError, match=r"\(2, 4\) lies in memory of another provider"):
        ep.dlpack(value)


def test_dlpack_passes_on_memory_of_the_cpu(registered, x):
    value = onnxruntime.OrtValue.ortvalue_from_numpy(x, "cpu")
    np.testing.assert_array_equal(np.from_dlpack(registered.dlpack(value)), x)


def test_dlpack_says_what_it_shares(ep):
    with pytest.raises(KernelError, match=r"an onnxruntime.OrtValue, not ndarray\. Pass arrays"):
        ep.dlpack(np.ones(3))
