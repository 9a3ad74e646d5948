"""Executions of ops, and replays of captured ops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epprof_nb.analysis.base.op_status import ran
from epprof_nb.arrays.groups import group_codes, sum_by_group

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.op_tree import OpTree
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
        int64 array of the same length: number of executions in the element.
    """

    rows: IntArray
    device_ns: IntArray
    counts: IntArray


_NONE = Executions(*[np.empty(0, np.int64)] * 3)


def executions(
    index: ProfileIndex, counted: BoolArray, device_ns: IntArray, *, attribution: Attribution
) -> Executions:
    """Return the executions of ops.

    With the attribution ``"capture"``, replays of a graph are executions of the ops that it
    captured.

    Parameters
    ----------
    index
        Index of the profile.
    counted
        bool array: ops whose executions to return.
    device_ns
        int64 array: device time of each op and all ops below it, with this attribution.
    attribution
        See `epprof_nb.analysis.base.attribution.attributed_op_rows`.

    Returns
    -------
    executions
        The executions. An op that only captured a graph did not execute itself; its replays did.
    """
    ops = index.profile.tables["ops"]
    replays = _replays(index, counted) if attribution == "capture" else _NONE
    replayed_ns = sum_by_group(replays.rows, replays.device_ns, len(ops))[:-1]
    own_ns = device_ns - replayed_ns
    only_captured = np.zeros(len(ops), np.bool_)
    only_captured[replays.rows] = True
    only_captured &= own_ns == 0
    rows = np.flatnonzero(counted & ran(ops) & ~only_captured)
    return Executions(
        np.append(rows, replays.rows),
        np.append(own_ns[rows], replays.device_ns),
        np.append(ops["count"][rows], replays.counts),
    )


def _replays(index: ProfileIndex, counted: BoolArray) -> Executions:
    """Return one element per op and replay with work of the op."""
    activities, tree = index.profile.tables["activities"], index.tree
    captured = tree.rows(activities["capture_op_id"])
    work = np.flatnonzero(index.is_device_work & (captured >= 0))
    nearest = tree.nearest_ancestor(counted)
    row, found, of_work = nearest[captured[work]], [], []
    while True:
        # An op that also replayed the graph executes once.
        is_apart = (row >= 0) & ~_contains(tree, row, index.activity_op[work])
        work, row = work[is_apart], row[is_apart]
        if not len(row):
            break
        found.append(row)
        of_work.append(work)
        # A nested op, such as a node in an If, Loop or Scan, also counts for the op around it.
        above = tree.parent[row]
        row = np.where(above >= 0, nearest[above], above)
    if not found:
        return _NONE
    rows, work = np.concatenate(found), np.concatenate(of_work)
    codes, first = group_codes(rows, activities["correlation_id"][work])
    device_ns = sum_by_group(codes, activities["duration_ns"][work], len(first))[:-1]
    return Executions(rows[first], device_ns, np.ones(len(first), np.int64))


def _contains(tree: OpTree, rows: IntArray, others: npt.NDArray[np.integer[Any]]) -> BoolArray:
    """Return whether each op is its counterpart in `others` or above it."""
    begin = tree.preorder_begin[others]
    contains: BoolArray = (tree.preorder_begin[rows] <= begin) & (begin < tree.preorder_end[rows])
    return contains & (others >= 0)
