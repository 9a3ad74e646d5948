"""The tree that the ops of a profile form, as arrays: whole subtrees at the cost of a sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table


_LEVELS = 64
"""Ops nested deeper than this are put in order by a method whose cost does not grow with depth."""


class OpTree:
    """Parents, children and subtrees of the ops, by row of the ops table.

    The rows are numbered in preorder, so that a subtree is a range of numbers: sums over it are
    differences of a running sum, whatever the depth. An op whose parent is not in the table is a
    root; so is each op of a cycle, which only a damaged file can hold.

    Parameters
    ----------
    ops
        A table of schema `epprof_nb.data.schema.OPS`.

    Attributes
    ----------
    parent
        int64 array, shape ``(n,)``: row of each op's parent; `MISSING` for a root.
    enter, leave
        int64 arrays, shape ``(n,)``: the op's subtree is the preorder numbers
        ``enter <= number < leave``.
    depth
        int64 array, shape ``(n,)``: ops above each op.
    """

    __slots__ = ("_in_order", "_index", "_ops", "depth", "enter", "leave", "parent")

    def __init__(self, ops: Table) -> None:
        self._ops = ops
        self._index = IdIndex(ops["op_id"])
        parent = self._index.rows(ops["parent_op_id"])
        found = _as_they_are(parent)
        self._in_order = found is not None
        if found is None:
            parent = _without_cycles(parent)
            found = _preorder(parent)
        self.parent = parent
        self.enter, self.leave, self.depth = found

    def __len__(self) -> int:
        return len(self.parent)

    def rows(self, op_ids: IntArray) -> IntArray:
        """Return the row of each op id; `MISSING` for ids that are not in the table."""
        return self._index.rows(op_ids)

    def children(self, row: int) -> IntArray:
        """Return the rows of the ops directly under `row`."""
        return np.flatnonzero(self.parent == row)

    def subtree_sum(self, values: IntArray) -> IntArray:
        """Return, for each op, the sum of `values` (int64, one an op) over it and all below it."""
        running = np.zeros(len(values) + 1, np.int64)
        if self._in_order:
            np.cumsum(values, out=running[1:])
            totals = running[self.leave]
            totals -= running[:-1]
            return totals
        running[self.enter + 1] = values
        np.cumsum(running, out=running)
        totals = running[self.leave]
        totals -= running[self.enter]
        return totals

    def outermost(self, groups: IntArray) -> BoolArray:
        """Return which ops have no op of their own group above them.

        Parameters
        ----------
        groups
            int64 array, shape ``(n,)``: group of each op, from 0. Ops of group `MISSING` belong
            to none, and are never outermost.
        """
        order = np.lexsort((self.enter, groups))
        # One running maximum serves all groups: each group's numbers lie above the one before.
        shift = groups[order] * (len(self) + 1)
        reach = np.maximum.accumulate(self.leave[order] + shift)
        outer = groups >= 0
        nested = reach[:-1] > self.enter[order[1:]] + shift[1:]
        outer[order[1:][nested]] = False
        return outer

    def nearest(self, marked: BoolArray) -> IntArray:
        """Return the row of the nearest marked op, an op itself or above it; else `MISSING`."""
        rows = np.arange(len(self))
        hop = np.append(np.where(marked, rows, self.parent), MISSING)
        while True:
            further = hop[hop]
            if np.array_equal(further, hop):
                return hop[:-1]
            hop = further

    def deepest_at(self, thread_ids: IntArray, times: IntArray) -> IntArray:
        """Return the row of the deepest op open on a thread at a time; `MISSING` for none.

        Parameters
        ----------
        thread_ids
            int64 array, shape ``(k,)``: operating-system thread ids.
        times
            int64 array, shape ``(k,)``: nanoseconds since the profile's start.
        """
        starts, ends = self._ops["start_ns"], self._ops["end_ns"]
        found = np.full(len(times), MISSING, np.int64)
        for thread_id in np.unique(thread_ids):
            rows = np.flatnonzero(self._ops["thread_id"] == thread_id)
            rows = rows[np.lexsort((self.enter[rows], starts[rows]))]
            asked = np.flatnonzero(thread_ids == thread_id)
            before = np.searchsorted(starts[rows], times[asked], side="right")
            asked, before = asked[before > 0], before[before > 0]
            found[asked] = rows[before - 1]
        # The op that started last may have ended: what is open then is the nearest op above it.
        over = np.flatnonzero(found >= 0)
        while len(over):
            over = over[ends[found[over]] <= times[over]]
            found[over] = self.parent[found[over]]
            over = over[found[over] >= 0]
        return found


def _without_cycles(parent: IntArray) -> IntArray:
    jump = np.append(parent, MISSING)
    steps = 1
    while steps <= len(parent) and (jump >= 0).any():
        jump = jump[jump]
        steps *= 2
    # After as many steps as there are ops, only ops on a cycle are reached.
    parent = parent.copy()
    parent[jump[jump >= 0]] = MISSING
    return parent


def _as_they_are(parent: IntArray) -> tuple[IntArray, IntArray, IntArray] | None:
    """Number the rows in their own order where that is a preorder, as one thread records them."""
    rows = np.arange(len(parent))
    depth = _depths(parent) if (parent < rows).all() else None
    if depth is None:
        return None
    leave = np.full(len(parent) + 1, len(parent))  # the last is for row -1, no parent
    order = np.argsort(depth, kind="stable")
    cuts = np.cumsum(np.bincount(depth))[:-1]
    for level in np.split(order, cuts):
        # An op ends where the next one begins that is no deeper: one as deep, or one above it.
        until = leave[parent[level]]
        if (until <= level).any():
            return None
        leave[level[:-1]] = np.minimum(level[1:], until[:-1])
        leave[level[-1:]] = until[-1:]
    return rows, leave[:-1], depth.astype(np.int64)


def _depths(parent: IntArray) -> npt.NDArray[np.uint8] | None:
    """Return how many rows are above each, where each stands below its parent.

    None where there are too many to find out so.
    """
    depth = np.zeros(len(parent) + 1, np.uint8)
    depth[-1] = 255  # one more is 0: the depth of what has no parent
    for piece in chunks(len(parent)):
        above, own = parent[piece], depth[piece]
        np.add(depth[above], 1, out=own)
        # Where the parent is in this piece too, its depth comes first.
        waiting = np.flatnonzero(above >= piece.start)
        known = np.ones(len(above), np.bool_)
        known[waiting] = False
        rounds = 0
        while len(waiting):
            if (rounds := rounds + 1) > _LEVELS:
                return None
            over = above[waiting] - piece.start
            ready = known[over]
            now = waiting[ready]
            own[now] = own[over[ready]] + 1
            known[now] = True
            waiting = waiting[~ready]
        if own.max() > _LEVELS:
            return None
    return depth[:-1]


def _preorder(parent: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    # Pointer jumping: after k rounds, jump leads 2**k generations up, size covers the
    # descendants nearer than that, and enter the ancestors nearer than that.
    size = np.ones(len(parent), np.int64)
    jump = np.append(parent, MISSING)
    jumps = []
    while (jump >= 0).any():
        jumps.append(jump)
        size += sum_by_group(jump[:-1], size, len(parent))[:-1]
        jump = jump[jump]
    order = np.argsort(parent, kind="stable")
    before = np.cumsum(size[order]) - size[order]
    eldest = np.ones(len(parent), np.bool_)
    eldest[1:] = parent[order[1:]] != parent[order[:-1]]
    before -= before[np.maximum.accumulate(np.where(eldest, np.arange(len(parent)), 0))]
    enter = np.zeros(len(parent) + 1, np.int64)
    enter[order] = before + (parent[order] >= 0)
    for jump in jumps:
        enter += enter[jump]
    enter = enter[:-1]
    leave = enter + size
    # In preorder, the ops around number k are those before it that have not been left yet.
    left = np.cumsum(np.bincount(leave, minlength=len(parent) + 1))[: len(parent)]
    return enter, leave, (np.arange(len(parent)) - left)[enter]
