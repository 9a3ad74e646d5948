"""Inputs and models that kernels cannot take fail with the node, or go to another provider."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from tests.ep.sessions import CPU, OURS, on_cpu, one_node, options, placement, session
from tests.ep.test_operators import CASES

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


@pytest.mark.parametrize("op_type", sorted(set(CASES) - OPEN))
def test_empty_and_scalar_tensors_and_other_ranks_give_what_the_cpu_provider_gives(ep, op_type):
    entry = ep.provider("host")
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
        ("ReduceSum", (A, ints(0, -2)), {}, "name one twice"),
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
        ("Conv", (A.reshape(1, 3, 4), np.ones((2, 2, 2), np.float32)), {}, "reshape"),
        ("ConstantOfShape", (ints(2, -3),), {}, ""),
        ("ConstantOfShape", (ints(2**40, 2**40),), {}, ""),
        ("Expand", (A, ints(2**62, 3, 4)), {}, ""),
        ("NegativeLogLikelihoodLoss", (A, ints(0, 1, 9)), {}, "not one of the 4 classes"),
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


@pytest.mark.parametrize("kind", [TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN, TensorProto.INT4])
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
