"""The stream that is current for CuPy in kernels, and for the user around a run."""

from __future__ import annotations

import sys
import threading
from types import SimpleNamespace

import numpy as np
import onnxruntime
import pytest

from epprof_nb.ep import cuda
from tests.ep.fake_cuda import cuda_module
from tests.ep.sessions import CPU, OURS, helper, model, placement, session
from tests.ort import models


@pytest.fixture
def streams(fake_cuda):
    """The streams of a test: `user`, which is current, and those that kernels see."""
    user = fake_cuda.create_stream_of(0)
    with fake_cuda.module.cuda.Stream.from_external(_Stream(user)):
        yield Streams(fake_cuda.module, user)
        assert fake_cuda.module.stream() == user


class _Stream:
    def __init__(self, address):
        self.address = address

    def __cuda_stream__(self):
        return 0, self.address


class Streams:
    def __init__(self, module, user):
        self.module, self.user, self.seen = module, user, []

    def define(self, ep, op_type, body=lambda: None):
        @ep.kernel(op_type, types="float32")
        def kernel(ctx, x):
            self.seen.append(ctx.xp.stream() == ctx.stream)
            body()
            ctx.xp.tanh(x, out=ctx.out(x.shape, x.dtype))

    def current(self):
        return self.module.stream()


def test_releases_of_cupy_before_14_have_streams_of_others_by_another_name(monkeypatch):
    module = SimpleNamespace(cuda=SimpleNamespace(Stream=object, ExternalStream=lambda *args: args))
    monkeypatch.setattr(cuda, "array_module", lambda: module)
    cuda.current_stream.cache_clear()
    assert cuda.current_stream(1, 1234) == (1234, 1)
    cuda.current_stream.cache_clear()


def test_a_stream_is_made_current_once_a_run(ep, streams, x):
    for op_type in ("Relu", "Sigmoid"):
        streams.define(ep, op_type)
    made = ep.session(models.chain(), device="cuda:0")
    made.run(None, {"x": x})
    before = cuda_module.entered["streams of 0"]
    for i in range(3):
        made.run(None, {"x": x})
        assert cuda_module.entered["streams of 0"] == before + i + 1
        assert streams.current() == streams.user
    assert streams.seen == [True] * 8


def test_the_users_stream_is_current_after_a_run_that_fails_elsewhere(ep, streams, x):
    streams.define(ep, "Relu")
    made = session(models.failing(), ep.provider("cuda:0", nodes=["before"]))
    assert placement(made) == {"before": OURS, "gather": CPU}
    for index in (99, 0, 99):
        feeds = {"x": x, "i": np.array([index], np.int64)}
        if index:
            with pytest.raises(Exception, match="gather"):
                made.run(None, feeds)
        else:
            made.run(None, feeds)
        assert streams.current() == streams.user


def test_the_users_stream_is_current_after_a_kernel_that_fails(ep, streams, x):
    def body():
        raise ValueError("no")

    streams.define(ep, "Sigmoid", body)
    made = ep.session(models.chain(), device="cuda:0")
    with pytest.raises(Exception, match="ValueError: no"):
        made.run(None, {"x": x})
    assert streams.current() == streams.user


def test_a_kernel_that_leaves_another_stream_current_does_not_move_the_next_node(
    ep, fake_cuda, streams, x
):
    other = fake_cuda.module.cuda.Stream.from_external(_Stream(fake_cuda.create_stream_of(0)))
    streams.define(ep, "Relu", other.__enter__)
    streams.define(ep, "Sigmoid", lambda: other.__exit__(None, None, None))
    made = ep.session(models.chain(), device="cuda:0")
    made.run(None, {"x": x})
    assert streams.seen == [True, True]


@pytest.mark.parametrize("device", ["cuda:0", "cuda:1", "host"])
def test_a_kernel_runs_another_session(ep, streams, x, device):
    node, fails = helper.make_node("Neg", ["x"], ["y"], name="node"), [False]

    @ep.kernel("Neg", types="float32")
    def negative(ctx, x):
        ctx.xp.negative(x, out=ctx.out(x.shape))
        if fails[0]:
            raise ValueError("no")

    inner = ep.session(model([node], {"x": x}, {"y": np.float32}), device=device)

    def body():
        outer = streams.current()
        fails[0] = False
        inner.run(None, {"x": x})
        assert streams.current() == outer
        fails[0] = True
        with pytest.raises(Exception, match="ValueError: no"):
            inner.run(None, {"x": x})
        assert streams.current() == outer

    streams.define(ep, "Relu")
    streams.define(ep, "Sigmoid", body)
    made = ep.session(models.chain([f"n{i}" for i in range(6)]), device="cuda:0")
    made.run(None, {"x": x})
    assert streams.seen == [True] * 4


def test_nodes_on_other_threads_have_the_stream_of_their_session(ep, streams):
    for op_type in ("Relu", "Sigmoid", "Tanh", "Neg", "Abs"):
        streams.define(ep, op_type)
    made = session(
        models.wide(), ep.provider("cuda:0"), inter_op_num_threads=4,
        execution_mode=onnxruntime.ExecutionMode.ORT_PARALLEL,
    )  # fmt: skip
    x = np.ones((2, 4), np.float32)
    for _ in range(5):
        made.run(None, {"x": x})
        assert streams.current() == streams.user
    assert len(streams.seen) == 25
    assert all(streams.seen)


def run_async(made, x):
    """Return the result and the error of a run on a thread of ONNX Runtime's pool."""
    ended, told = threading.Event(), []

    def callback(results, _, error):
        told.append((results, error))
        ended.set()

    made.run_async(None, {"x": x}, callback, None)
    assert ended.wait(60)
    return told[0]


@pytest.mark.parametrize("kernel_fails", [False, True])
def test_a_run_on_a_thread_of_the_pool_leaves_its_stream(ep, streams, x, monkeypatch, kernel_fails):
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: unraisable.append(str(u.exc_value)))

    def body():
        if kernel_fails:
            raise ValueError("no")

    streams.define(ep, "Relu")
    streams.define(ep, "Sigmoid", body)
    made = ep.session(models.chain(), device="cuda:0")
    for i in range(3):
        result, error = run_async(made, x + i)
        assert ("ValueError: no" in error) == kernel_fails
        assert kernel_fails or len(result) == 1
        assert streams.current() == streams.user
    assert unraisable == []
    assert streams.seen == [True] * 6


def test_a_session_in_a_kernel_on_a_thread_of_the_pool_leaves_its_stream(
    ep, streams, x, monkeypatch
):
    unraisable, failures = [], []
    monkeypatch.setattr(sys, "unraisablehook", lambda u: unraisable.append(str(u.exc_value)))
    streams.define(ep, "Relu")
    inner = session(models.failing(), ep.provider("cuda:0", nodes=["before"]))

    def body():
        outer = streams.current()
        try:
            inner.run(None, {"x": x, "i": np.array([99], np.int64)})
        except Exception as error:
            failures.append(str(error))
        assert streams.current() == outer

    streams.define(ep, "Sigmoid", body)
    made = ep.session(models.chain(), device="cuda:0")
    for _ in range(2):
        assert run_async(made, x)[1] == ""
    assert unraisable == []
    assert len(failures) == 2
    assert all("gather" in text for text in failures)
    assert all(streams.seen)
