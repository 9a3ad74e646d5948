"""Device memory: OrtValue, IOBinding, copies between nodes, reuse."""

from __future__ import annotations

import resource

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from tests.ep.sessions import CPU, OURS, model, on_cpu, placement, session
from tests.ort import models


@pytest.fixture
def registered(ep):
    ep.provider("host")
    return ep


def test_an_ortvalue_moves_to_the_device_and_back(registered, x):
    value = onnxruntime.OrtValue.ortvalue_from_numpy(x, "gpu", 0)
    assert value.device_name() == "cuda"  # ONNX Runtime's name of any device of this type
    assert value.data_ptr() != x.ctypes.data
    np.testing.assert_array_equal(value.numpy(), x)


def test_an_ortvalue_is_updated_in_place(registered, x):
    value = onnxruntime.OrtValue.ortvalue_from_numpy(x, "gpu", 0)
    address = value.data_ptr()
    value.update_inplace(x * 3)
    assert value.data_ptr() == address
    np.testing.assert_array_equal(value.numpy(), x * 3)


def test_iobinding_keeps_results_on_the_device(registered, x):
    made = registered.session(models.chain())
    binding = made.io_binding()
    binding.bind_ortvalue_input("x", onnxruntime.OrtValue.ortvalue_from_numpy(x, "gpu", 0))
    binding.bind_output(made.get_outputs()[0].name, "gpu", 0)
    made.run_with_iobinding(binding)
    (result,) = binding.get_outputs()
    assert result.device_name() == "cuda"
    expected = on_cpu(models.chain()).run(None, {"x": x})[0]
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


def test_copies_are_nodes_between_providers(registered, x):
    made = session(models.chain(), registered.provider("host", nodes=["first", "third"]))
    assert placement(made) == {"first": OURS, "second": CPU, "third": OURS}
    expected = on_cpu(models.chain()).run(None, {"x": x})[0]
    np.testing.assert_allclose(made.run(None, {"x": x})[0], expected, rtol=1e-6)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,) * 8])
def test_scalars_and_empty_tensors(registered, shape):
    value = np.full(shape, -2, np.float32)
    node = helper.make_node("Abs", ["x"], ["y"], name="node")
    made = session(model([node], {"x": value}, {"y": np.float32}), registered.provider("host"))
    assert placement(made)["node"] == OURS
    result = made.run(None, {"x": value})[0]
    assert result.shape == shape
    assert (result == 2).all()


def test_non_contiguous_inputs_arrive_in_order(registered):
    value = np.arange(12, dtype=np.float32).reshape(3, 4).T
    node = helper.make_node("Neg", ["x"], ["y"], name="node")
    made = session(model([node], {"x": value}, {"y": np.float32}), registered.provider("host"))
    np.testing.assert_array_equal(made.run(None, {"x": value})[0], -value)


def test_two_sessions_run_in_turn(registered, x):
    first, second = registered.session(models.chain()), registered.session(models.wide())
    expected = [on_cpu(m).run(None, {"x": x})[0] for m in (models.chain(), models.wide())]
    for _ in range(3):
        for made, right in zip((first, second), expected, strict=True):
            np.testing.assert_allclose(made.run(None, {"x": x})[0], right, rtol=1e-5)


def test_memory_stays_flat_over_many_runs(registered):
    made = registered.session(models.chain())
    big = np.ones((5000, 4), np.float32)

    def run(times):
        for i in range(times):
            made.run(None, {"x": big[: 4000 + i % 7]})
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = run(500)
    assert run(3000) - before < 8000  # kB; one array of each run would be 240,000


def test_the_parallel_executor_works(registered, x):
    made = session(
        models.wide(), registered.provider("host"),
        execution_mode=onnxruntime.ExecutionMode.ORT_PARALLEL, inter_op_num_threads=3,
    )  # fmt: skip
    expected = on_cpu(models.wide()).run(None, {"x": x})[0]
    for _ in range(20):
        np.testing.assert_allclose(made.run(None, {"x": x})[0], expected, rtol=1e-5)


def test_a_tensor_too_large_names_the_node_and_its_size(ep, x):
    @ep.kernel("Abs")
    def huge(ctx, x):
        ctx.out((2**22, 2**25), x.dtype)

    node = helper.make_node("Abs", ["x"], ["y"], name="node")
    made = session(model([node], {"x": x}, {"y": np.float32}), ep.provider("host"))
    with pytest.raises(Exception, match=f"node 'node' .*MemoryError.*output 0.* {2**49} bytes"):
        made.run(None, {"x": x})
    ep.kernel("Abs")(lambda ctx, x: np.abs(x, out=ctx.out(x.shape)) is None)
    with pytest.raises(Exception, match="returned <class 'bool'>"):
        made.run(None, {"x": x})
