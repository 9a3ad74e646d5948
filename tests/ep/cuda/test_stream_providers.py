"""The provider that creates the streams of a session: ours, or ONNX Runtime's CUDA provider."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnxruntime
import pytest

from epprof_nb import _native
from epprof_nb.core import added_providers
from epprof_nb.core.errors import KernelError
from epprof_nb.ep import stream_providers
from tests.ep.sessions import CPU, OURS, on_cpu, options, session
from tests.ort import models

CUDA = "CUDAExecutionProvider"


@pytest.fixture
def left(monkeypatch):
    """Calls of the native core while a session is created."""
    told = []
    monkeypatch.setattr(_native, "ep_leave_streams_to_others", told.append)
    return told


@pytest.mark.parametrize(
    ("providers", "available", "expected"),
    [
        ([(OURS, {}), CPU], [CUDA, CPU], False),
        ([(OURS, {}), CUDA, CPU], [CPU], True),
        ([CUDA, (OURS, {})], [CPU], True),
        ([OURS, ("TensorrtExecutionProvider", {}), CPU], [CPU], True),
        (None, [OURS, CUDA, CPU], True),  # ours may be in the SessionOptions
        (None, [OURS, CPU], False),
        ([CPU], [OURS, CPU], False),
    ],
)
def test_the_cuda_provider_creates_them_if_it_is_there(
    left, monkeypatch, providers, available, expected
):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: available)
    with stream_providers.choosing(providers):
        assert left == [expected]
    assert left == [expected, False]


def test_a_session_by_device_has_its_own_streams_unless_cuda_is_added(ep, left, monkeypatch):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [OURS, CUDA, CPU])
    ep.provider("host")
    device = next(d for d in onnxruntime.get_ep_devices() if d.ep_name == OURS)
    options = onnxruntime.SessionOptions()
    options.add_provider_for_devices([device], {})
    with stream_providers.choosing(None, options):
        assert left == [False]
    added_providers.added_to(options).providers.append((CUDA, {}))
    with stream_providers.choosing(None, options):
        assert left == [False, False, True]


def test_a_session_that_fails_leaves_nothing_behind(left):
    with pytest.raises(ValueError, match="no model"), stream_providers.choosing([OURS, CUDA]):
        raise ValueError("no model")
    assert left == [True, False]


def test_a_stream_that_the_cuda_provider_does_not_use_is_refused():
    ours = (OURS, {"stream": "1234"})
    with pytest.raises(KernelError, match=r"\('CUDAExecutionProvider', {'user_compute_stream': '1"):
        stream_providers.check([ours, CUDA, CPU])
    stream_providers.check([ours, (CUDA, {"user_compute_stream": "1234"}), CPU])


@pytest.mark.parametrize(
    ("device", "others", "told"),
    [
        ("cuda:1", CUDA, "CUDAExecutionProvider on cuda:0"),
        ("cuda:0", (CUDA, {"device_id": "1"}), r"\('CUDAExecutionProvider', {'device_id': '0'}\)"),
        ("cuda:1", ("TensorrtExecutionProvider", {"device_id": 2}), r'provider\("cuda:2"\)'),
    ],
)
def test_another_provider_on_another_device_is_refused(device, others, told):
    ours = (OURS, {"device": device})
    with pytest.raises(KernelError, match=told):
        stream_providers.check([ours, others, CPU])


@pytest.mark.parametrize(
    ("device", "others"),
    [("cuda:0", CUDA), ("cuda:1", (CUDA, {"device_id": 1})), ("host", (CUDA, {"device_id": "1"}))],
)
def test_another_provider_on_the_same_device_is_allowed(device, others):
    stream_providers.check([(OURS, {"device": device}), others, CPU])


def test_a_session_that_is_refused_does_not_fall_back_to_the_cpu(ep, fake_cuda):
    providers = [ep.provider("cuda:1"), CUDA, CPU]
    with pytest.raises(KernelError, match="Give both the same device"):
        onnxruntime.InferenceSession(models.chain(), providers=providers)


def test_a_session_without_a_stream_runs_on_the_default_stream(ep, fake_cuda, x, monkeypatch):
    """The CUDA provider is available, but not in the session."""
    seen = []

    @ep.kernel("Relu", types="float32")
    def relu(ctx, x):
        seen.append((ctx.stream, ctx.xp.stream()))
        ctx.xp.maximum(x, 0, out=ctx.out(x.shape))

    entry = ep.provider("cuda:0")
    monkeypatch.setattr(stream_providers, "_is_left_to_others", lambda given: True)
    streams = fake_cuda.streams()
    made = onnxruntime.InferenceSession(models.chain(), options(), providers=[entry, CPU])
    fake_cuda.set_delay(300)
    for scale in (1, 2, 3):
        feeds = {"x": x * np.float32(scale)}
        np.testing.assert_allclose(
            made.run(None, feeds)[0], on_cpu(models.chain()).run(None, feeds)[0], rtol=1e-6
        )
    assert seen == [(0, 0)] * 3
    assert fake_cuda.streams() == streams


def take_what_is_free():
    """Allocate until the driver has to provide memory; return the addresses."""
    regions, taken = _native.ep_device_statistics(0)["regions"], []
    while _native.ep_device_statistics(0)["regions"] == regions:
        taken.append(_native.ep_device_allocate(0, 256))
    return taken


def test_memory_of_streams_of_others_is_not_taken_for_idle(ep, fake_cuda, x, monkeypatch):
    """These streams cannot be queried, because they may have ended."""
    used, taken = {}, []

    @ep.kernel("Sigmoid", types="float32")
    def sigmoid(ctx, x):
        used[ctx.name] = x.data.ptr
        ctx.xp.tanh(x, out=ctx.out(x.shape))
        if ctx.name == "n5":  # the input of n2 is free, and n2 has not run
            with ThreadPoolExecutor(1) as other:
                taken.extend(other.submit(take_what_is_free).result())

    entry = ep.provider("cuda:0")
    monkeypatch.setattr(stream_providers, "_is_left_to_others", lambda given: True)
    made = session(
        models.chain([f"n{i}" for i in range(6)]), entry, enable_mem_reuse=False,
        enable_mem_pattern=False,
    )  # fmt: skip
    fake_cuda.set_delay(20_000)
    made.run(None, {"x": x})
    for address in taken:
        _native.ep_device_free(0, address)
    assert taken
    assert used["n2"] not in taken
