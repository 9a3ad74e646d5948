"""Faults of CUDA devices: missing packages, wrong options, memory, errors of the driver."""

from __future__ import annotations

import builtins
import multiprocessing
import subprocess
import sys
import threading
import time

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from epprof_nb import _native
from epprof_nb.core.errors import KernelError
from epprof_nb.ep import cuda
from tests.ep.fake_cuda.library import OUT_OF_MEMORY
from tests.ep.sessions import CPU, model, session
from tests.ort import models
from tests.paths import ROOT


@pytest.fixture
def ready(ep, fake_cuda):
    ep.provider("cuda:0")
    return ep


def one_node(op_type="Abs"):
    node = helper.make_node(op_type, ["x"], ["y"], name="node")
    return model([node], {"x": np.zeros((2, 4), np.float32)}, {"y": np.float32})


def test_a_device_that_does_not_exist_is_refused_with_those_that_do(ready):
    with pytest.raises(KernelError, match=r'"cuda:7" does not exist.*"cuda:0", "cuda:1"'):
        ready.provider("cuda:7")


def test_a_bad_device_id_falls_back_and_a_profile_says_so(ready, installed, x, capfd):
    import epprof_nb

    name, options = ready.provider("cuda:0")
    made = installed.InferenceSession(
        models.chain(), providers=[(name, {**options, "device_id": "9"}), CPU]
    )
    with epprof_nb.profile() as prof:
        made.run(None, {"x": x})
    assert "with device_id=9" in "".join(capfd.readouterr())
    assert made.get_providers() == [CPU]
    assert any("was created for EpprofExecutionProvider" in n for n in prof.info["notes"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"device_id": "1"}, "device is cuda:0, but ONNX Runtime has chosen cuda:1"),
        ({"device": "cuda:1"}, "device is cuda:1, but ONNX Runtime has chosen cuda:0"),
        ({"device": "host"}, "device is host, but ONNX Runtime has chosen cuda:0"),
    ],
)
def test_options_that_contradict_each_other_are_refused(ready, changes, said):
    name, options = ready.provider("cuda:0")
    with pytest.raises(KernelError, match=said):
        session(models.chain(), (name, {**options, **changes}))


@pytest.mark.parametrize("stream", [0, -1, "4096"])
def test_a_stream_that_cannot_be_shared_is_refused(ready, stream):
    with pytest.raises(KernelError, match="is not the address of a stream"):
        ready.provider("cuda:0", stream=stream)


def test_the_host_device_has_no_stream(ep):
    with pytest.raises(KernelError, match="stream= is the address of a CUDA stream"):
        ep.provider("host", stream=4096)


def test_missing_cupy_is_told_with_its_package(driver, monkeypatch):
    original = builtins.__import__

    def without_cupy(name, *args, **kwargs):
        if name == "cupy":
            raise ImportError("No module named 'cupy'")
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_cupy)
    with pytest.raises(KernelError, match=r"need CuPy.*No module.*pip install cupy-cuda13x"):
        cuda.check_device(0)


def test_cupy_for_a_newer_cuda_than_the_driver_is_told(ready, fake_cuda, monkeypatch):
    monkeypatch.setattr(fake_cuda.module.cuda.runtime, "driverGetVersion", lambda: 12080)
    with pytest.raises(KernelError, match=r"for CUDA 13, but the driver supports CUDA 12.*cuda12x"):
        ready.provider("cuda:0")


def test_cupy_that_does_not_work_is_told(ready, fake_cuda):
    fake_cuda.fail("cuMemAlloc", OUT_OF_MEMORY)
    with pytest.raises(KernelError, match="does not work on cuda:0: the device has no memory"):
        ready.provider("cuda:0")


def test_a_tensor_too_large_names_the_node_the_device_and_sizes(ready, x):
    @ready.kernel("Abs")
    def huge(ctx, x):
        ctx.out((2**20, 2**10), x.dtype)  # 4 GiB on a device of 1 GiB

    made = session(one_node(), ready.provider("cuda:0"))
    with pytest.raises(
        Exception,
        match=rf"node 'node' .*MemoryError.*output 0.*cuda:0 has no memory left.* {2**32} bytes"
        rf".*of the device's {2**30} bytes are free",
    ):
        made.run(None, {"x": x})
    ready.kernel("Abs")(lambda ctx, x: ctx.xp.abs(x, out=ctx.out(x.shape)) and None)
    np.testing.assert_array_equal(made.run(None, {"x": x})[0], np.abs(x))


def test_an_input_too_large_is_reported_and_the_session_goes_on(ready, fake_cuda, x):
    made = session(one_node(), ready.provider("cuda:0"))
    made.run(None, {"x": x})
    big = np.ones((1 << 22, 4), np.float32)
    with (
        fake_cuda.memory_of(fake_cuda.used() + 1000),
        pytest.raises(Exception, match="Allocation failed") as raised,
    ):
        made.run(None, {"x": big})
    (note,) = raised.value.__notes__
    assert f"cuda:0 has no memory left for a tensor of {big.nbytes} bytes" in note
    np.testing.assert_array_equal(made.run(None, {"x": x})[0], np.abs(x))


def test_an_error_of_the_driver_is_named_and_nothing_hangs(ready, fake_cuda, x):
    made = session(one_node(), ready.provider("cuda:0"))
    made.run(None, {"x": x})
    with (
        fake_cuda.sticky(),
        pytest.raises(Exception, match="CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access"),
    ):
        made.run(None, {"x": x})


@pytest.mark.parametrize("ends_well", [True, False])
@pytest.mark.parametrize("which", ["x", "y"])
def test_an_array_that_the_kernel_keeps_is_told_and_its_memory_stays(
    ready, fake_cuda, x, which, ends_well
):
    kept = []

    @ready.kernel("Abs")
    def keeping(ctx, x):
        y = ctx.xp.abs(x, out=ctx.out(x.shape, x.dtype))
        kept.append(x[:1] if which == "x" else y)
        if not ends_well:
            raise ValueError("out of luck")

    made = session(one_node(), ready.provider("cuda:0"))
    number = "input 0" if which == "x" else "output 0"
    told = rf"keeps {number} after it has returned.*\.copy\(\)" if ends_well else "out of luck"
    with pytest.raises(Exception, match=told):
        made.run(None, {"x": x})
    ready.kernel("Abs")(lambda ctx, x: ctx.xp.abs(x, out=ctx.out(x.shape)) and None)
    for scale in range(2, 12):
        made.run(None, {"x": x * scale})
    with fake_cuda.module.cuda.Device(0):
        np.testing.assert_array_equal(kept[0].get(), x[:1] if which == "x" else np.abs(x))


def test_an_array_that_was_reshaped_in_place_is_not_used_again(ready, x):
    @ready.kernel("Abs")
    def reshaping(ctx, x):
        shapes.append(x.shape)
        x.host = x.host.reshape(-1)  # as CuPy's assignment to x.shape
        ctx.out((2, 4), x.dtype)[:] = 1

    shapes = []
    made = session(one_node(), ready.provider("cuda:0"))
    for _ in range(3):
        made.run(None, {"x": x})
    assert shapes == [(2, 4)] * 3


def test_a_failing_kernel_leaves_the_session_and_the_callers_stream(ready, fake_cuda, x):
    @ready.kernel("Abs")
    def broken(ctx, x):
        raise ValueError("no")

    made = session(one_node(), ready.provider("cuda:0"))
    with pytest.raises(Exception, match=r"node 'node'.*ValueError: no"):
        made.run(None, {"x": x})
    assert fake_cuda.module.stream() is None
    ready.kernel("Abs")(lambda ctx, x: ctx.xp.abs(x, out=ctx.out(x.shape)) and None)
    np.testing.assert_array_equal(made.run(None, {"x": x})[0], np.abs(x))


def test_nothing_waits_for_a_stream_that_is_being_captured(ready, fake_cuda, x):
    seen = []

    @ready.kernel("Abs")
    def absolute(ctx, x):
        seen.append(ctx.stream)
        ctx.xp.abs(x, out=ctx.out(x.shape, x.dtype))

    made = session(one_node(), ready.provider("cuda:0"))
    value = onnxruntime.OrtValue.ortvalue_from_numpy(x, "cuda", 0)
    binding = made.io_binding()
    binding.bind_ortvalue_input("x", value)
    output = onnxruntime.OrtValue.ortvalue_from_numpy(x, "cuda", 0)
    binding.bind_ortvalue_output("y", output)
    made.run_with_iobinding(binding)
    waited = fake_cuda.calls("cuStreamSynchronize")
    with fake_cuda.capturing(seen[0]):
        made.run_with_iobinding(binding)
    assert seen == [seen[0]] * 2
    assert fake_cuda.calls("cuStreamSynchronize") == waited


def _run_in_child(made, x, connection):
    try:
        made.run(None, {"x": x})
    except Exception as error:
        connection.send("".join([str(error), *getattr(error, "__notes__", ())]))


def test_a_forked_child_is_told(ready, x):
    made = session(one_node(), ready.provider("cuda:0"))
    made.run(None, {"x": x})
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=_run_in_child, args=(made, x, theirs))
    child.start()
    assert ours.poll(60)
    assert "CUDA cannot be used in a child process of a fork" in ours.recv()
    child.kill()
    child.join()
    np.testing.assert_array_equal(made.run(None, {"x": x})[0], np.abs(x))


END = """
import numpy as np, onnxruntime
from epprof_nb import ep
from epprof_nb.ep import cuda
from tests.ep.fake_cuda.arrays import Module
from tests.ep.fake_cuda.library import FakeDriver
from tests.ort import models

driver = FakeDriver()
cuda.open_driver(driver.path)
driver.module = Module(driver)
cuda.array_module = lambda: driver.module
made = ep.session(models.chain(), device="cuda:0", enable_cuda_graph=True)
value = onnxruntime.OrtValue.ortvalue_from_numpy(np.ones((2, 4), np.float32), "cuda", 0)
result = onnxruntime.OrtValue.ortvalue_from_shape_and_type((2, 4), np.float32, "cuda", 0)
binding = made.io_binding()
binding.bind_ortvalue_input("x", value)
binding.bind_ortvalue_output("t2", result)
for _ in range(3):
    made.run_with_iobinding(binding)
driver.set_delay(1000)
done = []
made.run_async(None, {"x": np.ones((2, 4), np.float32)}, lambda *_: done.append(1), None)
while not done:
    pass
print(result.numpy().shape, driver.misuse(), flush=True)
"""


def test_python_ends_with_sessions_graphs_and_bindings_alive(driver):
    command = [sys.executable, "-c", END]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.returncode, done.stdout) == (0, "(2, 4) []\n"), done.stderr


def _send_device(address, pipe):
    pipe.send(_native.ep_device_of(address))


def test_a_child_that_is_forked_during_an_allocation_does_not_wait_for_it(ready, fake_cuda):
    value = onnxruntime.OrtValue.ortvalue_from_numpy(np.ones(4, np.float32), "gpu", 0)
    size = _native.ep_device_statistics(1)["reserved"] + (1 << 20)  # more than is free
    allocated = []
    before = fake_cuda.calls("cuMemAlloc")
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    with fake_cuda.holding_allocations():
        thread = threading.Thread(
            target=lambda: allocated.append(_native.ep_device_allocate(1, size))
        )
        thread.start()
        while fake_cuda.calls("cuMemAlloc") == before:
            time.sleep(0.001)
        child = context.Process(target=_send_device, args=(value.data_ptr(), theirs))
        child.start()
        answered = ours.poll(60)
        child.kill()
        child.join()
    thread.join()
    _native.ep_device_free(1, *allocated)
    assert answered
    assert ours.recv() == -1  # the host device


def test_memory_of_the_arena_is_bounded_and_shared_by_streams(ready, x):
    entry = ready.provider("cuda:1")
    big = np.ones((1 << 18, 4), np.float32)
    sessions = [session(one_node(), entry) for _ in range(3)]
    for made in sessions:
        made.run(None, {"x": big})
    reserved = _native.ep_device_statistics(1)["reserved"]
    for made in sessions * 5:
        made.run(None, {"x": big})
    now = _native.ep_device_statistics(1)
    assert now["reserved"] == reserved
    assert now["in_use"] < big.nbytes


def test_a_session_ends_while_the_work_of_a_failed_run_needs_python(ready, fake_cuda, x):
    @ready.kernel("Relu", types="float32")
    def relu(ctx, x):
        ctx.xp.maximum(x, 0, out=ctx.out(x.shape))
        raise ValueError("no")

    made = session(models.chain(), ready.provider("cuda:0"))
    fake_cuda.set_delay(20_000)
    with pytest.raises(Exception, match="ValueError: no"):
        made.run(None, {"x": x})
    del made  # waits for the launch, which is a Python function


def test_a_session_that_ends_waits_without_what_other_work_needs(ready, fake_cuda, x):
    started, freed = threading.Event(), threading.Event()
    memory = _native.ep_device_allocate(0, 64)

    def wait_and_free(_):
        started.set()
        while fake_cuda.calls("cuCtxSynchronize") == before:
            time.sleep(0.001)
        _native.ep_device_free(0, memory)  # while the other thread waits
        freed.set()

    @ready.kernel("Sigmoid", types="float32")
    def sigmoid(ctx, x):
        ctx.xp.tanh(x, out=ctx.out(x.shape, x.dtype))
        ctx.xp.launch(wait_and_free, [])

    ending, other = (ready.session(models.chain(), device="cuda:0") for _ in range(2))
    before = fake_cuda.calls("cuCtxSynchronize")
    run = threading.Thread(target=other.run, args=(None, {"x": x}))
    run.start()
    assert started.wait(120)
    del ending
    run.join(120)
    assert freed.is_set()
    assert not run.is_alive()
