"""Graphs of a user's IOBinding: captured if all its buffers are fixed, right in any case."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

from tests.ep.sessions import on_cpu, run_options
from tests.ort import models


@pytest.fixture
def on_device(memory):
    return lambda array: onnxruntime.OrtValue.ortvalue_from_numpy(array, memory, 0)


@pytest.fixture
def memory(device):
    """ONNX Runtime's name of the device's memory."""
    return "gpu" if device == "host" else "cuda"


def expected(x):
    return on_cpu(models.chain()).run(None, {"x": x})[0]


class Bound:
    """A binding with buffers on the device for the input and the output."""

    def __init__(self, on_device, session, x):
        self.session = session
        self.x, self.y = on_device(x), on_device(np.zeros((2, 4), np.float32))
        self.binding = session.io_binding()
        self.binding.bind_ortvalue_input("x", self.x)
        self.binding.bind_ortvalue_output(session.get_outputs()[0].name, self.y)

    def check(self, x, options=None):
        self.x.update_inplace(x)
        self.session.run_with_iobinding(self.binding, options)
        np.testing.assert_allclose(self.y.numpy(), expected(x), rtol=1e-6)


@pytest.fixture
def session(ep, device, computes):
    return ep.session(models.chain(), device=device, enable_cuda_graph=True)


@pytest.fixture
def bind(on_device, session):
    """Bind a session to buffers on the device."""
    return lambda x: Bound(on_device, session, x)


@pytest.mark.filterwarnings("error::UserWarning")
def test_fixed_buffers_are_captured_and_follow_their_inputs(session, x, computes, bind):
    bound = bind(x)
    bound.check(x)
    assert len(computes) == 3
    for i in range(4):
        bound.check(x + i)
    assert len(computes) == 3 + 4 * computes.calls_per_replay
    assert len(set(computes[2:])) == 1


@pytest.mark.filterwarnings("error::UserWarning")
def test_arrays_and_a_binding_have_graphs_of_their_own(session, x, bind):
    bound = bind(x)
    for i in range(4):
        bound.check(x + i)
        np.testing.assert_allclose(session.run(None, {"x": x - i})[0], expected(x - i), rtol=1e-6)


def test_a_second_binding_is_named_and_runs_eagerly(session, x, bind):
    first, second = bind(x), bind(x)
    first.check(x)
    with pytest.warns(UserWarning, match=r"not the one of graph 0.*release_captured_graph\(0\)"):
        second.check(x + 1)
    for i in range(3):
        first.check(x + i)
        second.check(x - i)


def test_a_second_binding_may_have_its_own_graph(session, x, recwarn, bind):
    bindings = {number: bind(x) for number in (0, 5)}
    for i in range(4):
        for number, bound in bindings.items():
            bound.check(x + i, run_options(number))
    assert not [w for w in recwarn if "graph" in str(w.message)]


def test_after_the_release_the_second_binding_is_captured(session, x, computes, bind):
    first, second = bind(x), bind(x)
    first.check(x)
    session.release_captured_graph(0)
    computes.clear()
    second.check(x + 1)
    assert len(computes) == 3
    second.check(x + 2)
    assert len(computes) == 3 + computes.calls_per_replay


def test_other_buffers_in_the_same_binding_run_eagerly(session, x, bind, on_device):
    bound = bind(x)
    bound.check(x)
    bound.x = on_device(x)
    bound.binding.bind_ortvalue_input("x", bound.x)
    with pytest.warns(UserWarning, match="not the one of graph 0"):
        bound.check(x + 1)
    bound.check(x + 2)


@pytest.mark.parametrize("kind", ["cpu input", "output by device", "output on the cpu"])
def test_buffers_that_are_not_fixed_run_eagerly(session, x, kind, bind, on_device, memory):
    output = session.get_outputs()[0].name
    binding = session.io_binding()
    binding.bind_ortvalue_output(output, on_device(np.zeros((2, 4), np.float32)))
    if kind == "output by device":
        binding.bind_output(output, memory, 0)
    elif kind == "output on the cpu":
        binding.bind_output(output)

    def bind(value):
        if kind == "cpu input":
            binding.bind_cpu_input("x", value)
        else:
            binding.bind_ortvalue_input("x", on_device(value))

    bind(x)
    with pytest.warns(UserWarning, match="has no permanent buffer on the device"):
        session.run_with_iobinding(binding)
    for i in range(4):
        bind(x + i)
        session.run_with_iobinding(binding)
        (result,) = binding.copy_outputs_to_cpu()
        np.testing.assert_allclose(result, expected(x + i), rtol=1e-6)


def test_minus_one_says_nothing(session, x, recwarn):
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output(session.get_outputs()[0].name)
    session.run_with_iobinding(binding, run_options(-1))
    np.testing.assert_allclose(binding.copy_outputs_to_cpu()[0], expected(x), rtol=1e-6)
    assert not [w for w in recwarn if "captured" in str(w.message)]


def test_the_buffers_of_a_graph_stay_until_it_is_released(session, x, bind, on_device):
    bound = bind(x)
    bound.check(x)
    address = bound.y.data_ptr()
    del bound
    others = [on_device(np.zeros((2, 4), np.float32)) for _ in range(50)]
    assert address not in {value.data_ptr() for value in others}


@pytest.mark.filterwarnings("error::UserWarning")
def test_one_binding_is_bound_again_for_each_graph(session, x, on_device):
    name = session.get_outputs()[0].name
    inputs = [on_device(x * i) for i in (1, 2, 3)]
    outputs = [on_device(np.zeros((2, 4), np.float32)) for _ in inputs]
    binding = session.io_binding()
    for i in range(3):
        binding.bind_ortvalue_input("x", inputs[i])
        binding.bind_ortvalue_output(name, outputs[i])
        session.run_with_iobinding(binding, run_options(i))
    for i in range(3):  # by the id alone; the binding has the buffers of the last graph
        inputs[i].update_inplace(x * (i + 10))
        session.run_with_iobinding(binding, run_options(i))
        np.testing.assert_allclose(outputs[i].numpy(), expected(x * (i + 10)), rtol=1e-6)


@pytest.mark.filterwarnings("error::UserWarning")
def test_the_buffers_of_a_graph_outlive_their_binding(session, x, on_device):
    name = session.get_outputs()[0].name
    binding = session.io_binding()
    for i in (1, 2):
        binding.bind_ortvalue_input("x", on_device(x * i))
        binding.bind_ortvalue_output(name, kept := on_device(np.zeros((2, 4), np.float32)))
        session.run_with_iobinding(binding, run_options(i))
    others = [on_device(np.full((2, 4), 7, np.float32)) for _ in range(8)]
    session.run_with_iobinding(binding, run_options(1))
    assert all((other.numpy() == 7).all() for other in others)
    np.testing.assert_allclose(kept.numpy(), expected(x * 2), rtol=1e-6)
