"""Ops of coroutines and generators that took turns with others on their thread.

An op is suspended while its coroutine awaits. The profile says how long in all, but not when, so
where another op of the thread ran meanwhile, nothing says whose time the thread spent when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.groups import group_codes

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray


def suspended_ops(index: ProfileIndex) -> BoolArray:
    """Return which ops were suspended."""
    suspended: BoolArray = index.profile.tables["ops"]["suspended_ns"] > 0
    return suspended


def interleaved_ops(index: ProfileIndex) -> BoolArray:
    """Return which ops were suspended while an op that is not below them ran on their thread."""
    ops, tree = index.profile.tables["ops"], index.tree
    suspended = suspended_ops(index)
    found = np.zeros(len(ops), np.bool_)
    if not suspended.any():
        return found
    thread = group_codes(ops["thread_id"])[0]
    start, end = ops["start_ns"], np.maximum(ops["end_ns"], ops["start_ns"])
    above = _suspended_above(index, suspended)
    for number in np.unique(thread[suspended]).tolist():
        own = thread == number
        rows = np.flatnonzero(own & suspended)
        starts = np.sort(start[own])
        inside = _before(starts, end[rows]) - _before(starts, start[rows])
        below = tree.subtree_sum(own.astype(np.int64))[rows] - 1
        # The row itself starts there, too; rows of several executions may start with their parent.
        others_start = inside > below + 1
        open_then = _before(np.sort(start[rows]), start[rows])
        open_then -= np.searchsorted(np.sort(end[rows]), start[rows], side="right")
        found[rows] = others_start | (open_then > above[rows])
    return found


def _before(times: IntArray, until: IntArray) -> IntArray:
    before: IntArray = np.searchsorted(times, until, side="left")
    return before


def _suspended_above(index: ProfileIndex, suspended: BoolArray) -> IntArray:
    """Return how many ops above each were suspended."""
    tree = index.tree
    change = np.zeros(len(suspended) + 1, np.int64)
    change += np.bincount(tree.preorder_begin[suspended], minlength=len(change))
    change -= np.bincount(tree.preorder_end[suspended], minlength=len(change))
    above: IntArray = np.cumsum(change)[tree.preorder_begin] - suspended
    return above
