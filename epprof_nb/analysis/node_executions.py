"""Executions of ONNX Runtime's nodes: those that ran, and the replays of captured ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.op_status import ran
from epprof_nb.arrays.groups import group_codes, sum_by_group

if TYPE_CHECKING:
    from epprof_nb.analysis.attribution import Attribution
    from epprof_nb.analysis.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray


class Executions(NamedTuple):
    """Executions of ops.

    Attributes
    ----------
    rows
        int64 array: row of the op; an op that a graph captured has one element per replay.
    device_ns
        int64 array of the same length: device time of the op and all ops below it.
    counts
        int64 array of the same length: executions that the element stands for.
    """

    rows: IntArray
    device_ns: IntArray
    counts: IntArray


_NONE = Executions(*[np.empty(0, np.int64)] * 3)


def executions(
    index: ProfileIndex, is_node: BoolArray, device_ns: IntArray, *, attribution: Attribution
) -> Executions:
    """Return the executions of nodes.

    With the attribution ``"capture"``, replays of a graph are executions of the nodes that it
    captured.

    Parameters
    ----------
    index
        Index of the profile.
    is_node
        bool array: whether each op is a node.
    device_ns
        int64 array: device time of each op and all ops below it, with this attribution.
    attribution
        See `epprof_nb.analysis.attribution.attributed_op_rows`.

    Returns
    -------
    executions
        A node that captured a graph without any work of its own did not execute; its replays did.
    """
    ops = index.profile.tables["ops"]
    replays = _replays(index, is_node) if attribution == "capture" else _NONE
    replayed_ns = sum_by_group(replays.rows, replays.device_ns, len(ops))[:-1]
    own_ns = device_ns - replayed_ns
    only_captured = np.zeros(len(ops), np.bool_)
    only_captured[replays.rows] = True
    only_captured &= own_ns == 0
    rows = np.flatnonzero(is_node & ran(ops) & ~only_captured)
    return Executions(
        np.append(rows, replays.rows),
        np.append(own_ns[rows], replays.device_ns),
        np.append(ops["count"][rows], replays.counts),
    )


def _replays(index: ProfileIndex, is_node: BoolArray) -> Executions:
    """Return one element per node and replay that it has work in."""
    activities, tree = index.profile.tables["activities"], index.tree
    captured = tree.rows(activities["capture_op_id"])
    work = np.flatnonzero(index.is_device_work & (captured >= 0))
    nearest = tree.nearest_ancestor(is_node)
    row, found, of_work = nearest[captured[work]], [], []
    while (row >= 0).any():
        work, row = work[row >= 0], row[row >= 0]
        found.append(row)
        of_work.append(work)
        # A node inside an If, Loop or Scan also counts for that one.
        above = tree.parent[row]
        row = np.where(above >= 0, nearest[above], above)
    if not found:
        return _NONE
    rows, work = np.concatenate(found), np.concatenate(of_work)
    codes, first = group_codes(rows, activities["correlation_id"][work])
    device_ns = sum_by_group(codes, activities["duration_ns"][work], len(first))[:-1]
    return Executions(rows[first], device_ns, np.ones(len(first), np.int64))
