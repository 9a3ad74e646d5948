"""Arrays that kernels compute on the host, in graphs of CUDA devices."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.ep.kernels.cuda import constants as cuda_constants
from tests.ep.sessions import on_cpu, one_node


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(cuda_constants, "_kept", {})
    monkeypatch.setattr(cuda_constants, "_kept_bytes", 0)


@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
def test_graphs_hold_a_resize(ep, fake_cuda, recwarn, mode):
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    scales = np.array([1, 1, 2, 2], np.float32)
    serialized, feeds = one_node("Resize", [x, None, scales], {"mode": mode})
    made = ep.session(serialized, device="cuda:0", enable_cuda_graph=True)
    for i in range(4):
        given = {**feeds, "i0": x + i}
        expected = on_cpu(serialized).run(None, given)[0]
        np.testing.assert_allclose(made.run(None, given)[0], expected, rtol=1e-5, atol=1e-5)
    assert not [w for w in recwarn if "captured" in str(w.message)]
    assert all(slot.graph for slot in made._epprof_graphs._threads.slots.by_key.values())


def test_graphs_hold_weights_made_on_the_host(ep, fake_cuda, recwarn):
    numbers = np.int64(4), np.int64(16), np.int64(8000), np.float32(0), np.float32(4000)
    serialized, feeds = one_node("MelWeightMatrix", numbers)
    (expected,) = ep.session(serialized).run(None, feeds)
    made = ep.session(serialized, device="cuda:0", enable_cuda_graph=True)
    for _ in range(4):
        np.testing.assert_array_equal(made.run(None, feeds)[0], expected)
    assert not [w for w in recwarn if "captured" in str(w.message)]


def test_equal_values_are_kept_once_and_not_beyond_the_bound(ep, fake_cuda, monkeypatch):
    seen = []

    @ep.kernel("Relu")
    def relu(ctx, x):
        seen.append([cuda_constants.constant(ctx.xp, v) for v in ([1, 2], [1, 2], [1.0, 2.0])])
        ctx.out(x.shape)[...] = x

    serialized, feeds = one_node("Relu", [np.ones(2, np.float32)])
    made = ep.session(serialized, device="cuda:0")
    made.run(None, feeds)
    made.run(None, feeds)
    (first, again, other), later = seen
    assert first is again is later[0]
    assert other is later[2] is not first
    assert cuda_constants._kept_bytes == first.nbytes + other.nbytes
    monkeypatch.setattr(cuda_constants, "_kept", {})
    monkeypatch.setattr(cuda_constants, "MAX_BYTES", cuda_constants._kept_bytes)
    made.run(None, feeds)
    assert seen[2][0] is not seen[2][1]
    assert not cuda_constants._kept


def test_the_host_has_numpy_arrays():
    values = np.ones(2)
    assert cuda_constants.constant(np, values) is values
    assert not cuda_constants._kept
