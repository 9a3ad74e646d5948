"""Faults of graphs: the run reports them, and the session remains usable."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time

import numpy as np
import pytest
from onnx import helper

import epprof_nb
from epprof_nb import host
from tests.ep.sessions import model, on_cpu
from tests.ort import models


def graph_session(ep, serialized=None, device="host"):
    return ep.session(serialized or models.chain(), device=device, enable_cuda_graph=True)


def expected(x):
    return on_cpu(models.chain()).run(None, {"x": x})[0]


def sigmoid_with(ep, body):
    """Define the Sigmoid of the chain; `body` is called with the number of the call."""
    calls = []

    @ep.kernel("Sigmoid")
    def sigmoid(ctx, x):
        calls.append(len(calls))
        body(len(calls))
        ctx.xp.divide(1, 1 + ctx.xp.exp(-x), out=ctx.out(x.shape, x.dtype))

    return calls


def check(session, x, times=4):
    for i in range(times):
        np.testing.assert_allclose(session.run(None, {"x": x + i})[0], expected(x + i), rtol=1e-6)


ILLEGAL = {
    "synchronize": (lambda _: host.synchronize(), r"waits for the device.*Leave it out"),
    "stream": (
        lambda _: host.default_stream().synchronize(),
        r"waits for the device with Stream\.synchronize.*Leave it out",
    ),
    "launch": (
        lambda _: host.launch(np.add, 1, 2, stream=host.Stream()),
        r"launches work on stream.*in the kernel itself",
    ),
    "to_device": (lambda _: host.to_device(np.ones(2)), r"launches work on stream"),
}


class TestIllegalInACapture:
    @pytest.mark.parametrize("call", list(ILLEGAL))
    def test_node_line_and_remedy_are_named_and_the_run_goes_on(self, ep, x, call):
        body, what = ILLEGAL[call]
        calls = sigmoid_with(ep, body)
        made = graph_session(ep)
        with pytest.warns(UserWarning, match="node 'third' " + what) as told:
            result = made.run(None, {"x": x})[0]
        np.testing.assert_allclose(result, expected(x), rtol=1e-6)
        assert f"{__file__}:" in str(told[0].message)
        count = len(calls)
        check(made, x)
        assert len(calls) == count + 4  # eager: one call for each run, and no further warning

    def test_an_error_that_the_kernel_catches_counts_too(self, ep, x):
        def body(_):
            with contextlib.suppress(RuntimeError):
                host.synchronize()

        sigmoid_with(ep, body)
        made = graph_session(ep)
        with pytest.warns(UserWarning, match="node 'third' waits for the device"):
            made.run(None, {"x": x})
        check(made, x)

    def test_other_threads_may_do_so_meanwhile(self, ep, x, recwarn):
        sigmoid_with(ep, lambda _: run_in_thread(host.synchronize))
        check(graph_session(ep), x)
        assert not [w for w in recwarn if "captured" in str(w.message)]

    def test_an_output_in_host_memory_that_depends_on_the_device(self, ep, x):
        @ep.kernel("Largest", domain="of.tests", host_outputs=[0])
        def largest(ctx, x):
            ctx.out((), x.dtype)[...] = x.max()

        node = helper.make_node("Largest", ["x"], ["y"], name="largest", domain="of.tests")
        made = graph_session(ep, model([node], {"x": x}, {"y": np.float32}, domains=["of.tests"]))
        with pytest.warns(UserWarning, match="node 'largest' writes an output in host memory"):
            made.run(None, {"x": x})
        for i in range(3):
            assert made.run(None, {"x": x + i})[0] == x.max() + i

    def test_defined_again_it_is_captured(self, ep, x):
        sigmoid_with(ep, ILLEGAL["synchronize"][0])
        made = graph_session(ep)
        with pytest.warns(UserWarning, match="waits for the device"):
            made.run(None, {"x": x})
        calls = sigmoid_with(ep, lambda _: None)
        check(made, x)
        assert len(calls) == 3 + 3


def test_a_shape_that_depends_on_data_ends_the_graph(ep):
    @ep.kernel("Positive", domain="of.tests")
    def positive(ctx, x):
        found = x[x > 0]
        ctx.out(found.shape, x.dtype)[...] = found

    feeds = {"x": np.array([1, -1, 2], np.float32)}
    node = helper.make_node("Positive", ["x"], ["y"], name="positive", domain="of.tests")
    made = graph_session(ep, model([node], feeds, {"y": np.float32}, domains=["of.tests"]))
    np.testing.assert_array_equal(made.run(None, feeds)[0], [1, 2])
    np.testing.assert_array_equal(made.run(None, {"x": feeds["x"] * 2})[0], [2, 4])
    with pytest.warns(UserWarning, match="node 'positive' makes an output of another shape"):
        (result,) = made.run(None, {"x": np.array([1, 2, 3], np.float32)})
    np.testing.assert_array_equal(result, [1, 2, 3])
    np.testing.assert_array_equal(made.run(None, {"x": -feeds["x"]})[0], [1])


def test_a_kernel_defined_again_is_told_and_captured_again(ep, device, x):
    sigmoid_with(ep, lambda _: None)
    made = graph_session(ep, device=device)
    made.run(None, {"x": x})

    @ep.kernel("Sigmoid")
    def tenfold(ctx, x):
        ctx.xp.multiply(x, 10, out=ctx.out(x.shape, x.dtype))

    with pytest.warns(UserWarning, match="kernel of node 'third' was defined again") as told:
        first = made.run(None, {"x": x})[0]
    assert told[0].filename == __file__
    second = made.run(None, {"x": x})[0]
    eager = ep.session(models.chain(), device=device).run(None, {"x": x})[0]
    np.testing.assert_array_equal(first, eager)
    np.testing.assert_array_equal(second, eager)


def test_another_kernel_defined_again_changes_nothing(ep, device, x, recwarn):
    calls = sigmoid_with(ep, lambda _: None)
    made = graph_session(ep, device=device)
    made.run(None, {"x": x})
    for _ in range(2):

        @ep.kernel("Softplus")
        def softplus(ctx, x):
            ctx.out(x.shape, x.dtype)[...] = 0

    made.run(None, {"x": x})
    assert len(calls) == (4 if device == "host" else 3)  # a replay on CUDA runs no Python
    assert not [w for w in recwarn if "defined again" in str(w.message)]


@pytest.mark.parametrize("fails_at", [1, 2, 3, 4])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_in_any_run_ends_that_run_alone(ep, device, x, fails_at, error):
    """Call 3 is the capture, call 4 a replay on the host device; one on CUDA runs no Python."""

    def body(call):
        if call == fails_at:
            raise error("broken on purpose")

    sigmoid_with(ep, body)
    made = graph_session(ep, device=device)
    failures = []
    for i in range(5):
        try:
            result = made.run(None, {"x": x + i})[0]
        except BaseException as failed:
            failures.append(failed)
        else:
            np.testing.assert_allclose(result, expected(x + i), rtol=1e-6)
    assert not epprof_nb._native.ep_is_capturing()
    assert len(failures) == (device == "host" or fails_at < 4)
    if not failures:
        return
    if error is KeyboardInterrupt:
        assert isinstance(failures[0], KeyboardInterrupt)
    else:
        assert "node 'third' (Sigmoid)" in str(failures[0])
        assert "broken on purpose" in str(failures[0])


@pytest.mark.parametrize("captured", [True, False], ids=["replay", "capture"])
def test_ctrl_c_at_any_line_leaves_no_run_marked(ep, device, x, captured):
    made = graph_session(ep, device=device)
    made.run(None, {"x": x})
    want = expected(x + 1)
    name = made.get_outputs()[0].name
    interrupts = 0
    while True:
        if not captured:
            made.release_captured_graph(0)
        try:
            interrupt_at_line(interrupts, lambda: made.run(None, {"x": x}))
        except KeyboardInterrupt:
            interrupts += 1
        else:
            break  # past the last line
        # A run that is not marked is eager, so it reads its own inputs.
        (result,) = made._sess.run([name], {"x": x + 1}, None)
        np.testing.assert_allclose(result, want, rtol=1e-6)
    assert interrupts > 10


def interrupt_at_line(number, call):
    """Send SIGINT at a line of the module that marks runs, counted from the start of the call."""
    seen = 0

    def trace(frame, event, _):
        nonlocal seen
        if not frame.f_code.co_filename.endswith("epprof_nb/ep/graphs/session_graphs.py"):
            return None
        if event == "line":
            seen += 1
            if seen == number + 1:
                signal.raise_signal(signal.SIGINT)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)


def test_a_kernel_that_keeps_an_input_is_refused_in_a_replay_too(ep, x):
    kept = []

    @ep.kernel("Sigmoid")
    def sigmoid(ctx, x):
        if len(kept) == 3:
            kept.append(x)
        else:
            kept.append(None)
        np.divide(1, 1 + np.exp(-x), out=ctx.out(x.shape, x.dtype))

    made = graph_session(ep)
    made.run(None, {"x": x})
    with pytest.raises(Exception, match=r"keeps input 0.*\.copy\(\)"):
        made.run(None, {"x": x})
    check(made, x)


def test_out_of_memory_in_the_capture_ends_that_run_alone(ep, device, x):
    def body(call):
        if call == 3:
            raise MemoryError("no memory left for a graph")

    sigmoid_with(ep, body)
    made = graph_session(ep, device=device)
    with pytest.raises(Exception, match="no memory left for a graph"):
        made.run(None, {"x": x})
    check(made, x)


def test_a_node_may_run_a_session_with_graphs(ep, x):
    inner = graph_session(ep)

    @ep.kernel("Inner", domain="of.tests")
    def run_inner(ctx, x):
        ctx.out((2, 4), x.dtype)[...] = inner.run(None, {"x": x.copy()})[0]

    node = helper.make_node("Inner", ["x"], ["y"], name="inner", domain="of.tests")
    outer = graph_session(ep, model([node], {"x": x}, {"y": np.float32}, domains=["of.tests"]))
    want = expected(x)
    for i in range(5):
        np.testing.assert_allclose(outer.run(None, {"x": x + i})[0], expected(x + i), rtol=1e-6)
        np.testing.assert_allclose(inner.run(None, {"x": x})[0], want, rtol=1e-6)


def test_a_session_that_is_dropped_while_another_thread_replays(ep, device, x):
    sigmoid_with(ep, lambda call: time.sleep(0.05) if call > 3 else None)
    made = [graph_session(ep, device=device)]
    made[0].run(None, {"x": x})
    results = []

    def work(session):
        results.extend(session.run(None, {"x": x + i})[0] for i in range(3))

    thread = threading.Thread(target=work, args=(made[0],))
    thread.start()
    made.clear()
    thread.join()
    for i, result in enumerate(results):
        np.testing.assert_allclose(result, expected(x + i), rtol=1e-6)


def run_in_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()
