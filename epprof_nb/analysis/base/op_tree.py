"""OpTree: the tree of a profile's ops, stored as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb import _native
from epprof_nb.arrays.ancestors import nearest_ancestor
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.ids import IdIndex, unique_values
from epprof_nb.arrays.positions import positions
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table

NO_OP = "(no op)"
"""Name of the row of activities without an op."""
UNNAMED = "(unnamed)"
"""Name of ops with an empty name."""


class OpTree:
    """Parents and subtrees of the ops, by row of the ops table.

    Ops are numbered in preorder, so a subtree is a range of numbers, and the sum over a subtree is
    the difference of two running sums. An op whose parent is not in the table is a root. Each op of
    a cycle, which only a damaged file can contain, is a root too.

    Parameters
    ----------
    ops
        A table of schema `epprof_nb.data.schema.OPS`.

    Attributes
    ----------
    parent
        int64 array, shape ``(n,)``: row of each op's parent; `MISSING` for a root.
    preorder_begin, preorder_end
        int64 arrays, shape ``(n,)``: an op's subtree has the preorder numbers
        ``preorder_begin <= number < preorder_end``.
    depth
        int64 array, shape ``(n,)``: number of ancestors.
    """

    __slots__ = ("_in_order", "_index", "_ops", "depth", "parent", "preorder_begin", "preorder_end")

    def __init__(self, ops: Table) -> None:
        self._ops = ops
        self._index = IdIndex(ops["op_id"])
        parent = self._index.rows(ops["parent_op_id"])
        begin, end, depth = np.arange(len(parent)), np.empty_like(parent), np.empty_like(parent)
        # The ops that one thread records are in preorder.
        self._in_order = _native.number_ops(end, depth, parent)
        if not self._in_order:
            parent = _without_cycles(parent)
            begin, end, depth = preorder(parent)
        self.parent = parent
        self.preorder_begin, self.preorder_end, self.depth = begin, end, depth

    def __len__(self) -> int:
        return len(self.parent)

    def rows(self, op_ids: IntArray) -> IntArray:
        """Return the row of each op id; `MISSING` for ids that are not in the table."""
        return self._index.rows(op_ids)

    def subtree_sum(self, values: IntArray) -> IntArray:
        """Sum `values` (int64, one value per op) over each op and all ops below it."""
        if self._in_order:
            totals = values.copy()
            _native.add_to_parents(totals, self.parent)
            return totals
        running = np.zeros(len(values) + 1, np.int64)
        running[self.preorder_begin + 1] = values
        np.cumsum(running, out=running)
        totals = running[self.preorder_end]
        totals -= running[self.preorder_begin]
        return totals

    def is_outermost(self, groups: IntArray) -> BoolArray:
        """Return which ops have no ancestor of the same group.

        Parameters
        ----------
        groups
            int64 array, shape ``(n,)``: group of each op, from 0. Ops of group `MISSING` have no
            group and are never outermost.
        """
        outermost, end = np.empty(len(self), np.bool_), self.preorder_end
        until = np.zeros(int(groups.max(initial=-1)) + 1, np.int64)
        if self._in_order:
            _native.find_outermost(outermost, until, groups, end)
            return outermost
        order = np.argsort(self.preorder_begin)
        found = np.empty_like(outermost)
        _native.find_outermost(found, until, groups[order], end[order])
        outermost[order] = found
        return outermost

    def nearest_ancestor(self, mask: BoolArray) -> IntArray:
        """Return the row of the nearest op in `mask`: the op or an ancestor, else `MISSING`."""
        return nearest_ancestor(self.parent, mask)

    def open_op_at(self, thread_ids: IntArray, times: IntArray) -> IntArray:
        """Return the row of the deepest op open on a thread at a time; `MISSING` for none.

        Parameters
        ----------
        thread_ids
            int64 array, shape ``(k,)``: operating-system thread ids.
        times
            int64 array, shape ``(k,)``: nanoseconds since the profile's start.
        """
        starts, ends = self._ops["start_ns"], self._ops["end_ns"]
        result = np.full(len(times), MISSING, np.int64)
        for thread_id in unique_values(thread_ids):
            rows = np.flatnonzero(self._ops["thread_id"] == thread_id)
            if not self._in_order:
                rows = rows[np.argsort(self.preorder_begin[rows])]
            rows = rows[np.argsort(starts[rows], kind="stable")]
            queries = np.flatnonzero(thread_ids == thread_id)
            before = positions(starts[rows], times[queries], "right")
            queries, before = queries[before > 0], before[before > 0]
            result[queries] = rows[before - 1]
        # If the op that started last has ended, the open op is its nearest open ancestor.
        left = np.flatnonzero(result >= 0)
        while len(left):
            left = left[ends[result[left]] <= times[left]]
            result[left] = self.parent[result[left]]
            left = left[result[left] >= 0]
        return result


def _without_cycles(parent: IntArray) -> IntArray:
    """Make each op of a cycle a root."""
    jump = np.append(parent, MISSING)
    steps = 1
    while steps <= len(parent) and (jump >= 0).any():
        jump = jump[jump]
        steps *= 2
    # After as many steps as there are ops, only ops of cycles are reached.
    parent = parent.copy()
    parent[jump[jump >= 0]] = MISSING
    return parent


def preorder(parent: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return begin and end in preorder, and the depth, of ops in any order."""
    # Pointer jumping: after k rounds `jump` leads 2**k generations up, `size` covers the
    # descendants nearer than that, and `begin` the ancestors nearer than that.
    size = np.ones(len(parent), np.int64)
    jump = np.append(parent, MISSING)
    jumps = []
    while (jump >= 0).any():
        jumps.append(jump)
        size += sum_by_group(jump[:-1], size, len(parent))[:-1]
        jump = jump[jump]
    order = np.argsort(parent, kind="stable")
    before = np.cumsum(size[order]) - size[order]
    is_first_child = np.ones(len(parent), np.bool_)
    is_first_child[1:] = parent[order[1:]] != parent[order[:-1]]
    first_child = np.maximum.accumulate(np.where(is_first_child, np.arange(len(parent)), 0))
    before -= before[first_child]
    begin = np.zeros(len(parent) + 1, np.int64)
    begin[order] = before + (parent[order] >= 0)
    for jump in jumps:
        begin += begin[jump]
    begin = begin[:-1]
    end = begin + size
    # In preorder, the ancestors of number k are the ops before it whose subtrees have not ended.
    ended = np.cumsum(np.bincount(end, minlength=len(parent) + 1))[: len(parent)]
    return begin, end, (np.arange(len(parent)) - ended)[begin]
