"""Graphs on CUDA devices, with a stand-in for NVIDIA's driver and for CuPy.

Tests that graphs of all devices have in common are in test_graphs.py.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import threading

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from epprof_nb import _native
from epprof_nb.ep import cuda
from epprof_nb.ep.kernel import REGISTRY
from tests.ep.fake_cuda.library import OUT_OF_MEMORY
from tests.ep.sessions import model, on_cpu
from tests.ort import models

INVALIDATED = 901


@pytest.fixture
def new_graphs(fake_cuda):
    """Count captures in progress, graphs and executable ones since the test began."""

    def count():
        gc.collect()
        return tuple(np.subtract(fake_cuda.graphs(), before).tolist())

    gc.collect()
    before = fake_cuda.graphs()
    return count


def expected(x):
    return on_cpu(models.chain()).run(None, {"x": x})[0]


def graph_session(ep, **options):
    return ep.session(models.chain(), device="cuda:0", enable_cuda_graph=True, **options)


def check(session, x, times=4):
    for i in range(times):
        np.testing.assert_allclose(session.run(None, {"x": x + i})[0], expected(x + i), rtol=1e-6)


def sigmoid_with(ep, body):
    """Define the Sigmoid of the chain; `body` gets the context and the input."""
    calls = []

    @ep.kernel("Sigmoid")
    def sigmoid(ctx, x):
        calls.append(ctx.stream)
        body(ctx, x)
        ctx.xp.divide(1, 1 + ctx.xp.exp(-x), out=ctx.out(x.shape, x.dtype))

    return calls


class Bound:
    """A binding of the chain to buffers on the device."""

    def __init__(self, session, x):
        value = onnxruntime.OrtValue.ortvalue_from_numpy
        self.session, self.binding = session, session.io_binding()
        self.x, self.y = value(x, "cuda", 0), value(np.zeros_like(x), "cuda", 0)
        self.binding.bind_ortvalue_input("x", self.x)
        self.binding.bind_ortvalue_output(session.get_outputs()[0].name, self.y)

    def check(self, x):
        self.x.update_inplace(x)
        self.session.run_with_iobinding(self.binding)
        np.testing.assert_allclose(self.y.numpy(), expected(x), rtol=1e-6)


def test_replays_follow_their_inputs_without_python(ep, fake_cuda, x):
    calls = sigmoid_with(ep, lambda ctx, x: None)
    made = graph_session(ep)
    made.run(None, {"x": x})
    bound = Bound(made, x)
    bound.check(x)
    count, launches = len(calls), fake_cuda.calls("cuGraphLaunch")
    functions = [(kernel, kernel.function) for kernel in REGISTRY.kernels()]
    try:
        for kernel, _ in functions:
            kernel.cell[0] = None  # a call would fail
        check(made, x)
        for i in range(3):
            bound.check(x * i)
    finally:
        for kernel, function in functions:
            kernel.cell[0] = function
    assert len(calls) == count
    assert fake_cuda.calls("cuGraphLaunch") == launches + 7


def test_the_run_that_captures_gives_its_results(ep, fake_cuda, x):
    for i in range(3):
        Bound(graph_session(ep), x).check(x + i)


def test_a_capture_takes_no_memory_that_its_warm_up_did_not(ep, fake_cuda, x):
    x = np.tile(x, (1 << 15, 1))
    seen = []

    @ep.kernel("Sigmoid")
    def sigmoid(ctx, x):
        seen.append((fake_cuda.calls("cuMemAlloc"), _native.ep_device_statistics(0)["reserved"]))
        ctx.xp.tanh(x, out=ctx.out(x.shape, x.dtype))  # without memory of CuPy's own

    made = graph_session(ep, min_num_runs_before_cuda_graph_capture=3)
    made.run(None, {"x": x})
    assert len(seen) == 4
    assert seen[-1] == seen[-2]


def test_arrays_of_a_captured_kernel_are_in_the_memory_of_the_graph(ep, fake_cuda, x):
    owners = []

    def body(ctx, x):
        own = x + 1
        owners.append(_native.ep_device_of(own.data.ptr))

    sigmoid_with(ep, body)
    made = graph_session(ep)
    made.run(None, {"x": x})
    assert owners == [None, None, 0]  # CuPy's twice, and the graph's
    reserved = _native.ep_device_statistics(0)["reserved"]
    for _ in range(20):
        made.release_captured_graph(0)
        made.run(None, {"x": x})
    assert _native.ep_device_statistics(0)["reserved"] == reserved


def catch(ctx, x):
    with contextlib.suppress(RuntimeError):
        ctx.xp.synchronize()


ILLEGAL = {
    "get": (lambda ctx, x: x.get(), "StreamCaptureUnsupported.*must not wait for the device"),
    "synchronize": (lambda ctx, x: ctx.xp.synchronize(), "StreamCaptureUnsupported"),
    "branch": (
        lambda ctx, x: 1 if x.get()[0, 0] > 0 else 0,
        "StreamCaptureUnsupported.*results on the host",
    ),
    "shape": (lambda ctx, x: ctx.xp.nonzero(x + 1)[0], "shape depends on data"),
    "host memory": (lambda ctx, x: ctx.xp.asarray([1.0, 2.0]), "arrays from host memory"),
    "library": (
        lambda ctx, x: refuse_library(ctx),
        "cuBLAS through CuPy.*use a library that can be captured",
    ),
}


def refuse_library(ctx):
    if ctx.xp.is_capturing():
        raise NotImplementedError(
            "calling cuBLAS API during stream capture is currently unsupported"
        )


@pytest.mark.parametrize("call", list(ILLEGAL))
def test_node_line_and_remedy_are_named_and_the_run_goes_on(ep, fake_cuda, new_graphs, x, call):
    body, what = ILLEGAL[call]
    calls = sigmoid_with(ep, body)
    bound = Bound(graph_session(ep), x)
    with pytest.warns(
        UserWarning, match=rf"node 'third' (fails in a capture|calls).*{what}"
    ) as told:
        bound.check(x)  # the nodes before it have been captured only
    assert f"{__file__}:" in str(told[0].message)
    assert new_graphs() == (0, 0, 0)
    assert len(calls) == 4  # two that warm up, the capture, and once more
    bound.check(x + 1)
    assert len(calls) == 5
    calls = sigmoid_with(ep, lambda ctx, x: None)
    bound.check(x)
    bound.check(x + 1)
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("body", "what"),
    [(catch, "does not allow, and catches its error"), (None, "launches nothing on the session's")],
    ids=["caught", "another stream"],
)
def test_what_raises_no_error_is_found_too(ep, fake_cuda, x, body, what):
    if body is None:
        stream = fake_cuda.create_stream_of(0)

        @ep.kernel("Sigmoid")
        def sigmoid(ctx, x):
            y = ctx.out(x.shape, x.dtype)
            if not ctx.xp.is_capturing():
                ctx.xp.synchronize()
            with cuda.current_stream(0, stream):
                ctx.xp.divide(1, 1 + ctx.xp.exp(-x), out=y)
                ctx.xp.synchronize()

    else:
        sigmoid_with(ep, body)
    made = graph_session(ep)
    with pytest.warns(UserWarning, match=f"node 'third' .*{what}"):
        made.run(None, {"x": x})
    check(made, x)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_in_the_capture_leaves_no_stream_capturing(ep, new_graphs, x, error):
    def body(ctx, x):
        if ctx.xp.is_capturing() and not failed:
            failed.append(1)
            raise error("broken on purpose")

    failed = []
    sigmoid_with(ep, body)
    made = graph_session(ep)
    with (
        pytest.raises(BaseException, match="broken on purpose")
        if error is ValueError
        else (pytest.raises(KeyboardInterrupt))
    ):
        made.run(None, {"x": x})
    assert new_graphs() == (0, 0, 0)
    check(made, x)
    assert new_graphs() == (0, 1, 1)


def test_no_memory_for_the_executable_graph(ep, fake_cuda, new_graphs, x):
    bound = Bound(graph_session(ep), x)
    fake_cuda.fail("cuGraphInstantiate", OUT_OF_MEMORY)
    with pytest.warns(UserWarning, match=r"not captured: cuGraphInstantiate.*OUT_OF_MEMORY"):
        bound.check(x)
    for i in range(3):
        bound.check(x + i)
    assert new_graphs() == (0, 0, 0)


def test_a_capture_that_cannot_end_is_made_eagerly(ep, fake_cuda, x):
    bound = Bound(graph_session(ep), x)
    fake_cuda.fail("cuStreamEndCapture", INVALIDATED)
    with pytest.warns(UserWarning, match="CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"):
        bound.check(x)
    bound.check(x + 1)


def test_graphs_and_streams_end_with_session_and_thread(ep, fake_cuda, new_graphs, x):
    before = fake_cuda.streams()
    made = graph_session(ep)
    check(made, x)
    thread = threading.Thread(target=check, args=(made, x))
    thread.start()
    thread.join()
    assert new_graphs() == (0, 1, 1)
    del made
    assert new_graphs() == (0, 0, 0)
    assert fake_cuda.streams() <= before + 1  # this thread's, for other sessions


def test_a_stream_of_the_user_captures_and_replays(ep, fake_cuda, x):
    stream = fake_cuda.create_stream_of(0)
    calls = sigmoid_with(ep, lambda ctx, x: None)
    made = graph_session(ep, stream=stream)
    streams = fake_cuda.streams()
    check(made, x)
    assert set(calls) == {stream}
    assert fake_cuda.streams() == streams
    del made
    gc.collect()
    fake_cuda.destroy_stream_of(0, stream)


def test_a_capture_inside_one_of_the_user_is_not_begun(ep, fake_cuda, x):
    stream = fake_cuda.create_stream_of(0)
    graph = ctypes.c_void_p()

    calls = []

    @ep.kernel("Sigmoid")
    def sigmoid(ctx, x):
        ctx.xp.tanh(x, out=ctx.out(x.shape, x.dtype))
        calls.append(ctx.stream)
        if len(calls) == 2:  # the last run that warms up; the next one captures
            begin = fake_cuda.library.cuStreamBeginCapture_v2
            assert begin(ctypes.c_void_p(stream), 1) == 0

    made = graph_session(ep, stream=stream)
    bound = Bound(made, x)
    with pytest.warns(UserWarning, match=r"node 'first' .*stream is being captured already"):
        made.run_with_iobinding(bound.binding)
    assert fake_cuda.graphs()[0] == 1  # it is still the user's to end
    with fake_cuda.module.cuda.Device(0):
        end = fake_cuda.library.cuStreamEndCapture
        assert end(ctypes.c_void_p(stream), ctypes.byref(graph)) == 0
        assert fake_cuda.library.cuGraphDestroy(graph) == 0
        # The run that warmed up did not wait for its end.
        assert fake_cuda.library.cuStreamSynchronize(ctypes.c_void_p(stream)) == 0


def test_waiting_for_the_device_ends_no_capture_of_another_thread(ep, fake_cuda, x):
    entered, done = threading.Event(), threading.Event()

    def body(ctx, x):
        if ctx.xp.is_capturing():
            entered.set()
            assert done.wait(30)

    sigmoid_with(ep, body)
    made, other = graph_session(ep), ep.session(models.chain(), device="cuda:0")
    binding = other.io_binding()
    thread = threading.Thread(target=lambda: made.run(None, {"x": x}))
    thread.start()
    assert entered.wait(30)
    binding.synchronize_inputs()
    binding.synchronize_outputs()
    del other, binding
    gc.collect()  # the session waits for the device
    done.set()
    thread.join()
    made_here = graph_session(ep)
    check(made_here, x)
    assert fake_cuda.graphs()[0] == 0


def test_memory_of_cupy_is_bound_by_its_address(ep, fake_cuda, x, recwarn):
    calls = sigmoid_with(ep, lambda ctx, x: None)
    made = graph_session(ep)
    with fake_cuda.module.cuda.Device(0):
        given, taken = fake_cuda.module.asarray(x), fake_cuda.module.asarray(x * 0)
        fake_cuda.module.synchronize()
        binding = made.io_binding()
        binding.bind_input("x", "cuda", 0, np.float32, x.shape, given.data.ptr)
        name = made.get_outputs()[0].name
        binding.bind_output(name, "cuda", 0, np.float32, x.shape, taken.data.ptr)
        for i in range(4):
            given[:] = fake_cuda.module.asarray(x + i)
            fake_cuda.module.synchronize()
            made.run_with_iobinding(binding)
            np.testing.assert_allclose(taken.get(), expected(x + i), rtol=1e-6)
    assert len(calls) == 3
    assert not [w for w in recwarn if "graph" in str(w.message).lower()]


def test_results_in_host_memory_are_constants_of_the_graph(ep, fake_cuda, x, recwarn):
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"], name="shape"),
        helper.make_node("Abs", ["x"], ["y"], name="abs"),
    ]
    serialized = model(nodes, {"x": x}, {"shape": np.int64, "y": np.float32})
    made = ep.session(serialized, device="cuda:0", enable_cuda_graph=True)
    for i in range(4):
        shape, y = made.run(None, {"x": x - i})
        np.testing.assert_array_equal(shape, x.shape)
        np.testing.assert_array_equal(y, np.abs(x - i))
    assert not [w for w in recwarn if "captured" in str(w.message)]


def test_the_memory_of_graphs_makes_no_allocation_wait(ep, fake_cuda):
    made = graph_session(ep)
    shapes = [np.ones((rows, 4), np.float32) for rows in range(1 << 12, (1 << 12) + 8)]
    for value in shapes:
        made.run(None, {"x": value})
    waited = fake_cuda.calls("cuCtxSynchronize")
    other = ep.session(models.chain(), device="cuda:0")
    for scale in (1, 2, 3):
        other.run(None, {"x": np.ones((scale << 13, 4), np.float32)})
    assert fake_cuda.calls("cuCtxSynchronize") == waited
