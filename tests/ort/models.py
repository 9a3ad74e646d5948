"""Small ONNX models, built node by node so that names and nesting are known."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

FLOAT, BOOL, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64


def value(name, shape=(None, 4), kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def serialized(graph):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    return model.SerializeToString()


def chain(names=("first", "second", "third"), width=4):
    """Relu, MatMul and Sigmoid in turn, with these node names; no two can be fused."""
    kinds = ("Relu", "MatMul", "Sigmoid")
    nodes, last = [], "x"
    for i, name in enumerate(names):
        inputs = [last, "w"] if kinds[i % 3] == "MatMul" else [last]
        nodes.append(helper.make_node(kinds[i % 3], inputs, [f"t{i}"], name=name))
        last = f"t{i}"
    eye = np.eye(width, dtype=np.float32)
    weight = helper.make_tensor("w", FLOAT, [width, width], eye.tobytes(), raw=True)
    ends = [value("x", ("N", width))], [value(last, ("N", width))]
    return serialized(helper.make_graph(nodes, "chain", *ends, [weight]))


def wide(branches=6):
    """Branches that may run at the same time."""
    nodes = [
        helper.make_node("Softmax", ["x"], [f"s{i}"], name=f"branch{i}", axis=-1)
        for i in range(branches)
    ]
    nodes.append(
        helper.make_node("Concat", [f"s{i}" for i in range(branches)], ["y"], name="join", axis=0)
    )
    # Different ops: equal branches would be merged into one.
    for i, node in enumerate(nodes[:-1]):
        node.op_type = ("Softmax", "Relu", "Sigmoid", "Tanh", "Neg", "Abs")[i % 6]
        if node.op_type != "Softmax":
            del node.attribute[:]
    return serialized(helper.make_graph(nodes, "wide", [value("x")], [value("y")]))


def no_nodes():
    """The output is an initializer: no node runs."""
    weight = helper.make_tensor("y", FLOAT, [1, 4], [1.0, 2.0, 3.0, 4.0])
    return serialized(helper.make_graph([], "none", [], [value("y", (1, 4))], [weight]))


def failing():
    """Gather with an index from the caller: one out of range raises while the node runs."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="before"),
        helper.make_node("Gather", ["r", "i"], ["y"], name="gather"),
    ]
    return serialized(
        helper.make_graph(nodes, "failing", [value("x"), value("i", (1,), INT64)], [value("y")])
    )


def branching():
    """An If whose branches hold nodes, one of them another If; `flag` chooses."""
    inner_then = helper.make_graph(
        [helper.make_node("Tanh", ["x"], ["it"], name="inner_tanh")], "it", [], [value("it")]
    )
    inner_else = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["ie"], name="inner_neg")], "ie", [], [value("ie")]
    )
    then = helper.make_graph(
        [
            helper.make_node("Sigmoid", ["x"], ["unused"], name="then_sigmoid"),
            helper.make_node(
                "If", ["flag"], ["inner"], name="inner_if",
                then_branch=inner_then, else_branch=inner_else,
            ),
            helper.make_node("Add", ["unused", "inner"], ["t"], name="then_add"),
        ],
        "then", [], [value("t")],
    )  # fmt: skip
    other = helper.make_graph(
        [helper.make_node("Abs", ["x"], ["e"], name="else_abs")], "else", [], [value("e")]
    )
    node = helper.make_node(
        "If", ["flag"], ["y"], name="outer_if", then_branch=then, else_branch=other
    )
    return serialized(
        helper.make_graph([node], "branching", [value("x"), value("flag", (), BOOL)], [value("y")])
    )


LOOP = [value("n", (), INT64), value("keep", (), BOOL), value("state")]
"""Inputs of a Loop's body."""


def _loop(given):
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["keep"], ["go"], name="body_go"),
            helper.make_node("Sigmoid", ["state"], ["next"], name="body_sigmoid"),
        ],
        "body",
        LOOP,
        [value("go", (), BOOL), value("next")],
    )
    return helper.make_node("Loop", ["times", "", given], ["y"], name="loop", body=body)


def looping():
    """A Loop whose body is a node, run as often as `times` says."""
    inputs = [value("x"), value("times", (), INT64)]
    return serialized(helper.make_graph([_loop("x")], "looping", inputs, [value("y")]))


def looping_after_events(count):
    """The same after so many events: a Loop without nodes, each run of which is quick."""
    body = helper.make_graph([], "no nodes", LOOP, LOOP[1:])
    before = helper.make_node("Loop", ["count", "", "x"], ["same"], name="empty", body=body)
    inputs = [value("x"), value("times", (), INT64)]
    counts = [helper.make_tensor("count", INT64, [], [count])]
    nodes = [before, _loop("same")]
    return serialized(helper.make_graph(nodes, "looping", inputs, [value("y")], counts))


def scanning():
    """A Scan over the rows of its input."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["sum_in", "row"], ["sum_out"], name="body_add"),
            helper.make_node("Relu", ["sum_out"], ["out"], name="body_relu"),
        ],
        "body",
        [value("sum_in", (4,)), value("row", (4,))],
        [value("sum_out", (4,)), value("out", (4,))],
    )
    node = helper.make_node(
        "Scan", ["start", "x"], ["last", "y"], name="scan", body=body, num_scan_inputs=1
    )
    return serialized(
        helper.make_graph(
            [node], "scanning", [value("start", (4,)), value("x")],
            [value("last", (4,)), value("y")],
        )
    )  # fmt: skip
