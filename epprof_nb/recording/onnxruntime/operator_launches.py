"""Launches by operator: proof that the names of a sequence belong to certain nodes.

ONNX Runtime executes the nodes of a session in one order. If sizes are not compared, two runs with
the same names could still differ in which node launched what: one node launches one kernel more,
and its neighbour one less. That is impossible if there is only one way to divide the names among
the nodes in their order, so that each launches what a node of its operator was seen to launch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.recording.onnxruntime.launch_sequences import LAUNCH

if TYPE_CHECKING:
    from collections.abc import Iterable

    from epprof_nb.recording.onnxruntime.launch_sequences import LaunchSequence

MAX_WAYS = 64
"""Different lists of launches of the nodes of one operator; with more, no nodes are certain."""

_Slot = tuple[int, int, int]
"""Operator and provider of a node, or what the run itself launched before or after its nodes."""
_BEFORE, _AFTER = (0, 0, -1), (0, 0, 1)


class OperatorLaunches:
    """The launches of nodes by operator and provider."""

    __slots__ = ("_ways",)

    def __init__(self) -> None:
        self._ways: dict[_Slot, set[tuple[int, ...]]] = {}

    def tell_apart(
        self,
        launches: bytes,
        sequence: LaunchSequence,
        others: Iterable[tuple[bytes, LaunchSequence]],
    ) -> bool:
        """Add a recorded run; return whether its nodes and those of other sequences are certain.

        Parameters
        ----------
        launches
            The launches of the run, of dtype `LAUNCH`, without their sizes.
        sequence
            Their nodes.
        others
            Launches and nodes of runs that were added before.
        """
        names = _names(launches)
        divided = _divided(names, sequence)
        if divided is None:
            return False
        is_new = False
        for slot, way in divided:
            ways = self._ways.setdefault(slot, set())
            is_new |= way not in ways
            ways.add(way)
            if len(ways) > MAX_WAYS:
                return False
        checked = [(names, divided)]
        if is_new:  # it may be another way to divide these
            checked += [
                (of, _divided(of, s) or []) for of, s in ((_names(b), s) for b, s in others)
            ]
        return all(self._is_certain(of, [slot for slot, _ in parts]) for of, parts in checked)

    def _is_certain(self, names: tuple[int, ...], slots: list[_Slot]) -> bool:
        """Whether there is one way only to divide the names among the nodes."""
        ends = {0: 1}  # number of ways, at most 2, by where they end
        for slot in slots:
            reached: dict[int, int] = {}
            for at, count in ends.items():
                for way in self._ways[slot]:
                    if names[at : at + len(way)] == way:
                        end = at + len(way)
                        reached[end] = min(reached.get(end, 0) + count, 2)
            ends = reached
        return ends.get(len(names)) == 1


def _names(launches: bytes) -> tuple[int, ...]:
    packed = np.frombuffer(launches, LAUNCH)
    codes: list[int] = ((packed["kind"].astype(np.int64) << 32) | packed["name"]).tolist()
    return tuple(codes)


def _divided(
    names: tuple[int, ...], sequence: LaunchSequence
) -> list[tuple[_Slot, tuple[int, ...]]] | None:
    """Return what each node launched, in order of the nodes; None if it is not in their order."""
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
    slots = zip(ops["op_type"].tolist(), ops["provider"].tolist(), strict=True)
    return [
        (_BEFORE, names[:first]),
        *(
            ((op_type, provider, 0), names[starts[i] : starts[i + 1]])
            for i, (op_type, provider) in enumerate(slots)
        ),
        (_AFTER, names[last:]),
    ]
