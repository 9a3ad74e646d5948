"""The module calls of autograd nodes, with nodes that are not PyTorch's."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field

import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.frameworks.framework_ops import kind_id
from epprof_nb.frameworks.sequence_log import SequenceLog


@dataclass(eq=False)
class Node:
    number: int
    next_functions: tuple = ()
    read: list = field(default_factory=list)

    def _sequence_nr(self):
        self.read.append(self.number)
        return self.number


class Leaf(Node):
    pass


def edges(*nodes):
    return tuple((node, 0) for node in nodes)


def in_stretches(roots, leaf=None, log=range(100), others=()):
    """Nodes of a graph, each of which another call created."""
    calls = [(None, number) for number in log]
    return _native.stretches(roots, leaf, list(log), calls, 0, list(others))


def test_each_node_of_a_graph_is_found_once():
    leaf, end = Leaf(2**64 - 1), Node(2**64 - 1)
    shared = Node(1, edges(leaf, end, None))
    roots = [Node(2, edges(shared)), Node(3, edges(shared, shared))]
    found = in_stretches(roots, Leaf)
    assert found == ([(roots[1], (None, 3)), (roots[0], (None, 2)), (shared, (None, 1))], 3, 0)
    assert shared.read == [1]
    assert leaf.read == end.read == []
    assert len(roots) == 2
    assert in_stretches(roots) == found


def test_large_graphs_are_visited():
    node = Node(2**64 - 1)
    for number in range(5000):
        node = Node(number, edges(node, node))
    first, nodes, unlinked = in_stretches([node], log=range(0, 5000, 2))
    assert (len(first), nodes, unlinked) == (2500, 5000, 0)
    assert [node.number for node, _ in first] == [*range(4999, 0, -2)]


def test_nodes_that_have_no_call_are_counted():
    end = Node(2**64 - 1)
    nodes = [Node(number, edges(end)) for number in (2**64 - 1, 7, 6, 5, 4)]
    calls = [(None, 5), (None, 7)]
    first, count, unlinked = _native.stretches(nodes, None, [5, 7], calls, 5, [])
    assert (first, count, unlinked) == (
        [(nodes[1], calls[1]), (nodes[2], calls[0]), (nodes[4], None)], 5, 1,
    )  # fmt: skip
    # Another thread called modules under the numbers 5 and 6.
    first, count, unlinked = _native.stretches(nodes, None, [5, 7], calls, 4, [(5, 7)])
    assert (first, unlinked) == ([(nodes[1], calls[1]), (nodes[2], None)], 2)


def test_errors_of_a_graph_are_raised():
    with pytest.raises(AttributeError, match="next_functions"):
        in_stretches([object()])
    with pytest.raises(IndexError):
        in_stretches([Node(0, ((),))])
    with pytest.raises(TypeError):
        in_stretches([Node("0", edges(Node(1)))])
    with pytest.raises(TypeError):
        in_stretches([Node(0, edges(Node(1)))], others=[1])


def test_stretches_equal_those_of_a_search_node_by_node():
    """Logs of calls and graphs at random; most of a log is of earlier passes."""
    chance = random.Random(0)
    end = Node(2**64 - 1)
    for _ in range(200):
        next_number = chance.randrange(100)
        log = SequenceLog(lambda now=next_number: now)
        calls = log.local.calls
        created = {}
        for index in range(chance.randrange(1, 120)):
            call = (None, index) if chance.random() < 0.8 else None
            calls.change(next_number, call)
            for _ in range(chance.choice((0, 0, 1, 5))):
                created[next_number] = call
                next_number += 1
        numbers = chance.sample(sorted(created), len(created) // 2)
        expected = []
        for number in sorted(numbers, reverse=True):
            if not expected or expected[-1][1] is not created[number]:
                expected.append((number, created[number]))
        found = log.stretches([Node(number, edges(end)) for number in numbers], None)
        assert [(node.number, call) for node, call in found.first] == expected
        assert (found.nodes, found.unlinked) == (len(numbers), 0)


def test_ops_follow_the_calls():
    kinds = [kind_id(op_type, "torch") for op_type in ("module", "recompute", "backward")]
    outer = (None, (_native.intern("outer"), *kinds))
    left = (outer, (_native.intern("left"), *kinds))
    right = (outer, (_native.intern("right"), *kinds))
    threads = {}
    with epprof_nb.profile() as prof:
        for call in (left, right, outer, left, None):
            _native.switch_calls(threads, 0, {"node": call}, lambda: "node", None)
            _native.switch_calls(threads, 0, {"node": call}, lambda: "another node", None)
            open_calls = threads[threading.get_ident()][::2]
            assert open_calls == (
                [] if call is None else [outer] if call is outer else [outer, call]
            )
    ops = prof.ops
    parents = ops["name"].reindex(ops["parent_op_id"]).astype(object).tolist()
    assert ops["name"].tolist() == ["outer", "left", "right", "left"]
    assert parents[1:] == ["outer"] * 3
    assert (ops["status"] == "complete").all()
    assert set(ops["op_type"]) == {"backward"}


@pytest.mark.parametrize(
    "args",
    [
        (), ([], 0, {}, int, None), ({}, 0, [], int, None), ({}, 0, {}, 1, None),
        ({}, 0, {0: 1}, int, None), ({}, 0, {0: ()}, int, None), ({}, 0, {}, list, None),
    ],
)  # fmt: skip
def test_calls_of_a_wrong_type_raise(args):
    with pytest.raises((TypeError, IndexError)):
        _native.switch_calls(*args)
