"""Sessions as ONNX Runtime's tests of its CUDA plugin create them: a device, and its own options.

Without ``--ep-device cuda:0`` they run on the host device, which needs no options either.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from tests.ep.sessions import OURS, CallCounter, on_cpu, one_node, run_options
from tests.ort import models

NHWC = {"ep.cuda.prefer_nhwc_layout": "1"}
MS = {"domain": "com.microsoft"}
ASSIGNED = "session.record_ep_graph_assignment_info"


def floats(*shape):
    return np.random.default_rng(sum(shape)).random(shape, np.float32)


def ints(*values, dtype=np.int64):
    return np.array(values, dtype)


@pytest.fixture
def device(ep, ep_device):
    """The device of the tests, among those that ONNX Runtime lists."""
    ep.provider(ep_device)
    return next(
        d for d in onnxruntime.get_ep_devices()
        if d.ep_name == OURS and d.ep_metadata["device"] == ep_device
    )  # fmt: skip


@pytest.fixture
def memory(ep_device):
    """The type of the device's memory in ONNX Runtime."""
    return "gpu" if ep_device == "host" else "cuda"


def create(device, serialized, given=(), **entries):
    options = onnxruntime.SessionOptions()
    for key, value in {ASSIGNED: "1", **entries}.items():
        options.add_session_config_entry(key, value)
    options.add_provider_for_devices([device], dict(given))
    return onnxruntime.InferenceSession(serialized, options)


def assigned(made):
    """Domain and type of the operators on our provider."""
    parts = made.get_provider_graph_assignment_info()
    return {(n.domain, n.op_type) for p in parts if p.ep_name == OURS for n in p.get_nodes()}


IMAGE = floats(1, 2, 4, 4)
ROWS = floats(3, 4)
QUANTIZED = np.arange(64, dtype=np.uint8).reshape(4, 16)
CASES = {
    "Add": ((floats(3, 2), floats(3, 2)), {}, 23),
    "MatMul": ((floats(3, 4), floats(4, 5)), {}, 23),
    "Gemm": ((floats(3, 4), floats(4, 5), floats(5)), {"alpha": 2.0, "beta": 0.5}, 23),
    "Conv": ((IMAGE, floats(3, 2, 3, 3)), {"pads": [1, 1, 1, 1]}, 11),
    "Reshape": ((floats(2, 3, 4), ints(6, 4)), {}, 13),
    "Concat": ((floats(2, 3), floats(2, 3)), {"axis": 0}, 13),
    "Gather": ((floats(5, 4), ints(0, 2, 4)), {"axis": 0}, 13),
    "Unsqueeze": ((ROWS, ints(0)), {}, 13),
    "Tile": ((floats(2, 3), ints(2, 3)), {}, 13),
    "CumSum": ((ROWS, np.array(1)), {}, 14),
    "SpaceToDepth": ((floats(1, 2, 4, 4),), {"blocksize": 2}, 13),
    "DepthToSpace": ((floats(1, 8, 2, 2),), {"blocksize": 2, "mode": "DCR"}, 13),
    "Pad": ((floats(2, 3), ints(1, 1, 1, 1), np.float32(0)), {}, 13),
    "Slice": ((floats(4, 6), ints(1, 1), ints(3, 5), ints(0, 1)), {}, 13),
    "Sum": ((ROWS, ROWS + 1, ROWS + 2), {}, 13),
    "Identity": ((ROWS,), {}, 23),
    "Einsum": ((floats(2, 3, 4), floats(2, 4, 5)), {"equation": "bij,bjk->bik"}, 12),
    "Softmax": ((ROWS,), {"axis": 1}, 13),
    "LogSoftmax": ((ROWS,), {"axis": 1}, 13),
    "Relu": ((ROWS - 0.5,), {}, 14),
    "Sigmoid": ((ROWS,), {}, 13),
    "Tanh": ((ROWS,), {}, 13),
    "Transpose": ((floats(2, 3, 4),), {"perm": [2, 0, 1]}, 13),
    "Cast": ((ROWS,), {"to": TensorProto.FLOAT16}, 13),
    "Where": ((ROWS > 0.5, ROWS, -ROWS), {}, 16),
    "Flatten": ((floats(2, 3, 4),), {"axis": 1}, 13),
    "ArgMax": ((ROWS,), {"axis": 1}, 13),
    "ArgMin": ((ROWS,), {"axis": 1}, 13),
    "LayerNormalization": ((floats(2, 3, 8), floats(8), floats(9)[:8]), {}, 17),
    "InstanceNormalization": ((IMAGE, floats(2), floats(3)[:2]), {}, 6),
    "ConvTranspose": ((floats(1, 3, 4, 4), floats(3, 2, 3, 3)), {}, 11),
    "ReduceMean": ((floats(3, 4, 5),), {"axes": [2]}, 13),
    "ReduceSum": ((np.arange(16).reshape(2, 8), ints(1)), {}, 13),
    "GatherND": ((floats(2, 3, 4), ints([1], [2])), {"batch_dims": 1}, 12),
    "ScatterElements": ((floats(3, 3), ints([1, 0, 2], [0, 2, 1]), floats(2, 3)), {}, 16),
    "ScatterND": ((floats(4, 4), ints([0], [2]), floats(2, 4)), {}, 16),
    "OneHot": ((ints(0, 2, 4, 5), ints(6), floats(2)), {"axis": 1}, 11),
    "NonZero": ((ROWS.round(),), {}, 13),
    "GridSample": ((floats(1, 1, 4, 4), floats(1, 2, 2, 2)), {"mode": "bilinear"}, 16),
    "Trilu": ((floats(4, 4),), {"upper": 1}, 14),
    "MatMulInteger": ((QUANTIZED, QUANTIZED.T.copy()), {}, 10),
    "DequantizeLinear": ((QUANTIZED[0], np.float32(0.5), np.uint8(2)), {}, 21),
    "QuantizeLinear": ((floats(6), np.float32(0.5), np.uint8(0)), {}, 21),
    "Dropout": ((ROWS,), {"ratio": 0.0}, 7),
    "Crop": ((floats(1, 1, 4, 4),), {"border": [1, 1, 1, 1]}, 1),
    "LRN": ((IMAGE,), {"size": 3}, 13),
    "Resize": ((IMAGE, None, ints(1, 1, 2, 2).astype(np.float32)), {"mode": "nearest"}, 13),
    "Upsample": ((IMAGE, ints(1, 1, 2, 2).astype(np.float32)), {"mode": "nearest"}, 9),
    "FastGelu": ((ROWS,), MS, 13),
    "Gelu": ((ROWS,), MS, 13),
    "BiasGelu": ((ROWS, floats(4)), MS, 13),
    "FusedMatMul": ((floats(3, 4), floats(4, 5)), {"alpha": 2.0, **MS}, 13),
    "GatherBlockQuantized": (
        (QUANTIZED, ints(0, 2), floats(4, 1)),
        {"gather_axis": 0, "quantize_axis": 1, "block_size": 16, "bits": 8, **MS}, 21,
    ),
    "SkipLayerNormalization": ((floats(2, 8), floats(3, 8)[:2], floats(8), floats(9)[:8]), MS, 13),
    "MatMulNBits": (
        (floats(2, 64), np.full((64, 2, 16), 0x88, np.uint8), np.full((64, 2), 0.02, np.float32)),
        {"K": 64, "N": 64, "bits": 4, "block_size": 32, **MS}, 21,
    ),
}  # fmt: skip


@pytest.mark.parametrize("op_type", CASES)
def test_an_operator_runs_on_the_chosen_device_without_options(device, op_type):
    inputs, attributes, opset = CASES[op_type]
    plain = {k: v for k, v in attributes.items() if k != "domain"}
    domain = attributes.get("domain", "")
    serialized, feeds = one_node(op_type, inputs, plain, opset=opset, domain=domain)
    made = create(device, serialized)
    assert assigned(made)
    for got, wanted in zip(made.run(None, feeds), on_cpu(serialized).run(None, feeds), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-3)


CHANNELS_LAST = {
    "Conv": ((IMAGE, floats(3, 2, 3, 3)), {"pads": [1, 1, 1, 1]}, 11),
    "ConvTranspose": (
        (IMAGE, floats(2, 3, 3, 3)),
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]}, 11,
    ),
    "BatchNormalization": ((IMAGE, *(floats(n)[:2] for n in (2, 3, 4, 5))), {}, 15),
    "MaxPool": ((IMAGE,), {"kernel_shape": [2, 2], "strides": [2, 2]}, 12),
    "AveragePool": ((IMAGE,), {"kernel_shape": [2, 2], "strides": [2, 2]}, 12),
    "GlobalMaxPool": ((IMAGE,), {}, 12),
    "GlobalAveragePool": ((IMAGE,), {}, 12),
    "LRN": ((IMAGE,), {"size": 3}, 13),
    "DepthToSpace": ((floats(1, 4, 2, 2),), {"blocksize": 2, "mode": "DCR"}, 13),
    "SpaceToDepth": ((floats(1, 1, 4, 4),), {"blocksize": 2}, 13),
    "GridSample": ((floats(1, 1, 4, 4), floats(1, 3, 3, 2)), {"mode": "linear"}, 20),
}  # fmt: skip


def run_channels_last(op_type, device, serialized, feeds, **entries):
    """Outputs of a session that prefers the layout, in which our kernel of the operator ran.

    Older releases do not report where converted nodes run.
    """
    from epprof_nb.ep.kernel import REGISTRY

    with CallCounter(REGISTRY.kernels()) as counter:
        outputs = create(device, serialized, **NHWC, **entries).run(None, feeds)
    assert counter.calls["com.ms.internal.nhwc", op_type] == 1
    return outputs


@pytest.mark.parametrize("op_type", CHANNELS_LAST)
def test_the_layout_option_of_the_cuda_provider_moves_the_channels(device, op_type):
    inputs, attributes, opset = CHANNELS_LAST[op_type]
    serialized, feeds = one_node(op_type, inputs, attributes, opset=opset, fixed=True)
    (got,) = run_channels_last(op_type, device, serialized, feeds)
    (wanted,) = on_cpu(serialized).run(None, feeds)
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-3)


def test_a_budget_of_memory_leaves_nodes_on_the_device(device):
    inputs, attributes, opset = CHANNELS_LAST["Conv"]
    serialized, feeds = one_node("Conv", inputs, attributes, opset=opset, fixed=True)
    settings = {"session.resource_cuda_partitioning_settings": "1048576,"}
    run_channels_last("Conv", device, serialized, feeds, **settings)


@pytest.mark.parametrize("nodes", [("MemcpyFromHost",), ("MemcpyToHost",),
                                   ("MemcpyFromHost", "MemcpyToHost")])  # fmt: skip
def test_nodes_that_copy_between_host_and_device_run(device, nodes):
    before, after = "MemcpyFromHost" in nodes, "MemcpyToHost" in nodes
    made = [helper.make_node("Relu", ["a" if before else "x"], ["b" if after else "y"])]
    if before:
        made.insert(0, helper.make_node("MemcpyFromHost", ["x"], ["a"]))
    if after:
        made.append(helper.make_node("MemcpyToHost", ["b"], ["y"]))
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 4]) for name in "xy"]
    graph = helper.make_graph(made, "graph", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 9
    x = ROWS - 0.5
    (y,) = create(device, model.SerializeToString()).run(None, {"x": x})
    np.testing.assert_array_equal(y, np.maximum(x, 0))


def test_options_of_the_cuda_provider_are_accepted_by_device_and_by_name(device, ep_device):
    number = device.ep_options.get("device_id", "0")
    given = {"device_id": number, "use_tf32": "0", "enable_cudnn": "0"}
    x = np.ones((2, 4), np.float32)
    made = create(device, models.chain(), given)
    # ONNX Runtime 1.25 reports no options of providers that are chosen by device.
    assert made.get_provider_options()[OURS].get("device_id", number) == number
    wanted = on_cpu(models.chain()).run(None, {"x": x})[0]
    np.testing.assert_allclose(made.run(None, {"x": x})[0], wanted, rtol=1e-6)
    if ep_device != "host":
        prefixed = {"device_id": number, "ep.cuda.use_tf32": "0", **dict.fromkeys(NHWC, "0")}
        by_name = onnxruntime.InferenceSession(
            models.chain(), providers=[(OURS, prefixed), "CPUExecutionProvider"]
        )
        np.testing.assert_allclose(by_name.run(None, {"x": x})[0], wanted, rtol=1e-6)


def test_a_bound_output_stays_on_the_device(device, memory):
    serialized, feeds = one_node("MatMul", *CASES["MatMul"][:2])
    made = create(device, serialized)
    binding = made.io_binding()
    for name, value in feeds.items():
        binding.bind_cpu_input(name, value)
    binding.bind_output("o0", memory, 0)
    binding.synchronize_inputs()
    made.run_with_iobinding(binding)
    (result,) = binding.copy_outputs_to_cpu()
    np.testing.assert_allclose(result, feeds["i0"] @ feeds["i1"], rtol=1e-3)


needs_graphs = pytest.mark.skipif(
    tuple(int(n) for n in onnxruntime.__version__.split(".")[:2]) < (1, 26),
    reason="graphs need ONNX Runtime 1.26",
)


@needs_graphs
@pytest.mark.release_independent
@pytest.mark.parametrize("more", [{}, {"ep.cuda.arena.use_cuda_mempool": "1"}])
def test_graphs_are_captured_and_replayed_by_the_options_of_the_cuda_provider(device, memory, more):
    serialized, _ = one_node("MatMul", (floats(1, 1), floats(1, 1)))
    made = create(
        device, serialized, {"enable_cuda_graph": "1"},
        **{"ep.cuda.enable_cuda_graph": "1", **more},
    )  # fmt: skip
    bound = {}
    for number, (m, k, n) in {1: (2, 3, 4), 2: (4, 5, 6)}.items():
        shapes = {"i0": (m, k), "i1": (k, n), "o0": (m, n)}
        values = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(shape, "f"), memory, 0)
            for name, shape in shapes.items()
        }
        binding = made.io_binding()
        binding.bind_ortvalue_input("i0", values["i0"])
        binding.bind_ortvalue_input("i1", values["i1"])
        binding.bind_ortvalue_output("o0", values["o0"])
        bound[number] = binding, values, shapes
    for factor in (1, 7, 3):
        for number, (binding, values, shapes) in bound.items():
            a, b = floats(*shapes["i0"]) * factor, floats(*shapes["i1"]) + factor
            values["i0"].update_inplace(a)
            values["i1"].update_inplace(b)
            made.run_with_iobinding(binding, run_options(number))
            np.testing.assert_allclose(values["o0"].numpy(), a @ b, rtol=1e-3)


def test_a_profile_of_a_session_has_the_fields_of_the_trace_format(device, ep_device, tmp_path):
    options = onnxruntime.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    options.add_provider_for_devices([device], {})
    serialized, feeds = one_node("MatMul", *CASES["MatMul"][:2])
    made = onnxruntime.InferenceSession(serialized, options)
    made.run(None, feeds)
    events = json.loads(Path(made.end_profiling()).read_text(encoding="utf-8"))
    assert events
    assert all({"pid", "dur", "ts", "ph", "name", "args"} <= set(event) for event in events)
    kernels = [event for event in events if event["cat"] == "Kernel"]
    assert bool(kernels) == (ep_device != "host")
    assert all({"stream", "block_x"} <= set(event["args"]) for event in kernels)
