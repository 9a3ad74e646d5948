"""Links from the nodes of PyTorch's backward pass to the operators that created them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray


def is_operator(index: ProfileIndex) -> BoolArray:
    """Return a mask of the operators and nodes of PyTorch."""
    return index.profile.tables["ops"].names("category").equals("operator")


def is_node(index: ProfileIndex) -> BoolArray:
    """Return a mask of the nodes of backward passes."""
    ops = index.profile.tables["ops"]
    return np.logical_and(is_operator(index), ops.names("op_type").equals("autograd_node"))


def forward_operators(index: ProfileIndex) -> IntArray:
    """Return the row of the operator that created each node of a backward pass.

    An operator has the number of the next node of its thread, so the last operator with a number
    created its node. A number that several threads used is ambiguous.

    Returns
    -------
    rows
        int64 array, one value per op; `MISSING` for ops that are not nodes and for nodes whose
        operator was not recorded or is ambiguous.
    """
    ops = index.profile.tables["ops"]
    numbers, threads = ops["sequence_number"], ops["thread_id"]
    found = np.full(len(ops), MISSING, np.int64)
    numbered = is_operator(index) & (numbers != MISSING)
    nodes = np.flatnonzero(numbered & is_node(index))
    made_by = np.flatnonzero(numbered & ~is_node(index))
    if not len(nodes) or not len(made_by):
        return found
    made_by = made_by[np.lexsort((ops["start_ns"][made_by], threads[made_by], numbers[made_by]))]
    first = np.searchsorted(numbers[made_by], numbers[nodes], side="left")
    last = np.searchsorted(numbers[made_by], numbers[nodes], side="right") - 1
    nodes, first, last = (values[last >= first] for values in (nodes, first, last))
    is_one_thread = threads[made_by[first]] == threads[made_by[last]]
    found[nodes[is_one_thread]] = made_by[last[is_one_thread]]
    return found


def lacks_links(index: ProfileIndex) -> bool:
    """Whether backward passes have nodes, but none of them is linked, for `ProfileIndex.cached`.

    Traces of PyTorch without sequence numbers do not say which operator a node belongs to.
    """
    return bool(is_node(index).any() and (index.cached(forward_operators) == MISSING).all())
