"""Inputs and models that kernels cannot take fail with the node, or go to another provider."""

from __future__ import annotations

import re

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from tests.ep.operators.test_operators import CASES
from tests.ep.sessions import CPU, OURS, on_cpu, one_node, options, placement, session

A = np.arange(12, dtype=np.float32).reshape(3, 4)


def ints(*values):
    return np.array(values, np.int64)


def parts(case):
    """Inputs, attributes and number of outputs of a case."""
    values = list(case)
    outputs = values.pop() if isinstance(values[-1], int) else 1
    attributes = values.pop() if isinstance(values[-1], dict) else {}
    return [None if v is None else np.asarray(v) for v in values], attributes, outputs


def shapes(x):
    """The array in shapes that a kernel may not expect."""
    if x.dtype.kind in "fb":
        for axis in range(x.ndim):
            yield np.take(x, [], axis=axis)
        yield x.reshape(*x.shape, 1)
        yield x.reshape(-1)
        if x.size:
            yield x.reshape(-1)[0].reshape(())


# Where ONNX leaves the result open, or the CPU provider accepts inputs that do not fit, or aborts.
OPEN = {"ReduceMean", "Concat", "MatMul", "Unique"}


@pytest.mark.release_independent  # ONNX's backend cases have empty and scalar tensors too
@pytest.mark.parametrize("op_type", sorted(set(CASES) - OPEN))
def test_empty_and_scalar_tensors_and_other_ranks_give_what_the_cpu_provider_gives(
    provider, op_type
):
    entry = provider()
    compared = 0
    for case in CASES[op_type]:
        (first, *others), attributes, outputs = parts(case)
        for x in shapes(first):
            serialized, feeds = one_node(op_type, [x, *others], attributes, outputs=outputs)
            try:
                quiet = options(log_severity_level=4)
                reference = onnxruntime.InferenceSession(serialized, quiet, providers=[CPU])
                expected = reference.run(None, feeds)
            except Exception:
                continue  # not an input of this operator
            got = session(serialized, entry).run(None, feeds)
            for value, wanted in zip(got, expected, strict=True):
                assert (value.shape, value.dtype) == (wanted.shape, wanted.dtype)
                np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-5)
            compared += 1
    assert compared or not any(True for case in CASES[op_type] for _ in shapes(parts(case)[0][0]))


def fails(ep, model, feeds, message):
    with pytest.raises(Exception, match="node 'node'") as error:
        session(model, ep.provider("host"), log_severity_level=4).run(None, feeds)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "message"),
    [
        ("Concat", (A, A), {"axis": 5}, "axis 5 is outside of a tensor of 2 dimensions"),
        ("Softmax", (A,), {"axis": -3}, "axis -3"),
        ("Gather", (A, ints(0)), {"axis": 2}, "axis 2"),
        ("Gather", (A, ints(3)), {}, "an index is outside of axis 0, which has 3 elements"),
        ("GatherElements", (A, ints(9).reshape(1, 1)), {}, "outside of axis 0"),
        ("GatherND", (A, ints(0, 4)), {}, "outside of axis 1"),
        ("ScatterND", (A, ints(-4).reshape(1, 1), A[:1]), {}, "outside of axis 0"),
        ("ReduceSum", (A, ints(4)), {}, "axis 4"),
        ("Squeeze", (A, ints(0)), {}, "axis 0 has 3 elements, not 1"),
        ("Unsqueeze", (A, ints(1, 1)), {}, "name one twice"),
        ("Reshape", (A, ints(-1, -1)), {}, "more than one unknown dimension"),
        ("Reshape", (A, ints(5, -1)), {}, "cannot reshape"),
        ("Slice", (A, ints(0), ints(1), ints(0), ints(0)), {}, "slice step cannot be zero"),
        ("Split", (A, ints(1, 1)), {"axis": 0}, "do not make up axis 0, which has 3"),
        ("Tile", (A, ints(2)), {}, "do not fit a tensor of 2 dimensions"),
        ("TopK", (A, ints(9)), {}, "K is 9, and axis 1 has 4 elements"),
        ("MatMul", (A, A), {}, "mismatch"),
        ("Add", (A, A[:, :3].copy()), {}, "broadcast"),
        ("Conv", (A.reshape(1, 3, 4), np.ones((2, 2, 2), np.float32)), {}, "not fit 3 channels"),
        ("ConstantOfShape", (ints(2, -3),), {}, ""),
        ("ConstantOfShape", (ints(2**40, 2**40),), {}, ""),
        ("Expand", (A, ints(2**62, 3, 4)), {}, ""),
        ("NegativeLogLikelihoodLoss", (A, ints(0, 1, 9)), {}, "not one of the 4 classes"),
        ("GroupNormalization", (A.reshape(1, 4, 3), A[0, :1], A[0, :1]), {"num_groups": 2},
         "scale has the shape (1,), not (2,)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_fails_with_the_node_and_the_reason(
    ep, op_type, inputs, attributes, message
):
    outputs = {"TopK": 2, "Split": 2}.get(op_type, 1)
    model, feeds = one_node(op_type, inputs, attributes, outputs=outputs)
    loaded = onnx.load_from_string(model)
    for value in loaded.graph.input:  # the rank is not known before the run
        value.type.tensor_type.ClearField("shape")
    fails(ep, loaded.SerializeToString(), feeds, message)


def ones(*shape):
    return np.ones(shape, np.float32)


IMAGE, SEQUENCE = ones(1, 4, 5, 5), ones(3, 2, 4)
PARAMETERS = (ones(4), ones(4), ones(4), ones(4))
RNN = SEQUENCE, ones(1, 5, 4), ones(1, 5, 5)
GRU = SEQUENCE, ones(1, 15, 4), ones(1, 15, 5)
LSTM = SEQUENCE, ones(1, 20, 4), ones(1, 20, 5)
HIDDEN = {"hidden_size": 5}
BYTES = np.zeros(4, np.uint8)
ROIS = np.array([[0, 0, 2, 2]], np.float32)
POOLED = {"kernel_shape": [2, 2]}


@pytest.mark.release_independent  # older CPU providers accept some of them
@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes", "message"),
    [
        ("RoiAlign", (IMAGE, ROIS, ints(1)), {}, "outside of the batch of 1 images"),
        ("RoiAlign", (IMAGE, ROIS, ints(-1)), {}, "outside of the batch of 1 images"),
        ("RoiAlign", (IMAGE, ROIS, ints(0, 0)), {}, "batch_indices has the shape (2,), not (1,)"),
        ("RoiAlign", (IMAGE, ROIS, ints(0)), {"mode": "x"}, "mode='x' is not one of"),
        ("GroupNormalization", (IMAGE, ones(3), ones(3)), {"num_groups": 3}, "4 channels do not"),
        ("InstanceNormalization", (IMAGE, ones(1), ones(4)), {}, "scale has the shape (1,), not"),
        ("InstanceNormalization", (IMAGE, ones(4), ones(1)), {}, "B has the shape (1,), not (4,)"),
        ("BatchNormalization", (IMAGE, ones(1), *PARAMETERS[1:]), {}, "scale has the shape (1,)"),
        ("BatchNormalization", (IMAGE, *PARAMETERS[1:], ones(1)), {}, "input_var has the shape"),
        ("GatherElements", (A, ints(1)), {}, "indices has 1 dimensions, and data has 2"),
        ("ScatterElements", (A, ints(1), ones(1)), {}, "indices has 1 dimensions, and data has 2"),
        ("ScatterElements", (A, ints(1, 2).reshape(2, 1), ones(1, 1)), {}, "updates has the shape"),
        ("ScatterND", (A, ints(1, 2).reshape(2, 1), ones(1, 4)), {}, "not (2, 4)"),
        ("ScatterND", (A, ints(1, 2).reshape(2, 1), ones(4)), {}, "not (2, 4)"),
        ("ScatterND", (A, ints(0, 1, 2), ones()), {}, "indices of shape (3,) do not fit"),
        ("RNN", (*RNN, None, np.array([4, 1], np.int32)), HIDDEN, "not between 0 and 3"),
        ("GRU", (*GRU, None, np.array([3, -1], np.int32)), HIDDEN, "not between 0 and 3"),
        ("LSTM", (*LSTM, None, np.array([4, 1], np.int32)), HIDDEN, "not between 0 and 3"),
        ("RNN", (*RNN, None, np.array([2], np.int32)), HIDDEN, "sequence_lens has the shape (1,)"),
        ("GRU", (*GRU, ones(1, 1)), HIDDEN, "B has the shape (1, 1), not (1, 30)"),
        ("LSTM", (*LSTM, None, None, ones(1, 1, 5)), HIDDEN, "initial_h has the shape (1, 1, 5)"),
        ("LSTM", (*LSTM[:2], ones(1, 20, 1)), HIDDEN, "R has the shape"),
        ("RNN", RNN, {**HIDDEN, "direction": "up"}, "direction='up' is not one of 'forward'"),
        ("Conv", (IMAGE, ones(2, 4, 3, 3)), {"kernel_shape": [2, 2]}, "kernel_shape=(2, 2), and W"),
        ("Conv", (IMAGE, ones(2, 4, 3, 3), ones(1)), {}, "B has the shape (1,), not (2,)"),
        ("Conv", (IMAGE, ones(2, 4, 3, 3)), {"strides": [1]}, "strides has 1 entries, not 2"),
        ("Conv", (IMAGE, ones(2, 4, 3, 3)), {"strides": [0, 1]}, "strides has an entry of 0"),
        ("Conv", (IMAGE, ones(2, 4, 3, 3)), {"dilations": [1]}, "dilations has 1 entries, not 2"),
        ("Conv", (IMAGE, ones(2, 4, 3, 3)), {"pads": [1, 1]}, "pads has 2 entries, not 4"),
        ("Conv", (IMAGE, ones(2, 4, 3, 3)), {"auto_pad": "SAME"}, "auto_pad='SAME' is not one of"),
        ("Conv", (IMAGE, ones(3, 2, 3, 3)), {"group": 2}, "in group=2"),
        ("ConvTranspose", (IMAGE, ones(4, 2, 3, 3), ones(1)), {}, "B has the shape (1,), not (2,)"),
        ("ConvTranspose", (IMAGE, ones(4, 2, 3, 3)), {"auto_pad": "X"}, "auto_pad='X' is not"),
        ("ConvTranspose", (IMAGE, ones(4, 2, 3, 3)), {"strides": [1]}, "strides has 1 entries"),
        ("Pad", (A, ints(1, 1)), {}, "pads has 2 entries, not 2 for each of 2 axes"),
        ("Pad", (A, ints(0, 4, 0, 0)), {"mode": "reflect"}, "axis 1 has 4 elements, too few to"),
        ("Pad", (A, ints(0, 1, 0, 0)), {"mode": "x"}, "mode='x' is not one of 'constant'"),
        ("MaxPool", (IMAGE,), {**POOLED, "pads": [2, 0, 0, 0]}, "reach the size of the window"),
        ("AveragePool", (IMAGE,), {**POOLED, "pads": [0, 0, 0, 2]}, "reach the size of the window"),
        ("LpPool", (IMAGE,), {**POOLED, "pads": [2, 2, 2, 2]}, "reach the size of the window"),
        ("MaxPool", (IMAGE,), {**POOLED, "auto_pad": "X"}, "auto_pad='X' is not one of"),
        ("MaxPool", (IMAGE,), {"kernel_shape": [2]}, "does not fit 2 spatial axes"),
        ("AveragePool", (IMAGE,), {**POOLED, "strides": [1]}, "strides has 1 entries, not 2"),
        ("BitShift", (BYTES, BYTES), {"direction": "UP"}, "direction='UP' is not one of 'LEFT'"),
        ("GridSample", (IMAGE, ones(1, 2, 2, 2)), {"mode": "x"}, "mode='x' is not one of"),
        ("GridSample", (IMAGE, ones(1, 2, 2, 2)), {"padding_mode": "x"}, "padding_mode='x' is not"),
        ("GridSample", (IMAGE, ones(1, 2, 2, 3)), {}, "grid of shape (1, 2, 2, 3) does not fit X"),
        ("GridSample", (ones(2, 4, 5, 5), ones(1, 2, 2, 2)), {}, "does not fit X of shape (2, 4"),
        ("Resize", (IMAGE, None, ones(4) * 2, ints(1, 4, 9, 9)), {}, "both scales and sizes"),
        ("Resize", (IMAGE, None, ones(4) * 2), {"mode": "x"}, "mode='x' is not one of 'nearest'"),
        ("Resize", (IMAGE, None, ones(4) * 2), {"coordinate_transformation_mode": "x"}, "'x' is"),
        ("Resize", (IMAGE, None, ones(4) * 2), {"nearest_mode": "x"}, "nearest_mode='x' is not"),
        ("OneHot", (ints(0, 1), ints(0), ones(2)), {}, "depth is 0, not positive"),
        ("OneHot", (ints(0, 1), ints(2, 3), ones(2)), {}, "depth has 2 elements, not 1"),
        ("OneHot", (ints(0, 1), ints(2), ones(3)), {}, "values has the shape (3,), not (2,)"),
        ("TopK", (A, ints(1, 2)), {}, "K has 2 elements, not 1"),
        ("LpNormalization", (A,), {"p": 3}, "p=3 is not 1 or 2"),
        ("LRN", (IMAGE,), {"size": 2}, "size=2 is not a positive odd number"),
        ("QuantizeLinear", (A, ones(4), BYTES[:1]), {}, "zero point has the shape (1,), not (4,)"),
        ("DequantizeLinear", (A.astype(np.uint8), ones(4), BYTES[:1]), {}, "shape (1,), not (4,)"),
        ("DequantizeLinear", (A.astype(np.uint8), ones(3)), {}, "has the shape (3,), not (4,)"),
    ],
)  # fmt: skip
def test_an_invalid_node_is_refused_as_by_the_cpu_provider(
    ep, op_type, inputs, attributes, message
):
    model, feeds = one_node(op_type, inputs, attributes, outputs=2 if op_type == "TopK" else 1)
    loaded = onnx.load_from_string(model)
    for value in loaded.graph.input:  # the shapes are not known before the run
        value.type.tensor_type.ClearField("shape")
    serialized = loaded.SerializeToString()
    quiet = options(log_severity_level=4)
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        onnxruntime.InferenceSession(serialized, quiet, providers=[CPU]).run(None, feeds)
    fails(ep, serialized, feeds, message)


@pytest.mark.parametrize("slope", [ones(1, 4), ones(2, 3, 1), ones(2)], ids=lambda x: str(x.shape))
def test_a_slope_that_broadcasts_beyond_the_input_is_refused(ep, device, slope):
    serialized, feeds = one_node("PRelu", (ones(3, 1), slope))
    made = session(serialized, ep.provider(device), log_severity_level=4)
    message = re.escape(f"slope of the shape {slope.shape} does not broadcast to (3, 1)")
    with pytest.raises(Exception, match=message):
        made.run(None, feeds)


def test_a_session_goes_on_after_a_failed_run(ep):
    model, feeds = one_node("Gather", (A, ints(3)))
    made = session(model, ep.provider("host"), log_severity_level=4)
    with pytest.raises(Exception, match="outside of axis 0"):
        made.run(None, feeds)
    np.testing.assert_array_equal(made.run(None, {**feeds, "i1": ints(2)})[0], A[2:])


def placed(ep, nodes, inputs, outputs, opset=18):
    graph = helper.make_graph(nodes, "graph", inputs, outputs)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 9
    serialized = made.SerializeToString()
    return serialized, placement(session(serialized, ep.provider("host")))


def tensor(name, kind, shape=(None,)):
    return helper.make_tensor_value_info(name, kind, shape)


def test_strings_are_left_to_the_cpu_provider(ep):
    kinds = TensorProto.STRING, TensorProto.BOOL
    nodes = [
        helper.make_node("Identity", ["s"], ["t"], name="identity"),
        helper.make_node("Equal", ["t", "s"], ["e"], name="equal"),
        helper.make_node("Not", ["e"], ["n"], name="not"),
    ]
    serialized, where = placed(ep, nodes, [tensor("s", kinds[0])], [tensor("n", kinds[1])], 19)
    assert where == {"identity": CPU, "equal": CPU, "not": OURS}
    text = np.array(["a", "b"], object)
    got = session(serialized, ep.provider("host")).run(None, {"s": text})[0]
    np.testing.assert_array_equal(got, [False, False])


def test_sequences_and_optionals_are_left_to_the_cpu_provider(ep):
    x = tensor("x", TensorProto.FLOAT)
    nodes = [
        helper.make_node("Neg", ["x"], ["y"], name="neg"),
        helper.make_node("SequenceConstruct", ["x", "y"], ["s"], name="construct"),
        helper.make_node("Identity", ["s"], ["t"], name="identity"),
        helper.make_node("ConcatFromSequence", ["t"], ["z"], name="concat", axis=0),
    ]
    serialized, where = placed(ep, nodes, [x], [tensor("z", TensorProto.FLOAT)])
    assert where == {"neg": OURS, "construct": CPU, "identity": CPU, "concat": CPU}
    got = session(serialized, ep.provider("host")).run(None, {"x": A[0]})[0]
    np.testing.assert_array_equal(got, np.concatenate([A[0], -A[0]]))


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4])
def test_types_that_numpy_lacks_are_left_to_the_cpu_provider(ep, kind):
    nodes = [
        helper.make_node("Cast", ["x"], ["t"], name="to", to=kind),
        helper.make_node("Cast", ["t"], ["y"], name="from", to=TensorProto.FLOAT),
    ]
    x, y = (tensor(name, TensorProto.FLOAT) for name in "xy")
    serialized, where = placed(ep, nodes, [x], [y], 21)
    assert where == {"to": CPU, "from": CPU}
    feeds = {"x": np.array([0, 1, -2], np.float32)}
    got = session(serialized, ep.provider("host")).run(None, feeds)[0]
    np.testing.assert_array_equal(got, on_cpu(serialized).run(None, feeds)[0])


def test_an_opset_without_kernel_is_left_to_the_cpu_provider(ep):
    # Until version 8, BatchNormalization may have statistics per element.
    inputs = (A.reshape(1, 3, 2, 2), *(np.ones(3, np.float32) for _ in range(4)))
    serialized, feeds = one_node("BatchNormalization", inputs, opset=7)
    made = session(serialized, ep.provider("host"))
    assert placement(made) == {"node": CPU}
    np.testing.assert_allclose(made.run(None, feeds)[0], inputs[0], rtol=1e-4, atol=1e-5)


def test_a_selected_type_without_kernel_for_the_node_is_left_to_the_cpu_provider(ep):
    serialized, feeds = one_node("Cast", (np.array(["1", "2"], object),), {"to": 1})
    made = session(serialized, ep.provider("host", only=["Cast"]))
    assert placement(made) == {"node": CPU}
    np.testing.assert_array_equal(made.run(None, feeds)[0], [1, 2])
