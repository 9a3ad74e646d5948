"""Kinds of activities: their codes, which of them are device work, and the time they take.

The package distinguishes two sets of activities:

* `DEVICE_KINDS`: kernels, memcpys and memsets, which a device executes.
* *Device work*, see `device_work`: these, and the launches of CUDA graphs whose nodes were not
  recorded one by one. It decides when a device was busy; all ``device_ns`` are sums of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb import _native
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.arrays.small_codes import count_codes
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.schema import ACTIVITY_KINDS, DEVICE_KINDS

if TYPE_CHECKING:
    import re
    from typing import Any

    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.op_tree import OpTree
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table

KERNEL, MEMCPY, MEMSET, FIRST_WAIT = 1, 2, 3, 4
_DEVICE_CODES = (KERNEL, MEMCPY, MEMSET)


def kind_codes(activities: Table) -> npt.NDArray[np.uint8]:
    """Return the code in `ACTIVITY_KINDS` of each activity's kind; 0 for an unknown kind."""
    kinds = activities.names("kind")
    known = {name: code for code, name in enumerate(ACTIVITY_KINDS)}
    # The last element is for missing names, whose code is -1.
    of_category = np.array([known.get(name, 0) for name in kinds.categories] + [0], np.uint8)
    codes = np.empty(len(kinds), np.uint8)
    for chunk in chunks(len(kinds)):
        np.take(of_category, kinds.codes[chunk], out=codes[chunk], mode="wrap")
    return codes


def is_device_kind(kinds: npt.NDArray[np.uint8]) -> BoolArray:
    """Return which kind codes belong to `DEVICE_KINDS`."""
    return (kinds >= _DEVICE_CODES[0]) & (kinds <= _DEVICE_CODES[-1])


def device_work(activities: Table) -> BoolArray:
    """Return which activities are device work.

    These are the kernels, memcpys and memsets. Synchronizations are waits of the host. A graph
    launch counts if its nodes were not recorded one by one; otherwise the nodes count.

    Parameters
    ----------
    activities
        A table of schema `epprof_nb.data.schema.ACTIVITIES`.

    Returns
    -------
    work
        bool array, one value per activity.
    """
    kind = activities.names("kind")
    work = np.zeros(len(activities), np.bool_)
    for name in DEVICE_KINDS:
        work |= kind.equals(name)
    launches = np.flatnonzero(kind.equals("graph_launch"))
    if len(launches):
        # Nodes have the correlation id of the API call that launched their graph.
        nodes = IdIndex(activities["correlation_id"][work])
        has_no_nodes = nodes.rows(activities["correlation_id"][launches]) == MISSING
        work[launches[has_no_nodes]] = True
    return work


def kernels_named(index: ProfileIndex, pattern: re.Pattern[str]) -> IntArray:
    """Return the rows of the activities that are kernels with a match of a pattern in the name."""
    names = index.profile.tables["activities"].names("name")
    # The last element is for missing names, whose code is -1.
    found = [bool(pattern.search(name)) for name in names.categories] + [False]
    rows: IntArray = np.flatnonzero(np.array(found)[names.codes] & (index.kinds == KERNEL))
    return rows


def device_kinds_ns(activities: Table, kinds: npt.NDArray[np.uint8]) -> int:
    """Return the total time of the kernels, memcpys and memsets, ns."""
    total = 0
    for chunk in chunks(len(activities)):
        length = activities["end_ns"][chunk] - activities["start_ns"][chunk]
        np.maximum(length, 0, out=length)
        total += int(length.sum(where=is_device_kind(kinds[chunk])))
    return total


class OpDeviceTime:
    """Time of the kernels, memcpys and memsets of each op and all ops below it.

    The computation takes one pass over the activities. An activity belongs to the op that launched
    it.

    Parameters
    ----------
    activities
        A table of schema `epprof_nb.data.schema.ACTIVITIES`.
    tree
        The tree of the profile's ops.
    activity_op
        Row of the op of each activity; `MISSING` for none.
    kinds
        The result of `kind_codes`.
    """

    __slots__ = ("_begin", "_end", "_kinds", "_until")

    def __init__(
        self,
        activities: Table,
        tree: OpTree,
        activity_op: npt.NDArray[np.signedinteger[Any]],
        kinds: npt.NDArray[np.uint8],
    ) -> None:
        self._begin, self._end = tree.preorder_begin, tree.preorder_end
        present = count_codes(kinds, len(ACTIVITY_KINDS))
        self._kinds = np.array([0, *(code for code in _DEVICE_CODES if present[code])], np.uint8)
        self._until = _time_until(activities, tree, activity_op, kinds, self._kinds[1:])

    def total(self, ops: IntArray | slice = slice(None)) -> IntArray:
        """Return the time of `ops` in all kinds, int64 ns; of all ops by default."""
        time: IntArray = self._by_kind(ops).sum(axis=0)
        return time

    def main_kind(self, ops: IntArray | slice) -> npt.NDArray[np.uint8]:
        """Return the code of the kind with the most time for each of `ops`; 0 if none."""
        time = self._by_kind(ops)
        if not len(time):
            return np.zeros(time.shape[1], np.uint8)
        return self._kinds[np.where(time.any(axis=0), time.argmax(axis=0) + 1, 0)]

    def _by_kind(self, ops: IntArray | slice) -> IntArray:
        """Return the time of ops and all ops below them, one row per kind that occurs."""
        time: IntArray = self._until[:, self._end[ops]]
        time -= self._until[:, self._begin[ops]]
        return time


def _time_until(
    activities: Table,
    tree: OpTree,
    activity_op: npt.NDArray[np.signedinteger[Any]],
    kinds: npt.NDArray[np.uint8],
    device_kinds: npt.NDArray[np.uint8],
) -> IntArray:
    """Return the time of all ops before each number in preorder, one row per device kind."""
    start, end = activities["start_ns"], activities["end_ns"]
    # The last element is for activities without an op.
    time = np.zeros((len(device_kinds), len(tree) + 1), np.int64)
    for chunk in chunks(len(activities)):
        op, length = activity_op[chunk], end[chunk] - start[chunk]
        np.maximum(length, 0, out=length)
        for kind, of_kind in zip(device_kinds, time, strict=True):
            _native.add_by_group(of_kind, op, np.where(kinds[chunk] == kind, length, 0))
    until = np.zeros_like(time)
    until[:, 1:][:, tree.preorder_begin] = time[:, :-1]
    return np.cumsum(until, axis=1, out=until)


def count_launches(
    tree: OpTree, activity_op: npt.NDArray[np.signedinteger[Any]], kinds: npt.NDArray[np.uint8]
) -> IntArray:
    """Count the kernels, memcpys and memsets of each op and all ops below it.

    Parameters
    ----------
    tree
        The tree of the profile's ops.
    activity_op
        Row of the op of each activity; `MISSING` for none.
    kinds
        The result of `kind_codes`.
    """
    counts = sum_by_group(activity_op, is_device_kind(kinds).astype(np.int64), len(tree))
    return tree.subtree_sum(counts[:-1])
