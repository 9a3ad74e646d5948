"""CUDA devices, with a stand-in for NVIDIA's driver and for CuPy."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from epprof_nb import _native
from tests.ep.sessions import CPU, OURS, on_cpu, placement, session
from tests.ort import models


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
    assert current == (1, stream)
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
    value = onnxruntime.OrtValue.ortvalue_from_numpy(x, "cuda", index)
    assert _native.ep_device_of(value.data_ptr()) == index
    np.testing.assert_array_equal(value.numpy(), x)
    address = value.data_ptr()
    value.update_inplace(x * 3)
    assert value.data_ptr() == address
    np.testing.assert_array_equal(value.numpy(), x * 3)
