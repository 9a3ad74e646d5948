"""Categories of blocks: by the tensors that were found in them, else by their lives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.frameworks.training_phases import (
    BACKWARD,
    FORWARD,
    OPTIMIZER,
    is_of_type,
    op_phases,
)
from epprof_nb.analysis.memory.memory_peak import InUse
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import BLOCK_CATEGORIES

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

_CODE = {name: code for code, name in enumerate(BLOCK_CATEGORIES)}


def block_categories(index: ProfileIndex) -> CategoryColumn:
    """Return the category of each block; missing for those from before the profile without one.

    A block of PyTorch that the backward pass allocates and that is released after it is a gradient;
    the state of an optimizer, likewise. Of blocks in use at the end, tensors were looked for:
    libraries also allocate what they keep, such as workspaces. An activation was allocated before a
    backward pass and released in it. Memory that the op that allocated it also released is
    temporary. What the program gave to a model is an input, unless a model has made it.
    """
    blocks, ops = index.profile.tables["memory_blocks"], index.profile.tables["ops"]
    in_use = index.cached(InUse)
    begin, end = in_use.begin, in_use.end
    op = index.tree.rows(blocks["op_id"])
    phase = np.append(index.cached(op_phases), np.uint8(0xFF))[op]
    codes = np.where(op == MISSING, MISSING, _CODE["other"]).astype(np.int32)
    op_end = np.append(ops["end_ns"], np.iinfo(np.int64).min)[op]
    pools = blocks.names("pool")
    is_of_torch = np.array([*(n.startswith("torch") for n in pools.categories), False])[pools.codes]
    in_forward = phase == FORWARD
    codes[in_forward & ~_followed_by_backward(index, begin)] = _CODE["forward, undecided"]
    for of_phase, name in ((BACKWARD, "gradient"), (OPTIMIZER, "optimizer state")):
        outlives = end > _outermost_end(index, op, phase == of_phase)
        outlives &= is_of_torch & blocks.has_value("freed_ns")
        codes[(phase == of_phase) & outlives] = _CODE[name]
    codes[(op != MISSING) & (end <= op_end)] = _CODE["temporary"]
    first, last = _backward_passes(index)
    if len(first):
        # The next backward pass after the allocation.
        at = np.minimum(np.searchsorted(first, begin, side="left"), len(first) - 1)
        is_before = (begin < first[at]) & (begin >= 0)
        codes[is_before & (end > first[at]) & (end <= last[at])] = _CODE["activation"]
    found = blocks.names("category")
    # The output of a model may be the input of another one, such as a loss.
    known = (found.codes >= 0) & ~(found.equals("input") & in_forward)
    codes[known] = [_CODE.get(name or "", MISSING) for name in found.take(known).to_list()]
    return CategoryColumn(codes, BLOCK_CATEGORIES)


def _backward_passes(index: ProfileIndex) -> tuple[IntArray, IntArray]:
    """Return begin and end of the backward passes, ascending."""
    ops = index.profile.tables["ops"]
    rows = np.flatnonzero(is_of_type(index, "autograd"))
    rows = rows[np.argsort(ops["start_ns"][rows])]
    return ops["start_ns"][rows], ops["end_ns"][rows]


def _followed_by_backward(index: ProfileIndex, time: IntArray) -> BoolArray:
    first, _ = _backward_passes(index)
    followed: BoolArray = time < first.max(initial=np.iinfo(np.int64).min)
    return followed


def _outermost_end(index: ProfileIndex, op: IntArray, mask: BoolArray) -> IntArray:
    """Return the end of the outermost op of the phase of each op in `mask`; else the last time."""
    ops, phases = index.profile.tables["ops"], index.cached(op_phases)
    parent = np.append(index.tree.parent, MISSING)
    phase_of = np.append(phases, np.uint8(0xFF))
    row = op.copy()
    todo = np.flatnonzero(mask)
    while len(todo):
        above = parent[row[todo]]
        same = (above != MISSING) & (phase_of[above] == phase_of[row[todo]])
        todo = todo[same]
        row[todo] = above[same]
    return np.where(mask, np.append(ops["end_ns"], 0)[row], np.iinfo(np.int64).max)
