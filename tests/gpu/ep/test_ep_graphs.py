"""Graphs of kernels in Python on a CUDA device. Needs CuPy and ONNX Runtime 1.26."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import epprof_nb

pytest.importorskip("onnx", reason="onnx is not installed")
ort = pytest.importorskip("onnxruntime", minversion="1.26", reason="onnxruntime is not installed")
cp = pytest.importorskip("cupy", reason="CuPy is not installed")

from onnx import helper, numpy_helper  # noqa: E402

from epprof_nb import _native, ep  # noqa: E402
from epprof_nb.ep.kernel import REGISTRY  # noqa: E402
from tests.ep.sessions import model  # noqa: E402

NODES = 12
STEP = """
extern "C" __global__ void {name}(const float* x, float* y, int n, float step) {{
  int i = blockDim.x * blockIdx.x + threadIdx.x;
  if (i < n) y[i] = x[i] + step;
}}
"""


@pytest.fixture(autouse=True)
def installed(own_kernels):
    epprof_nb.onnxruntime.install()
    yield
    epprof_nb.onnxruntime.uninstall()


def define(number, body=None):
    """Define the kernel of a node that adds its number; its launch has a name of its own."""
    launch = cp.RawKernel(STEP.format(name=f"step_{number}"), f"step_{number}")

    @ep.kernel(f"Step{number}", domain="steps")
    def step(ctx, x):
        calls.append(number)
        if body is not None:
            body(x)
        y = ctx.out(x.shape, x.dtype)
        launch((-(-x.size // 128),), (128,), (x, y, x.size, cp.float32(number)))

    calls = []
    return calls


def serialized():
    made = [
        helper.make_node(f"Step{i}", [f"v{i}"], [f"v{i + 1}"], name=f"node_{i}", domain="steps")
        for i in range(NODES)
    ]
    feeds = {"v0": np.zeros((2, 3), np.float32)}
    return model(made, feeds, {f"v{NODES}": np.float32}, domains=["steps"])


def session(**options):
    return ep.session(serialized(), device="cuda:0", enable_cuda_graph=True, **options)


def check(made, runs=4, start=0):
    total = sum(range(NODES))
    for i in range(start, start + runs):
        x = np.full((2, 3), i, np.float32)
        np.testing.assert_array_equal(made.run(None, {"v0": x})[0], x + total)


def captured(prof):
    """Name of the kernel and of the node that captured it, for each kernel of a replay."""
    rows = prof.activities[
        prof.activities["graph_node_id"].notna() & (prof.activities["kind"] == "kernel")
    ]
    names = prof.ops["name"].reindex(rows["capture_op_id"]).to_numpy()
    return list(zip(rows["name"], names, strict=True))


EXPECTED = [(f"step_{i}", f"node_{i}") for i in range(NODES)]


def test_replays_follow_their_inputs_without_python():
    calls = [define(i) for i in range(NODES)]
    made = session()
    check(made)
    count = len(calls[0])
    functions = [(kernel, kernel.function) for kernel in REGISTRY.kernels()]
    try:
        for kernel, _ in functions:
            kernel.cell[0] = None  # a call would fail
        check(made, start=10)
    finally:
        for kernel, function in functions:
            kernel.cell[0] = function
    assert len(calls[0]) == count == 3


def test_each_kernel_of_a_replay_has_the_node_that_captured_it_in_the_profile():
    for i in range(NODES):
        define(i)
    made = session()
    with epprof_nb.profile() as prof:
        check(made, runs=5)
    found = captured(prof)
    assert len(found) % NODES == 0
    assert len(found) >= 4 * NODES
    assert found == EXPECTED * (len(found) // NODES)
    launched_by = prof.ops.loc[prof.activities.dropna(subset=["graph_node_id"])["op_id"]]
    assert (launched_by["name"] == "model_run").all()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.get(),
        lambda x: cp.cuda.get_current_stream().synchronize(),
        lambda x: cp.cuda.runtime.deviceSynchronize(),
        lambda x: float(x[0, 0]),
        lambda x: cp.nonzero(x > 0),
        lambda x: cp.asarray(np.ones(3)),
        lambda x: x @ x.T,
        print,
    ],
    ids=["get", "stream", "device", "branch", "shape", "host memory", "cublas", "print"],
)
def test_what_a_capture_does_not_allow_is_named_and_the_run_goes_on(call):
    for i in range(NODES):
        define(i, call if i == NODES - 1 else None)
    made = session()
    with pytest.warns(UserWarning, match=rf"node 'node_{NODES - 1}' .*{__name__.split('.')[-1]}"):
        made.run(None, {"v0": np.zeros((2, 3), np.float32)})
    check(made)
    define(NODES - 1)
    check(made)
    assert not _native.ep_is_capturing()


@pytest.mark.parametrize("waits", [False, True], ids=["launch", "wait"])
def test_work_on_another_stream_is_found(waits):
    other = cp.cuda.Stream(non_blocking=True)
    scale = cp.RawKernel(STEP.format(name="elsewhere"), "elsewhere")
    for i in range(NODES - 1):
        define(i)

    @ep.kernel(f"Step{NODES - 1}", domain="steps")
    def step(ctx, x):
        y = ctx.out(x.shape, x.dtype)
        eager = not _native.ep_is_capturing()
        if eager:
            cp.cuda.get_current_stream().synchronize()
        with other:
            scale((1,), (128,), (x, y, x.size, cp.float32(NODES - 1)))
        if eager or waits:
            other.synchronize()

    made = session()
    # During a capture, CUDA refuses waits for a stream, but allows launches on other streams.
    reason = "other.synchronize" if waits else "launches nothing on the session's stream"
    with pytest.warns(UserWarning, match=rf"node 'node_{NODES - 1}' .*{reason}"):
        made.run(None, {"v0": np.zeros((2, 3), np.float32)})
    check(made)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_products_are_captured(dtype):
    weights = cp.asarray(np.random.default_rng(0).standard_normal((3, 3)).astype(dtype))
    for i in range(NODES):

        def body(x):
            assert ep.matmul(x.astype(dtype), weights).dtype == dtype

        define(i, body)
    made = session()
    with epprof_nb.profile() as prof:
        check(made)
    assert not made._epprof_graphs._warned
    assert len({name for name, _ in captured(prof)}) > NODES  # kernels of cuBLAS among them


def test_arrays_of_cupy_belong_to_the_graph():
    for i in range(NODES):
        define(i, lambda x: cp.exp(x * 2).sum())
    made = session()
    check(made)
    junk = [cp.full((2, 3), 1e9, cp.float32) for _ in range(1000)]
    check(made)
    del junk


def test_threads_warm_up_capture_and_replay_at_once():
    for i in range(NODES):
        define(i)
    made = session()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: check(made, 50, 100 * i), range(8)))


def test_a_stream_of_cupy_captures_and_replays():
    for i in range(NODES):
        define(i)
    stream = cp.cuda.Stream(non_blocking=True)
    made = session(stream=stream.ptr)
    with epprof_nb.profile() as prof:
        check(made)
    kernels = prof.activities[prof.activities["kind"] == "kernel"]
    assert kernels["stream_id"].nunique() == 1


def test_captures_and_releases_leave_no_memory_behind():
    for i in range(NODES):
        define(i)
    made = session()

    def taken_after(times):
        for _ in range(times):
            check(made, 1)
            made.release_captured_graph(0)
        gc.collect()
        # Not the free memory of the device, which other processes change.
        statistics = _native.ep_device_statistics(0)
        in_pool = cp.get_default_memory_pool().total_bytes()
        return statistics["in_use"], statistics["reserved"], in_pool

    assert taken_after(20) == taken_after(200)


def test_sessions_are_created_while_threads_replay():
    """ONNX Runtime copies weights with the GIL held; no replay may need it to finish."""
    for i in range(NODES):
        define(i)
    made, stop = session(), threading.Event()

    def replay():
        while not stop.is_set():
            check(made, 1)

    with ThreadPoolExecutor(4) as pool:
        replaying = [pool.submit(replay) for _ in range(4)]
        try:
            for i in range(20):
                weights = np.full((1 << 20,), i, np.float32)
                value = numpy_helper.from_array(weights, "w")
                node = helper.make_node("Add", ["x", "w"], ["y"], name="add")
                graph = helper.make_graph(
                    [node], "g",
                    [helper.make_tensor_value_info("x", 1, [1 << 20])],
                    [helper.make_tensor_value_info("y", 1, [1 << 20])],
                    [value],
                )  # fmt: skip
                made_now = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
                made_now.ir_version = 9
                other = ep.session(
                    made_now.SerializeToString(), device="cuda:0", enable_cuda_graph=True
                )
                for _ in range(2):
                    np.testing.assert_array_equal(other.run(None, {"x": weights})[0], 2 * weights)
        finally:
            stop.set()
        for each in replaying:
            each.result()
