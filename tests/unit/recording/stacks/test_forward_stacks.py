"""Stacks of backward passes: where the forward pass created the node that launches."""

import json
import subprocess

import numpy as np
import pytest

from epprof_nb.data.python_stacks import EXACT, NEAR
from epprof_nb.data.schema import MISSING
from epprof_nb.recording.stacks import availability
from epprof_nb.recording.stacks.forward_stacks import ForwardStacks
from tests.helpers import cupti_stub

LEAF = 2**64 - 1


def drained(forward, backward):
    """As the native core returns it: forward and backward launches, each (thread, number, ...).

    Of a forward launch, the stack follows and, if gradients were off, False; of a backward launch,
    whether the number is the node's own and, of a view, True.
    """

    def column(rows, i, dtype, default=None):
        values = [row[i] if i < len(row) else default for row in rows]
        return np.array(values, dtype).tobytes()

    return {
        "forward_thread": column(forward, 0, np.uint64),
        "forward_number": column(forward, 1, np.uint64),
        "forward_stack": column(forward, 2, np.int32),
        "forward_creates": column(forward, 3, np.uint32, default=True),
        "backward_thread": column(backward, 0, np.uint64),
        "backward_number": column(backward, 1, np.uint64),
        "backward_is_own": column(backward, 2, np.uint32),
        "backward_is_view": column(backward, 3, np.uint32, default=False),
        "backward_correlation": np.arange(len(backward), dtype=np.uint64).tobytes(),
    }


def found(forward, backward, rows):
    launches = ForwardStacks([drained(forward, backward)])
    stack, source = launches.of_launches(np.array([*rows, MISSING], np.int32))
    return list(zip(stack.tolist(), source.tolist(), strict=True))


def test_a_node_that_launched_has_the_stack_of_its_first_launch():
    forward = [(1, 10, 0), (1, 11, 1), (1, 11, 2), (1, 13, 3)]
    assert found(forward, [(1, 11, 1), (1, 10, 1)], range(4)) == [(1, EXACT), (0, EXACT)]


def test_a_node_between_two_launches_is_exact_if_these_were_of_one_line():
    forward = [(1, 10, 0), (1, 13, 1), (1, 16, 2)]
    # Stacks 0 and 1 are of the same line.
    assert found(forward, [(1, 12, 1), (1, 14, 1)], [7, 7, 8]) == [(7, EXACT), (7, NEAR)]


def test_turns_of_a_loop_say_nothing_about_a_node_between_them():
    # Stacks 0 and 1 are calls of one line; line 8 is between its second call and its first one.
    forward = [(1, 10, 0), (1, 11, 1), (1, 13, 0), (1, 14, 1), (1, 16, 1)]
    backward = [(1, 12, 1), (1, 15, 1)]
    assert found(forward, backward, [7, 7]) == [(7, NEAR), (7, NEAR)]


def test_a_launch_after_a_view_is_of_another_operator():
    forward = [(1, 10, 0), (1, 11, 1), (1, 13, 0)]
    assert found(forward, [(1, 11, 1, True), (1, 11, 1)], range(2)) == [(0, NEAR), (1, EXACT)]


def test_a_launch_without_gradients_is_not_of_the_node_before_it():
    forward = [(1, 10, 0), (1, 11, 1, False), (1, 13, 0)]
    assert found(forward, [(1, 11, 1)], range(2)) == [(0, NEAR)]


def test_nodes_at_the_ends_have_the_only_neighbour():
    forward = [(1, 10, 0), (1, 11, 1)]
    assert found(forward, [(1, 4, 1), (1, 99, 1)], range(2)) == [(0, NEAR), (1, NEAR)]


def test_a_node_without_a_number_is_near_the_one_before_it():
    assert found([(1, 10, 0)], [(1, 10, 0)], range(1)) == [(0, NEAR)]


def test_threads_count_their_own_nodes():
    forward = [(1, 10, 0), (2, 10, 1), (2, 12, 2)]
    backward = [(1, 10, 1), (2, 10, 1), (2, 11, 1), (3, 10, 1)]
    expected = [(0, EXACT), (1, EXACT), (1, EXACT), (MISSING, MISSING)]
    assert found(forward, backward, [0, 1, 1]) == expected


def test_without_a_forward_pass_there_are_no_stacks():
    assert found([], [(1, 10, 1)], []) == [(MISSING, MISSING)]


CODE = """
import struct, sys
from epprof_nb.recording.stacks.forward_stacks import ForwardStacks
from epprof_nb.recording.stacks.resolution import resolve
engine = ctypes.CDLL(ENGINE)
engine.stub_set_next.argtypes = [ctypes.c_uint64]
engine.stub_reference.argtypes = [ctypes.c_uint64, ctypes.c_void_p]
assert _native.engine_open(ENGINE)
# A Python object with a reference to a node behind its header: a complex number.
pointers = (ctypes.c_uint64 * 2)()
engine.stub_reference(3, pointers)
assert _native.engine_check_node(complex(*struct.unpack("dd", bytes(pointers))), 3, [])
assert _native.prepare_stacks(sys.version_info.minor) is None
_native.modules_record(True)
_native.start_stacks()
start()

def first():
    engine.stub_set_next(11)  # creates node 10
    stub.stub_call(2)
def second():
    engine.stub_set_next(14)  # creates nodes 11 to 13, of which the last one launches
    stub.stub_call(1)
def view():
    engine.stub_set_next(15)
def without_gradients():
    engine.stub_enable_gradients(False)
    stub.stub_call(1)
    engine.stub_enable_gradients(True)

first()
second()
view()
stub.stub_call(1)
engine.stub_set_next(16)
without_gradients()
numbers = (ctypes.c_uint64 * 6)(15, 14, 13, 12, 2**64 - 1, 10)
engine.stub_run_nodes(numbers, 6, ctypes.c_uint64(0b10), stub.stub_call)
_native.modules_record(False)
stub.stub_call(1)
launches = _native.drain_launches()
log = [_native.drain_stacks() | _native.drain_node_stacks()]
forward = ForwardStacks(log)
resolved = resolve(log, [forward.used])
stack, source = forward.of_launches(resolved.row)
correlation = np.frombuffer(launches["correlation_id"], np.uint64).tolist()
without = np.frombuffer(launches["stack_id"], np.int32) == -1
assert sorted(forward.correlation.tolist()) == sorted(c for c, w in zip(correlation, without) if w)
print(json.dumps([
    [resolved.stacks.frames(row)[0].function, how]
    for row, how in zip(stack.tolist(), source.tolist())
]))
"""


@pytest.mark.skipif(availability.why_unavailable() is not None, reason="stacks cannot be read here")
def test_the_native_core_notes_the_nodes_of_launches(tmp_path):
    library = cupti_stub.build(tmp_path)
    engine = tmp_path / "libengine.so"
    source = cupti_stub.SOURCE.with_name("autograd_stub.cpp")
    options = ["-std=c++17", "-shared", "-fPIC", "-pthread", "-w"]
    subprocess.run(["g++", *options, source, "-o", engine], check=True)
    printed = cupti_stub.run(library, CODE.replace("ENGINE", repr(str(engine))))
    # The launch after node 15 creates none, and node 14 is of a view. Node 12 is between the
    # launches of nodes 10 and 13; the leaf follows node 12.
    assert json.loads(printed) == [
        ["<module>", NEAR],
        ["second", NEAR],
        ["second", EXACT],
        ["first", NEAR],
        ["first", NEAR],
        ["first", EXACT],
    ]
