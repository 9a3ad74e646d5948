"""Nodes whose output is a view of the input: ONNX Runtime places both in the same memory."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

import epprof_nb
from epprof_nb.ep.kernel import REGISTRY
from tests.ep.sessions import model, on_cpu, session

X = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
VIEWS = {
    "Flatten": ([], {"axis": 0}),
    "Identity": ([], {}),
    "Reshape": ([np.array([3, 2])], {}),
    "Squeeze": ([], {}),
    "Unsqueeze": ([np.array([0])], {}),
}


def chain(op_type, *, read_again=False):
    """Abs, a view and Neg; optionally with the sum of all three results."""
    constants, attributes = VIEWS[op_type]
    nodes = [helper.make_node("Abs", ["x"], ["a"], name="abs")]
    for number, value in enumerate(constants):
        nodes.append(helper.make_node("Constant", [], [f"c{number}"], value_ints=value.tolist()))
    names = [f"c{number}" for number in range(len(constants))]
    nodes.append(helper.make_node(op_type, ["a", *names], ["v"], name="view", **attributes))
    nodes.append(helper.make_node("Neg", ["v"], ["y"], name="neg"))
    outputs = {"y": np.float32}
    if read_again:
        nodes.append(helper.make_node("Exp", ["a"], ["z"], name="exp"))
        outputs = {"v": np.float32, "y": np.float32, "z": np.float32}
    return model(nodes, {"x": X}, outputs)


@pytest.fixture
def addresses(ep):
    """Addresses of the first input and of the output of each node, by operator."""

    def address(array):
        return array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr

    found = {}

    class Recorded:
        def __init__(self, ctx):
            self._ctx = ctx

        def __getattr__(self, name):
            return getattr(self._ctx, name)

        def out(self, *args, **kwargs):
            made = self._ctx.out(*args, **kwargs)
            found[self._ctx.op_type].append(address(made))
            return made

    def recording(function):
        def kernel(ctx, *inputs):
            found[ctx.op_type] = [address(inputs[0])]
            function(Recorded(ctx), *inputs)

        return kernel

    functions = [(k, k.function) for k in REGISTRY.kernels()]
    for kernel, function in functions:
        kernel.cell[0] = recording(function)
    yield found
    for kernel, function in functions:
        kernel.cell[0] = function


@pytest.mark.parametrize("op_type", VIEWS)
def test_a_view_lies_in_the_memory_of_its_input(ep, device, addresses, op_type):
    serialized = chain(op_type)
    (got,) = session(serialized, ep.provider(device)).run(None, {"x": X})
    (expected,) = on_cpu(serialized).run(None, {"x": X})
    np.testing.assert_array_equal(got, expected)
    assert got.shape == expected.shape
    assert addresses["Abs"][1] == addresses[op_type][0] == addresses[op_type][1]
    assert addresses[op_type][1] == addresses["Neg"][0]


@pytest.mark.parametrize("op_type", VIEWS)
def test_an_output_of_the_model_has_memory_of_its_own(ep, device, addresses, op_type):
    serialized = chain(op_type, read_again=True)
    got = session(serialized, ep.provider(device)).run(None, {"x": X})
    for value, expected in zip(got, on_cpu(serialized).run(None, {"x": X}), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-6)
    assert addresses[op_type][0] != addresses[op_type][1]


def test_views_are_part_of_graphs(ep, device, recwarn):
    made = ep.session(chain("Reshape"), device=device, enable_cuda_graph=True)
    for factor in (1, 2, 3):
        (got,) = made.run(None, {"x": X * factor})
        np.testing.assert_array_equal(got, -np.abs(X * factor).reshape(3, 2))
    assert not [w for w in recwarn if "captured" in str(w.message)]


def test_a_view_that_is_known_needs_no_call(ep, device, addresses):
    made = session(chain("Reshape"), ep.provider(device))
    for factor in (1, 2, 3):
        addresses.clear()
        addresses.update({"Abs": [], "Neg": []})
        (got,) = made.run(None, {"x": X * factor})
        np.testing.assert_array_equal(got, -np.abs(X * factor).reshape(3, 2))
        assert ("Reshape" in addresses) == (factor == 1)
        # On a CUDA device, later runs repeat the launches of both without a call.
        assert bool(addresses["Abs"]) == (device == "host" or factor == 1)
        assert addresses["Abs"][1:] == addresses["Neg"][:1]


def test_other_shapes_and_other_functions_are_called(ep, device, addresses):
    nodes = [
        helper.make_node("Abs", ["x"], ["a"], name="abs"),
        helper.make_node("Reshape", ["a", "shape"], ["v"], name="view"),
        helper.make_node("Neg", ["v"], ["y"], name="neg"),
    ]
    feeds = {"x": X, "shape": np.array([3, 2])}
    made = session(model(nodes, feeds, {"y": np.float32}), ep.provider(device))
    for x, shape in ((X, [3, 2]), (X, [6, 1]), (X[:1], [3, 1]), (X, [-1]), (X, [1, 6])) * 2:
        (got,) = made.run(None, {"x": x, "shape": np.array(shape)})
        np.testing.assert_array_equal(got, -np.abs(x).reshape(shape))
    addresses.pop("Reshape")
    made.run(None, feeds)
    assert "Reshape" not in addresses
    (kernel,) = (k for k in REGISTRY.kernels() if k.declaration.op_type == "Reshape")
    recorded, calls = kernel.function, []

    def counted(ctx, *inputs):
        calls.append(ctx.name)
        recorded(ctx, *inputs)

    kernel.cell[0] = counted
    for _ in range(3):
        made.run(None, feeds)
    assert calls == ["view"]


def test_empty_axes_remove_every_dimension_of_size_1_as_in_onnx_runtime(ep, device, addresses):
    nodes = [
        helper.make_node("Abs", ["x"], ["a"], name="abs"),
        helper.make_node("Squeeze", ["a", "axes"], ["v"], name="view"),
        helper.make_node("Neg", ["v"], ["y"], name="neg"),
    ]
    feeds = {"x": np.ones((1, 1, 3), np.float32), "axes": np.array([], np.int64)}
    serialized = model(nodes, feeds, {"y": np.float32})
    made, reference = session(serialized, ep.provider(device)), on_cpu(serialized)
    for axes in ([], [0], [1], [0, 1]) * 2:
        feeds["axes"] = np.array(axes, np.int64)
        (got,), (wanted,) = made.run(None, feeds), reference.run(None, feeds)
        assert got.shape == wanted.shape
    addresses.pop("Squeeze")
    feeds["axes"] = np.array([], np.int64)
    assert made.run(None, feeds)[0].shape == (3,)
    assert "Squeeze" not in addresses  # the view is known


def test_a_profile_of_the_host_device_has_all_views(ep):
    made = session(chain("Reshape"), ep.provider("host"))
    made.run(None, {"x": X})
    with epprof_nb.profile() as prof:
        made.run(None, {"x": X})
    assert (prof.activities["name"] == "reshape").sum() == 1
