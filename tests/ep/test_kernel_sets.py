"""Sessions share kernels and their registry, and each keeps the kernels it was created with."""

from __future__ import annotations

import gc
import warnings
import weakref

import numpy as np
import pytest
from onnx import helper

from epprof_nb.ep import kernel_sets
from tests.ep.sessions import CPU, OURS, model, placement, session

X = np.array([1, 2, 3], np.float32)


@pytest.fixture
def made(monkeypatch):
    """The device of each set of kernels that is made during the test."""
    devices = []
    make = kernel_sets._native.ep_make_kernels

    def counted(device, kernels):
        devices.append(device)
        return make(device, kernels)

    monkeypatch.setattr(kernel_sets, "_sets", type(kernel_sets._sets)())
    monkeypatch.setattr(kernel_sets._native, "ep_make_kernels", counted)
    return devices


def chain():
    nodes = [
        helper.make_node("Neg", ["x"], ["a"], name="neg"),
        helper.make_node("Exp", ["a"], ["b"], name="exp"),
        helper.make_node("Neg", ["b"], ["y"], name="again"),
    ]
    return model(nodes, {"x": X}, {"y": np.float32})


def scaled(ep, factor, types="float32"):
    """Define Neg to be a multiple."""

    @ep.kernel("Neg", types=types)
    def neg(ctx, x):
        np.multiply(x, factor, out=ctx.out(x.shape, x.dtype))

    return neg


def run(made_session):
    return made_session.run(None, {"x": X})[0]


def expected(factor):
    return np.exp(X * np.float32(factor)) * np.float32(factor)


def test_sessions_with_other_options_share_kernels_and_nothing_else(ep, made):
    serialized = chain()
    every = session(serialized, ep.provider("host"))
    some = session(serialized, ep.provider("host", only=["Neg"]))
    one = session(serialized, ep.provider("host", nodes=["exp"]))
    again = session(serialized, ep.provider("host"))
    assert made == [-1]
    assert placement(every) == placement(again) == {"neg": OURS, "exp": OURS, "again": OURS}
    assert placement(some) == {"neg": OURS, "exp": CPU, "again": OURS}
    assert placement(one) == {"neg": CPU, "exp": OURS, "again": CPU}
    for got in map(run, (every, some, one, again)):
        np.testing.assert_allclose(got, expected(-1), rtol=1e-6)


def test_each_device_and_layout_has_kernels_of_its_own(ep, made, fake_cuda):
    serialized = chain()
    image = {"x": np.ones((1, 2, 4, 4), np.float32)}
    pool = helper.make_node("GlobalAveragePool", ["x"], ["y"], name="pool")
    pooled = model([pool], image, {"y": np.float32})
    for _ in range(2):
        session(pooled, ep.provider("host", prefer_nhwc=True)).run(None, image)
        np.testing.assert_allclose(run(session(serialized, ep.provider("host"))), expected(-1))
        with_cuda = session(serialized, ep.provider("cuda:0"))
        np.testing.assert_allclose(run(with_cuda), expected(-1), rtol=1e-6)
    assert made == [-1, -1, 0]


def test_a_layout_is_preferred_only_for_selected_operators(ep):
    image = {"x": np.ones((1, 2, 4, 4), np.float32)}
    pool = helper.make_node("GlobalAveragePool", ["x"], ["y"], name="pool")
    neg = helper.make_node("Neg", ["y"], ["z"], name="neg")
    serialized = model([pool, neg], image, {"z": np.float32})
    entry = ep.provider("host", only=["Neg"], prefer_nhwc=True)
    assert placement(session(serialized, entry)) == {"pool": CPU, "neg": OURS}


def test_a_redefined_kernel_is_that_of_the_sessions_created_afterwards(ep, made):
    serialized = chain()
    of_package = session(serialized, ep.provider("host"))
    scaled(ep, 2)
    doubled = session(serialized, ep.provider("host"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # earlier sessions keep the previous kernel
        scaled(ep, 3, "float32 float64")
    tripled = session(serialized, ep.provider("host"))
    for got, factor in ((of_package, -1), (doubled, 2), (tripled, 3)):
        np.testing.assert_allclose(run(got), expected(factor), rtol=1e-6)
    scaled(ep, 4, "float32 float64")  # another body only
    np.testing.assert_allclose(run(tripled), expected(4), rtol=1e-6)
    np.testing.assert_allclose(run(doubled), expected(2), rtol=1e-6)
    assert len(made) == 3


def test_the_kernels_of_a_session_live_as_long_as_it(ep, made):
    serialized = chain()
    function = weakref.ref(scaled(ep, 2))
    doubled = session(serialized, ep.provider("host"))
    with pytest.warns(UserWarning, match="Neg have changed"):
        ep.kernel("Neg", types="float64")(lambda ctx, x: None)
    for version in range(22, 22 + kernel_sets._MAX_SETS):
        # Each has other versions, so that the declarations differ.
        ep.kernel("Softsign", types="float32", until=version)(lambda ctx, x: None)
        session(serialized, ep.provider("host"))
    assert len(kernel_sets._sets) == kernel_sets._MAX_SETS
    np.testing.assert_allclose(run(doubled), expected(2), rtol=1e-6)
    del doubled
    gc.collect()
    assert function() is None
