"""Launches by operator, which prove that the launches of a sequence belong to certain nodes.

ONNX Runtime executes the nodes of a session in one order. Two runs with the same launches could
still differ in the nodes of the launches: one node launches one kernel more, and its neighbour one
less. This is impossible if there is only one way to divide the launches among the nodes, in order,
such that each node has launches that were recorded for its operator (and its shapes, if sizes are
compared).

This proves nothing for a node whose data was empty: its launches for other data are unknown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.recording.native_columns import name_of
from epprof_nb.recording.onnxruntime.launch_sequences import LAUNCH

if TYPE_CHECKING:
    from collections.abc import Iterable

    from epprof_nb.recording.onnxruntime.launch_sequences import LaunchSequence

MAX_WAYS = 64
"""Maximum number of different launch lists per operator; with more, no nodes are certain."""

_Slot = tuple[int, ...]
"""Operator, provider and shapes of a node; or the run itself, before or after its nodes."""
_BEFORE, _AFTER = (-1,), (1,)
_Way = tuple[bytes, ...]
_EMPTY = re.compile(r"[\[,]0[,\]]")
"""A shape with a dimension of 0, as in ``float[0,4]``."""
_ON_HOST = "CPUExecutionProvider"


def has_idle_empty_nodes(sequence: LaunchSequence) -> bool:
    """Whether a device node with an empty tensor launched nothing.

    With other data of the same input shapes, it may cause launches that equal another node's.
    """
    idle = sequence.ops["is_node"].copy()
    idle[sequence.op[sequence.op >= 0]] = False
    ops = sequence.ops[idle]
    empty = np.zeros(len(ops), np.bool_)
    for column in ("input_shapes", "output_shapes"):
        ids, of = np.unique(ops[column], return_inverse=True)
        empty |= np.array([bool(_EMPTY.search(name_of(i))) for i in ids.tolist()], np.bool_)[of]
    return any(name_of(i) != _ON_HOST for i in np.unique(ops["provider"][empty]).tolist())


class OperatorLaunches:
    """The launches of nodes by operator, provider and shapes.

    Parameters
    ----------
    any_size
        Whether sizes are not compared. The nodes are then uncertain if their launches are in
        another order.
    """

    __slots__ = ("_any_size", "_ways")

    def __init__(self, *, any_size: bool) -> None:
        self._any_size = any_size
        self._ways: dict[_Slot, set[_Way]] = {}

    def tell_apart(
        self,
        launches: bytes,
        sequence: LaunchSequence,
        others: Iterable[tuple[bytes, LaunchSequence]],
    ) -> bool:
        """Add a recorded run; return whether its nodes and all other sequences' nodes are certain.

        Parameters
        ----------
        launches
            The launches of the run, of dtype `LAUNCH`, without sizes if sizes are not compared.
        sequence
            Their nodes.
        others
            Launches and nodes of runs that were added before.
        """
        names = _split(launches)
        divided = _divided(names, sequence)
        if divided is None:
            return not self._any_size
        is_new = False
        for slot, way in divided:
            ways = self._ways.setdefault(slot, set())
            is_new |= way not in ways
            ways.add(way)
            if len(ways) > MAX_WAYS:
                return False
        checked = [(names, divided)]
        if is_new:  # it may be another way to divide the earlier launches
            checked += [
                (of, _divided(of, s) or []) for of, s in ((_split(b), s) for b, s in others)
            ]
        return all(self._is_certain(of, [slot for slot, _ in parts]) for of, parts in checked)

    def _is_certain(self, names: _Way, slots: list[_Slot]) -> bool:
        """Whether there is only one way to divide the launches among the nodes.

        Runs whose shapes varied are not checked again.
        """
        if not all(slot in self._ways for slot in slots) or not slots:
            return True
        ends = {0: 1}  # number of ways, at most 2, by their end
        for slot in slots:
            reached: dict[int, int] = {}
            for at, count in ends.items():
                for way in self._ways[slot]:
                    if names[at : at + len(way)] == way:
                        end = at + len(way)
                        reached[end] = min(reached.get(end, 0) + count, 2)
            ends = reached
        return ends.get(len(names)) == 1


def _split(launches: bytes) -> _Way:
    size = LAUNCH.itemsize
    return tuple(launches[at : at + size] for at in range(0, len(launches), size))


def _divided(names: _Way, sequence: LaunchSequence) -> list[tuple[_Slot, _Way]] | None:
    """Return the launches of each node in order; None if the launches have another order."""
    nodes = np.flatnonzero(sequence.ops["is_node"])
    number = np.full(len(sequence.ops) + 1, -1)
    number[nodes] = np.arange(len(nodes))
    of_launch = number[sequence.op]  # `RUN` is the last element
    inside = np.flatnonzero(of_launch >= 0)
    first, last = (inside[0], inside[-1] + 1) if len(inside) else (0, 0)
    of_nodes = of_launch[first:last]
    if (of_nodes < 0).any() or (np.diff(of_nodes) < 0).any():
        return None
    starts = first + np.searchsorted(of_nodes, np.arange(len(nodes) + 1))
    ops = sequence.ops[nodes]
    columns = ("op_type", "provider", "input_shapes", "output_shapes")
    slots = zip(*(ops[column].tolist() for column in columns), strict=True)
    return [
        (_BEFORE, names[:first]),
        *((slot, names[starts[i] : starts[i + 1]]) for i, slot in enumerate(slots)),
        (_AFTER, names[last:]),
    ]
