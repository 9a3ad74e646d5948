"""Whether the names of launches identify their nodes."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.recording.onnxruntime import operator_launches
from epprof_nb.recording.onnxruntime.launch_sequences import _OP, LAUNCH, RUN, LaunchSequence
from epprof_nb.recording.onnxruntime.operator_launches import OperatorLaunches

A, B, C = 10, 20, 30
"""Operators."""


def run(*nodes, before=(), after=()):
    """The launches of a run and their nodes; each node is an operator and what it launched."""
    ops = np.zeros(len(nodes) + 1, _OP)  # the first one is the event around the nodes
    ops["op_type"][1:] = [kind for kind, *_ in nodes]
    ops["is_node"][1:] = True
    names = [*before, *(name for _, *launched in nodes for name in launched), *after]
    of_launch = [RUN] * len(before)
    for i, (_, *launched) in enumerate(nodes):
        of_launch += [i + 1] * len(launched)
    of_launch += [0] * len(after)
    packed = np.zeros(len(names), LAUNCH)
    packed["name"] = names
    return packed.tobytes(), LaunchSequence(np.array(of_launch, np.int16), ops)


def told_apart(*runs, any_size=True):
    operators, known, found = OperatorLaunches(any_size=any_size), [], []
    for each in runs:
        found.append(operators.tell_apart(*each, known))
        known.append(each)
    return found


def test_nodes_of_one_kernel_each_are_told_apart():
    assert told_apart(run((A, 1), (A, 1), (B, 1), (C, 2, 3), before=(9,), after=(9, 9))) == [True]


def test_nodes_that_launch_nothing_are_told_apart_from_others():
    assert told_apart(run((A, 1), (B,), (A, 1), (C, 2), (B,))) == [True]


def test_an_operator_that_may_launch_a_kernel_more_is_ambiguous_beside_its_like():
    assert told_apart(run((A, 1, 1), (A, 1))) == [False]
    assert told_apart(run((A, 1, 1), (B, 2), (A, 1))) == [True]


def test_a_later_run_makes_an_earlier_one_ambiguous():
    first = run((A, 1), (B, 1, 2))
    assert told_apart(first, run((A, 1, 1), (B, 2))) == [True, False]
    # Kernels of other names are unambiguous.
    assert told_apart(first, run((A, 1, 3), (B, 2))) == [True, True]


def test_what_the_run_itself_launched_is_no_part_of_a_node():
    first = run((A, 9), (B, 1), before=(9, 9))
    assert told_apart(first) == [True]
    assert told_apart(first, run((A,), (B, 1), before=(9, 9, 9))) == [True, False]


def test_launches_that_are_not_in_the_order_of_the_nodes():
    launches, sequence = run((A, 1), (B, 2), (A, 1))
    mixed = LaunchSequence(np.array([1, 3, 2], np.int16), sequence.ops)
    outside = LaunchSequence(np.array([1, RUN, 3], np.int16), sequence.ops)
    assert told_apart((launches, mixed)) == told_apart((launches, outside)) == [False]
    assert told_apart((launches, outside), any_size=False) == [True]


def test_nodes_of_other_shapes_are_others():
    launches, sequence = run((A, 1), (A,))
    assert told_apart((launches, sequence), any_size=False) == [False]
    sequence.ops["output_shapes"][-1] = 7
    assert told_apart((launches, sequence), any_size=False) == [True]


def test_a_sequence_whose_shapes_varied_is_known_without_them():
    launches, sequence = run((A, 1), (B, 2))
    sequence.ops["output_shapes"] = 7
    stripped = launches, LaunchSequence(sequence.op, run((A, 1), (B, 2))[1].ops)
    operators = OperatorLaunches(any_size=False)
    assert operators.tell_apart(launches, sequence, [])
    larger = run((A, 1, 1), (B, 2))
    larger[1].ops["output_shapes"] = 8
    assert operators.tell_apart(*larger, [stripped])


def test_runs_without_nodes_or_launches():
    assert told_apart(run(), run((A,)), run(before=(1,))) == [True] * 3


def test_the_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(operator_launches, "MAX_WAYS", 3)
    found = told_apart(*(run((A, *[i] * i)) for i in range(1, 6)))
    assert found == [True] * 3 + [False] * 2


@pytest.mark.parametrize("empty", [0, 1])
def test_many_nodes(empty):
    nodes = [(A, 1), (B, 2, 2), *[(C,)] * empty, (A, 1, 3)] * 500
    assert told_apart(run(*nodes)) == [True]
