"""The module calls of autograd nodes, with stand-ins for PyTorch's modules and nodes."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field

import pytest

import epprof_nb
from epprof_nb import _native
from epprof_nb.recording.frameworks.framework_ops import kind_id

KINDS = [kind_id(op_type, "torch") for op_type in ("module", "recompute", "backward")]


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


END = Node(2**64 - 1)


def edges(*nodes):
    return tuple((node, 0) for node in nodes)


class Modules:
    """Modules that are called by name, each with a function that runs in its forward pass."""

    def __init__(self):
        self.number = 0
        """Number of the next node."""
        self.task = -1
        self.compiles = {"_is_compiling_flag": False}
        self.known = {}
        self._objects = {}
        self.call = _native.RecordedModule(
            lambda module, body=None: body() if body else None,
            self.known, self._find, self.compiles, lambda: False, lambda: self.number,
            lambda: self.task, lambda *_: None, set(), {},
        )  # fmt: skip

    def _find(self, name):
        if name == "unknown":
            return None
        self._objects[id(name)] = name  # keeps the address in use
        number = _native.module_add(_native.intern(name), *KINDS, False)
        self.known[id(name)] = number
        return number

    def nodes(self, count=1):
        """Create nodes; return the last one."""
        self.number += count
        return Node(self.number - 1, edges(END))


@pytest.fixture
def modules():
    _native.modules_record(True)
    _native.modules_begin_thread(0)
    yield Modules()
    _native.modules_record(False)


def call_of(node):
    """The call of a node."""
    ((_, call),) = _native.stretches([node], None)[0]
    return call


def number_calls(modules, count):
    """Call a module for each node number."""
    for _ in range(count):
        modules.call("m", modules.nodes)


def test_each_node_of_a_graph_is_found_once(modules):
    number_calls(modules, 4)
    leaf, end = Leaf(2**64 - 1), Node(2**64 - 1)
    shared = Node(1, edges(leaf, end, None))
    roots = [Node(2, edges(shared)), Node(3, edges(shared, shared))]
    first, nodes, unlinked = _native.stretches(roots, Leaf)
    assert [node for node, _ in first] == [roots[1], roots[0], shared]
    assert len({call for _, call in first}) == 3
    assert (nodes, unlinked) == (3, 0)
    assert shared.read == [1]
    assert leaf.read == end.read == []
    assert len(roots) == 2
    assert _native.stretches(roots, Leaf)[0] == first


def test_large_graphs_are_visited(modules):
    for _ in range(2500):
        modules.call("m", lambda: modules.nodes(2))
    node = END
    for number in range(5000):
        node = Node(number, edges(node, node))
    first, nodes, unlinked = _native.stretches([node], None)
    assert (len(first), nodes, unlinked) == (2500, 5000, 0)
    assert [node.number for node, _ in first] == [*range(4999, 0, -2)]


def test_nodes_that_have_no_call_are_counted():
    _native.modules_record(True)
    modules = Modules()
    modules.number = 4
    _native.modules_begin_thread(modules.nodes().number)
    modules.call("m", lambda: modules.nodes(2))
    modules.call("m", modules.nodes)
    nodes = [Node(number, edges(END)) for number in (2**64 - 1, 7, 6, 5, 4, 3)]
    first, count, unlinked = _native.stretches(nodes, None)
    assert [node for node, _ in first] == [nodes[1], nodes[2], nodes[4]]
    assert first[-1][1] == 0
    assert (count, unlinked) == (6, 1)


def test_numbers_of_several_threads_are_unknown(modules):
    number_calls(modules, 8)

    def run():
        others = Modules()
        others.number = 2
        number_calls(others, 3)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    nodes = [Node(number, edges(END)) for number in range(8)]
    first, _, unlinked = _native.stretches(nodes, None)
    # The calls of the other thread have the numbers 2 to 4.
    assert [(node.number, call == 0) for node, call in first] == [
        (7, False), (6, False), (5, False), (4, True), (1, False), (0, False),
    ]  # fmt: skip
    assert unlinked == 3


def test_errors_of_a_graph_are_raised(modules):
    with pytest.raises(AttributeError, match="next_functions"):
        _native.stretches([object()], None)
    with pytest.raises(IndexError):
        _native.stretches([Node(0, ((),))], None)
    with pytest.raises(TypeError):
        _native.stretches([Node("0", edges(Node(1)))], None)


def test_stretches_equal_those_of_a_search_node_by_node(modules):
    """Random nested calls and graphs; most of a log belongs to earlier passes."""
    chance = random.Random(0)
    created = {}

    def run(call, depth):
        for _ in range(chance.randrange(4)):
            for _ in range(chance.choice((0, 0, 1, 5))):
                created[modules.nodes().number] = call
            if depth < 4:
                modules.call("m", lambda: run(object(), depth + 1))

    for _ in range(200):
        begin = modules.number
        run(None, 0)
        new = range(begin, modules.number)
        numbers = chance.sample(new, len(new) // 2)
        expected = []
        for number in sorted(numbers, reverse=True):
            if created[number] is not (expected[-1][1] if expected else None):
                expected.append((number, created[number]))
        found, count, unlinked = _native.stretches([Node(n, edges(END)) for n in numbers], None)
        assert [node.number for node, _ in found] == [number for number, _ in expected]
        pairs = {(call, right) for (_, call), (_, right) in zip(found, expected, strict=True)}
        assert len(pairs) == len({call for call, _ in pairs}) == len({call for _, call in pairs})
        assert all((call == 0) == (right is None) for call, right in pairs)
        assert (count, unlinked) == (len(numbers), 0)


def test_the_oldest_calls_are_forgotten(modules):
    number_calls(modules, 600_000)
    first, _, unlinked = _native.stretches(
        [Node(number, edges(END)) for number in (0, 100_000, 100_001, 599_998, 599_999)], None
    )
    assert [(node.number, call == 0) for node, call in first] == [
        (599_999, False), (599_998, False), (100_001, False), (100_000, False), (0, True),
    ]  # fmt: skip
    assert unlinked == 1


def test_calls_of_modules_are_ops():
    with epprof_nb.profile() as prof:
        _native.modules_record(True)
        modules = Modules()
        modules.call("outer", lambda: modules.call("inner"))
        assert modules.call("unknown", lambda: 1) == 1
        modules.compiles["_is_compiling_flag"] = True
        modules.call("compiled")
        modules.compiles.clear()
        with pytest.raises(ZeroDivisionError):
            modules.call("fails", lambda: 1 / 0)
        modules.task = 0  # no backward pass runs
        modules.call("last")
        modules.call.stop()
        modules.call("stopped")
    assert prof.ops["name"].tolist() == ["outer", "inner", "fails", "last"]
    assert prof.ops["parent_op_id"].isna().tolist() == [True, False, True, True]
    assert set(prof.ops["op_type"]) == {"module"}
    assert (prof.ops["status"] == "complete").all()


def test_ops_follow_the_calls(modules):
    created = {}

    def run(name, *inner):
        def body():
            created[name] = modules.nodes()
            for each in inner:
                each()

        return lambda: modules.call(name, body)

    with epprof_nb.profile(frameworks=[]) as prof:
        run("outer", run("left"), run("right"))()
        created["none"] = modules.nodes()
        calls = {created[name]: call_of(created[name]) for name in ("outer", "left", "right")}
        calls[created["none"]] = 0
        name, kind = _native.intern("backward"), kind_id("autograd", "torch")
        number, op_id = _native.pass_begin(name, kind, False)
        open_ops = []
        for name in ("left", "right", "outer", "left", "none"):
            _native.switch_calls(number, calls, lambda name=name: created[name], None)
            _native.switch_calls(number, calls, lambda: "another node", None)
            open_ops.append(_native.depth())
        modules.task = 0
        modules.call("right")
        _native.switch_calls(number, calls, lambda: created["left"], None)
        assert _native.pass_end(number, op_id) == (0, 0)
        assert _native.pass_end(number, op_id) == (0, 0)
        _native.switch_calls(number, calls, lambda: created["left"], None)
    assert open_ops == [3, 3, 2, 3, 1]
    ops = prof.ops[prof.ops["op_type"] != "module"]
    parents = prof.ops["name"].reindex(ops["parent_op_id"]).astype(object).tolist()
    assert list(zip(ops["name"], ops["op_type"], parents, strict=True))[1:] == [
        ("outer", "backward", "backward"), ("left", "backward", "outer"),
        ("right", "backward", "outer"), ("left", "backward", "outer"),
        ("right", "recompute", "backward"), ("outer", "backward", "backward"),
        ("left", "backward", "outer"),
    ]  # fmt: skip
    assert (ops["status"] == "complete").all()


@pytest.mark.parametrize(
    "args",
    [
        (), ("1", {}, int, None), (0, [], int, None), (0, {}, 1, None), (0, {0: "1"}, int, None),
        (0, {}, list, None),
    ],
)  # fmt: skip
def test_calls_of_a_wrong_type_raise(args):
    with pytest.raises(TypeError):
        _native.switch_calls(*args)


def test_functions_of_an_engine_that_is_not_open():
    if _native.engine_is_known():
        pytest.skip("another test has opened PyTorch's engine")
    for functions in ((None, lambda: 0), (lambda: 0, None)):
        with pytest.raises(ValueError, match="not known"):
            _native.RecordedModule(len, {}, len, {}, lambda: False, *functions, len, set(), {})
    with pytest.raises(TypeError):
        _native.RecordedModule(
            len, [], len, {}, lambda: False, lambda: 0, lambda: 0, len, set(), {}
        )
    assert not _native.engine_open("no such library")
    assert not _native.engine_is_known()
