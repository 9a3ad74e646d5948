"""OpTree: the tree of a profile's ops, stored as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.ancestors import nearest_ancestor
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table

_MAX_LEVELS = 64
"""Deeper trees are ordered by a method whose cost does not depend on the depth."""


NO_OP = "(no op)"
"""Name of the row of activities without an op."""


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
        numbering = _number_in_row_order(parent)
        self._in_order = numbering is not None
        if numbering is None:
            parent = _without_cycles(parent)
            numbering = preorder(parent)
        self.parent = parent
        self.preorder_begin, self.preorder_end, self.depth = numbering

    def __len__(self) -> int:
        return len(self.parent)

    def rows(self, op_ids: IntArray) -> IntArray:
        """Return the row of each op id; `MISSING` for ids that are not in the table."""
        return self._index.rows(op_ids)

    def subtree_sum(self, values: IntArray) -> IntArray:
        """Sum `values` (int64, one value per op) over each op and all ops below it."""
        running = np.zeros(len(values) + 1, np.int64)
        if self._in_order:
            np.cumsum(values, out=running[1:])
            totals = running[self.preorder_end]
            totals -= running[:-1]
            return totals
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
        order = self._by_group(groups)
        # With the groups shifted apart, one running maximum serves all of them.
        shift = groups[order] * (len(self) + 1)
        running_end = np.maximum.accumulate(self.preorder_end[order] + shift)
        outermost = groups >= 0
        is_nested = running_end[:-1] > self.preorder_begin[order[1:]] + shift[1:]
        outermost[order[1:][is_nested]] = False
        return outermost

    def _by_group(self, groups: IntArray) -> IntArray:
        """Return the rows by group, and in preorder within each."""
        if self._in_order:
            if groups.max(initial=0) <= np.iinfo(np.int16).max:
                groups = groups.astype(np.int16)  # radix sort, ten times faster
            return np.argsort(groups, kind="stable")
        return np.lexsort((self.preorder_begin, groups))

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
        for thread_id in np.unique(thread_ids):
            rows = np.flatnonzero(self._ops["thread_id"] == thread_id)
            rows = rows[np.lexsort((self.preorder_begin[rows], starts[rows]))]
            queries = np.flatnonzero(thread_ids == thread_id)
            before = np.searchsorted(starts[rows], times[queries], side="right")
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


def _number_in_row_order(parent: IntArray) -> tuple[IntArray, IntArray, IntArray] | None:
    """Number the rows in their own order; None if that is not a preorder.

    The ops that one thread records are in preorder.
    """
    rows = np.arange(len(parent))
    depth = _depths(parent) if (parent < rows).all() else None
    if depth is None:
        return None
    end = np.full(len(parent) + 1, len(parent))  # the last element is for row -1, no parent
    order = np.argsort(depth, kind="stable")
    cuts = np.cumsum(np.bincount(depth))[:-1]
    for level in np.split(order, cuts):
        # A subtree ends at the next op of the same depth, or where its parent's subtree ends.
        parent_end = end[parent[level]]
        if (parent_end <= level).any():
            return None
        end[level[:-1]] = np.minimum(level[1:], parent_end[:-1])
        end[level[-1:]] = parent_end[-1:]
    return rows, end[:-1], depth.astype(np.int64)


def _depths(parent: IntArray) -> npt.NDArray[np.uint8] | None:
    """Return the number of ancestors of each row, for parents that precede their children.

    None if the tree is too deep for this method.
    """
    depth = np.zeros(len(parent) + 1, np.uint8)
    depth[-1] = 255  # plus 1 is 0, the depth of a root
    for chunk in chunks(len(parent)):
        above, own = parent[chunk], depth[chunk]
        np.add(depth[above], 1, out=own)
        # Parents within this chunk come first.
        waiting = np.flatnonzero(above >= chunk.start)
        known = np.ones(len(above), np.bool_)
        known[waiting] = False
        rounds = 0
        while len(waiting):
            if (rounds := rounds + 1) > _MAX_LEVELS:
                return None
            above_waiting = above[waiting] - chunk.start
            is_ready = known[above_waiting]
            ready = waiting[is_ready]
            own[ready] = own[above_waiting[is_ready]] + 1
            known[ready] = True
            waiting = waiting[~is_ready]
        if own.max() > _MAX_LEVELS:
            return None
    return depth[:-1]


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
