"""Graph nodes followed from the capture to the replay, by callbacks of CUPTI that were recorded.

``tests/data/graph_callbacks.txt`` has them, with the name of the work of each node where it was
created, and the names that CUPTI's records of the replays have. A stand-in for libcupti reports
them again, in a process of its own.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from epprof_nb.data.schema import MISSING
from epprof_nb.recording.session.graph_node_registry import GraphNodeRegistry
from epprof_nb.recording.stacks.tree import StackTree
from tests.helpers import cupti_stub
from tests.paths import DATA

LOG = DATA / "graph_callbacks.txt"
REPLAY = """
start()
for event in json.load(sys.stdin):
    stub.stub_report(*event)
found = _native.cupti_graph_nodes()
print(json.dumps({name: np.frombuffer(of, np.int64).tolist() for name, of in found.items()}))
"""
CALLBACKS = {
    "destroyed": 10, "created": 13, "instantiating": 17, "instantiated": 18, "cloned": 20,
}  # fmt: skip


LINES = [line.split() for line in LOG.read_text(encoding="utf-8").splitlines()]
STARTS = [i for i, words in enumerate(LINES) if words[0] == "#"]
PARTS = {
    " ".join(LINES[start][1:]): LINES[start:end]
    for start, end in zip(STARTS[1:], [*STARTS[2:], len(LINES)], strict=True)
}


def node_id(text):
    graph, number = text.split(":")
    return int(graph) << 32 | int(number)


def callback(words):
    """Arguments of the stand-in: callback, graph, node, original node and executable graph."""
    kind, *rest = words
    graph = node = original = executable = 0
    if kind == "destroyed":
        graph = int(rest[0])
    elif kind == "instantiated":
        executable = int(rest[0])
    elif kind != "instantiating":
        node = node_id(rest[0])
        original = node_id(rest[1]) if kind == "cloned" else 0
    return CALLBACKS[kind], graph or 1, node, original, executable


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    return cupti_stub.build(tmp_path_factory.mktemp("stub"))


def followed(stub, lines):
    """Play the callbacks back; return the nodes, with the number of a line as the op."""
    events = [callback(words) for words in lines if words[0] in CALLBACKS]
    printed = cupti_stub.run(stub, REPLAY, json.dumps(events))
    found = {name: np.array(values) for name, values in json.loads(printed).items()}
    line = {node_id(w[1]): i for i, w in enumerate(lines) if w[0] == "created" and len(w) == 3}
    nodes = GraphNodeRegistry()
    ops = np.array([line.get(node, -1) + 1 for node in found["node"].tolist()])
    nodes.add({**found, "op_id": ops})  # 0: no op
    return nodes


@pytest.fixture(scope="module")
def nodes(stub):
    """The nodes of all parts of the log, which were recorded one after the other."""
    return followed(stub, LINES)


@pytest.mark.parametrize("part", PARTS)
def test_each_node_of_a_replay_is_followed_to_the_one_that_was_captured(nodes, part):
    ran = [words for words in PARTS[part] if words[0] == "ran"]
    assert ran
    ops = nodes.capture_op(np.array([node_id(node) for _, node, _ in ran]))
    found = [
        (name, None if op == MISSING else LINES[op - 1][2])
        for (_, _, name), op in zip(ran, ops.tolist(), strict=True)
    ]
    # In a body, a memset is a kernel.
    assert [captured for _, captured in found] == [name.removesuffix("32") for name, _ in found]


def test_nodes_that_are_numbered_in_another_way_are_not_followed(stub):
    lines = [list(words) for words in PARTS["child"]]
    end = lines.index(["instantiated", "7"])
    assert lines[end - 1] == ["created", "7:6"]  # after the nodes 7:3 to 7:5 of the child
    lines[end - 1] = ["created", "7:9"]
    nodes = followed(stub, lines)
    moved = nodes.capture_op(np.array([node_id(f"7:{i}") for i in (3, 4, 5)]))
    assert moved.tolist() == [MISSING] * 3
    assert nodes.capture_op(np.array([node_id("7:0")]))[0] != MISSING
    # Other executable graphs are not affected.
    assert nodes.capture_op(np.array([node_id("11:3")]))[0] != MISSING


def test_an_instantiation_that_failed_does_not_matter_to_the_next(stub):
    lines = [["instantiating"], *PARTS["child"]]
    nodes = followed(stub, lines)
    (op,) = nodes.capture_op(np.array([node_id("7:4")]))
    assert lines[op - 1] == ["created", "4:1", "kA"]


def test_the_stack_that_captured_a_node_outlives_its_recording():
    def columns(nodes, originals, stacks):
        return {
            "node": np.array(nodes),
            "original": np.array(originals),
            "op_id": np.zeros(len(nodes), np.int64),
            "stack_id": np.array(stacks),
        }

    code = {
        "code_id": np.array([0], np.int32).tobytes(),
        "first_line": np.array([1], np.int32).tobytes(),
        "file_bytes": np.array([4], np.uint32).tobytes(),
        "function_bytes": np.array([7], np.uint32).tobytes(),
        "files": b"a.py",
        "functions": b"capture",
    }
    log = {
        "stack_id": np.array([0, 1], np.int32).tobytes(),
        "parent_id": np.array([-1, 0], np.int32).tobytes(),
        "stack_code_id": np.array([0, 0], np.int32).tobytes(),
        "line": np.array([3, 8], np.int32).tobytes(),
        "truncated": 0,
        "dropped": 0,
    }
    nodes = GraphNodeRegistry()
    nodes.add(columns([5, 6], [0, 0], [1, -1]), [log | code])
    nodes.add(columns([9], [5], [-1]))
    tree = StackTree()
    tree.add(MISSING, ("b.py", "replay", 1), 4)
    rows = nodes.capture_stacks(np.array([9, 6, 5, 77]), tree).tolist()
    assert rows == [2, MISSING, 2, MISSING]
    assert [(f.function, f.line) for f in tree.stacks().frames(2)] == [
        ("capture", 8),
        ("capture", 3),
    ]


def test_a_clone_has_the_op_of_its_original():
    """The op that was open when the executable graph was made did not capture its nodes."""
    graph = GraphNodeRegistry()
    none = np.full(3, MISSING)
    nodes = np.array([1, 2, 3])
    graph.add(
        {"node": nodes, "original": np.array([0, 1, 2]), "op_id": np.array([7, 9, 9]),
         "stack_id": none}
    )  # fmt: skip
    assert graph.capture_op(nodes).tolist() == [7, 7, 7]
