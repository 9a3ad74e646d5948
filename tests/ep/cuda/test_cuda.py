"""CUDA devices, with a stand-in for NVIDIA's driver and for CuPy."""

from __future__ import annotations

import ctypes
import gc
import inspect
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from epprof_nb import _native
from tests.ep.sessions import CPU, OURS, model, on_cpu, placement, session
from tests.ort import models
from tests.ort.rows import nodes


def on_device(value, index=0):
    return onnxruntime.OrtValue.ortvalue_from_numpy(value, "cuda", index)


def expected(serialized, feeds):
    return on_cpu(serialized).run(None, feeds)[0]


def test_a_model_runs_in_device_memory(ep, fake_cuda, x):
    made = session(models.chain(), ep.provider("cuda:0"))
    assert made.get_providers() == [OURS, CPU]
    assert placement(made) == {"first": OURS, "second": OURS, "third": OURS}
    for scale in (1, 2):
        feeds = {"x": x * scale}
        np.testing.assert_allclose(
            made.run(None, feeds)[0], expected(models.chain(), feeds), rtol=1e-6
        )
    assert _native.ep_device_statistics(0)["most_in_use"] > 0


def test_kernels_run_on_one_stream_of_the_session(ep, fake_cuda, x):
    seen = []

    @ep.kernel("Relu", types="float32")
    def relu(ctx, x):
        seen.append((ctx.device, ctx.stream, ctx.xp.stream()))
        ctx.xp.maximum(x, 0, out=ctx.out(x.shape, x.dtype))

    made = ep.session(models.chain(), device="cuda:1")
    fake_cuda.module.launches.clear()
    made.run(None, {"x": x})
    ((device, stream, current),) = seen
    assert device == "cuda:1"
    assert stream
    assert current == stream
    assert set(fake_cuda.module.launches) == {(1, stream)}
    assert fake_cuda.module.stream() is None  # the caller's stream is current again


def test_copies_between_providers_wait_for_the_stream(ep, fake_cuda, x):
    fake_cuda.set_delay(2000)
    made = session(models.chain(), ep.provider("cuda:0", nodes=["first", "third"]))
    assert placement(made)["second"] == CPU
    for scale in (1, 2, 3):
        feeds = {"x": x * scale}
        np.testing.assert_allclose(
            made.run(None, feeds)[0], expected(models.chain(), feeds), rtol=1e-6
        )


@pytest.mark.parametrize("index", [0, 1])
def test_values_move_between_host_and_devices(ep, fake_cuda, x, index):
    ep.provider(f"cuda:{index}")
    value = on_device(x, index)
    assert _native.ep_device_of(value.data_ptr()) == index
    np.testing.assert_array_equal(value.numpy(), x)
    address = value.data_ptr()
    value.update_inplace(x * 3)
    assert value.data_ptr() == address
    np.testing.assert_array_equal(value.numpy(), x * 3)


def test_runs_of_several_threads_have_streams_of_their_own(ep, fake_cuda, x):
    seen, two = set(), threading.Barrier(2)
    calls = itertools.count()

    @ep.kernel("Relu", types="float32")
    def relu(ctx, x):
        seen.add(ctx.stream)
        if next(calls) < 2:
            two.wait()  # until two runs are in progress
        ctx.xp.maximum(x, 0, out=ctx.out(x.shape, x.dtype))

    fake_cuda.set_delay(300)
    made = ep.session(models.chain(), device="cuda:0")
    right = [expected(models.chain(), {"x": x * i}) for i in range(40)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda i: made.run(None, {"x": x * i})[0], range(40)))
    for value, wanted in zip(results, right, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-5)
    assert 1 < len(seen) <= 8


def test_sessions_on_two_devices_run_side_by_side(ep, fake_cuda, x):
    fake_cuda.set_delay(300)
    both = [ep.session(models.chain(), device=f"cuda:{i}") for i in (0, 1)]
    right = expected(models.chain(), {"x": x})
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda i: both[i % 2].run(None, {"x": x})[0], range(20)))
    for value in results:
        np.testing.assert_allclose(value, right, rtol=1e-6)


def test_a_value_of_one_device_is_an_input_on_another(ep, fake_cuda, x):
    made = ep.session(models.chain(), device="cuda:1")
    ep.provider("cuda:0")
    value = on_device(x)
    (result,) = made.run_with_ort_values(None, {"x": value})
    np.testing.assert_allclose(result.numpy(), expected(models.chain(), {"x": x}), rtol=1e-6)


def test_a_session_frees_its_streams_and_memory(ep, fake_cuda, x):
    streams = fake_cuda.streams()
    in_use = _native.ep_device_statistics(0)["in_use"]
    made = ep.session(models.chain(), device="cuda:0")
    made.run(None, {"x": x})
    assert fake_cuda.streams() > streams
    del made
    gc.collect()
    assert fake_cuda.streams() == streams
    assert _native.ep_device_statistics(0)["in_use"] == in_use


def test_a_session_shares_a_stream_of_the_user(ep, fake_cuda, x):
    seen = []

    @ep.kernel("Relu", types="float32")
    def relu(ctx, x):
        seen.append(ctx.stream)
        ctx.xp.maximum(x, 0, out=ctx.out(x.shape, x.dtype))

    with fake_cuda.module.cuda.Device(0):
        stream = fake_cuda.create_stream()
        made = ep.session(models.chain(), device="cuda:0", stream=stream)
        made.run(None, {"x": x})
        assert seen == [stream]
        del made
        gc.collect()
        fake_cuda.destroy_stream(stream)  # it is still the user's


def test_constant_inputs_in_host_memory_stay_numpy_arrays(ep, fake_cuda, x):
    seen = []

    @ep.kernel("Expand", host_inputs=[1])
    def expand(ctx, x, shape):
        seen.append((type(x).__name__, type(shape)))
        ctx.out(tuple(shape), x.dtype)[:] = x

    feeds = {"x": x[:1], "shape": np.array([3, 4])}
    node = helper.make_node("Expand", ["x", "shape"], ["y"], name="node")
    made = session(model([node], feeds, {"y": np.float32}), ep.provider("cuda:0"))
    np.testing.assert_array_equal(made.run(None, feeds)[0], np.broadcast_to(x[:1], (3, 4)))
    assert seen == [("Array", np.ndarray)]


def test_an_operator_without_a_schema_runs_on_the_device(ep, fake_cuda, x):
    @ep.kernel("Twice", domain="com.cuda")
    def twice(ctx, x):
        seen.append(ctx.device)
        ctx.xp.multiply(x, 2, out=ctx.out(x.shape, x.dtype))

    seen = []
    node = helper.make_node("Twice", ["x"], ["y"], name="node", domain="com.cuda")
    serialized = model([node], {"x": x}, {"y": np.float32}, domains=["com.cuda"])
    for device in ("cuda:0", "host"):
        made = session(serialized, ep.provider(device))
        np.testing.assert_array_equal(made.run(None, {"x": x})[0], x * 2)
    assert seen == ["cuda:0", "host"]


def test_an_array_is_made_once_for_the_same_memory(ep, fake_cuda, x, monkeypatch):
    made = ep.session(models.chain(), device="cuda:0")
    binding = made.io_binding()
    value = on_device(x)
    binding.bind_ortvalue_input("x", value)
    binding.bind_ortvalue_output(made.get_outputs()[0].name, on_device(x))
    created = []
    original = fake_cuda.module.ndarray

    def create(shape, dtype, memory):
        created.append(memory.ptr)
        return original(shape, dtype, memory)

    monkeypatch.setattr(fake_cuda.module, "ndarray", create)
    for _ in range(10):
        made.run_with_iobinding(binding)
    assert created.count(value.data_ptr()) == 1


def test_the_allocator_is_called_once_for_many_runs(ep, fake_cuda, x):
    @ep.kernel("Sigmoid", types="float32")
    def sigmoid(ctx, x):  # the built-in one has temporary arrays, which are CuPy's
        ctx.xp.tanh(x, out=ctx.out(x.shape, x.dtype))

    made = ep.session(models.chain(), device="cuda:0")
    made.run(None, {"x": x})
    calls = {n: fake_cuda.calls(n) for n in ("cuMemAlloc", "cuMemFree", "cuStreamCreate")}
    own = _native.ep_device_statistics(0)["allocations"]
    for _ in range(20):
        made.run(None, {"x": x})
    assert {n: fake_cuda.calls(n) for n in calls} == calls
    assert _native.ep_device_statistics(0)["allocations"] > own


def test_policies_and_other_sessions_stay_as_they_were(ep, fake_cuda):
    ep.provider("cuda:0")
    for policy in onnxruntime.OrtExecutionProviderDevicePolicy.__members__.values():
        options = onnxruntime.SessionOptions()
        options.set_provider_selection_policy(policy)
        assert OURS not in onnxruntime.InferenceSession(models.chain(), options).get_providers()


def test_verify_compares_on_the_device(ep, fake_cuda, x):
    table = ep.verify(models.chain(), {"x": x}, device="cuda:0", repeats=1)
    assert (table["provider"] == OURS).all()
    assert table["matches"].all()


@pytest.mark.usefixtures("installed")
def test_nodes_are_ops_of_a_profile_and_their_launches_lie_in_them(ep, fake_cuda, x):
    import epprof_nb

    @ep.kernel("Relu", types="float32")
    def relu(ctx, x):
        with epprof_nb.op("launch"):
            ctx.xp.maximum(x, 0, out=ctx.out(x.shape, x.dtype))

    made = ep.session(models.chain(), device="cuda:0")
    with epprof_nb.profile() as prof:
        for _ in range(3):
            made.run(None, {"x": x})
    found = nodes(prof)[nodes(prof)["provider"] == OURS]
    assert sorted(found["name"][~found["name"].str.startswith("Memcpy")]) == sorted(
        ["first", "second", "third"] * 3
    )
    launches = prof.ops[prof.ops["name"] == "launch"]
    assert len(launches) == 3
    assert set(prof.ops.loc[launches["parent_op_id"], "name"]) == {"first"}
    assert not (prof.activities["kind"] == "kernel").any()  # CUPTI's to record, not the host's


def test_pinned_memory_is_not_used_again_while_it_is_copied(ep, fake_cuda, x):
    ep.provider("cuda:0")
    (device,) = (
        d for d in onnxruntime.get_ep_devices() if d.ep_metadata.get("cuda_device_id") == "0"
    )
    pinned = device.memory_info(onnxruntime.OrtDeviceMemoryType.HOST_ACCESSIBLE)
    assert (pinned.name, pinned.device_vendor_id) == ("CudaPinned", 0x10DE)
    create = onnxruntime.OrtValue.ortvalue_from_shape_and_type
    if "memory_info" not in inspect.signature(create).parameters:
        pytest.skip("this release allocates no pinned memory from Python")
    made = ep.session(models.chain(), device="cuda:0")
    fake_cuda.set_delay(500)
    before = fake_cuda.calls("cuMemHostAlloc")
    for scale in range(1, 6):
        value = create(x.shape, np.float32, memory_info=pinned)
        scaled = x * scale
        ctypes.memmove(value.data_ptr(), scaled.ctypes.data, scaled.nbytes)
        (result,) = made.run_with_ort_values(None, {"x": value})
        np.testing.assert_allclose(
            result.numpy(), expected(models.chain(), {"x": x * scale}), rtol=1e-6
        )
    assert fake_cuda.calls("cuMemHostAlloc") - before <= 2  # the previous value's and this one's
