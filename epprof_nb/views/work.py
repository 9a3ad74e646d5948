"""The device work under each op: how much, and of which kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.lookup import add_up
from epprof_nb.analysis.optree import OpTree

if TYPE_CHECKING:
    from epprof_nb.profiles import Profile

Ints = npt.NDArray[np.int64]

KINDS = ("none", "kernel", "memcpy", "memset", "synchronization", "graph_launch")
"""Kinds of activity; their position is the code that the viewer knows them by."""

KERNEL, MEMCPY, MEMSET, FIRST_WAIT = 1, 2, 3, 4
BUSY_KINDS = (KERNEL, MEMCPY, MEMSET)
"""Codes of the kinds that keep a device busy."""


@dataclass(frozen=True, slots=True)
class Work:
    """Ops as rows of a tree with what was launched under each; row -1 is none.

    Attributes
    ----------
    tree
        The tree of the ops.
    depth
        int64, number of ops above each op.
    activity_op, call_op
        int64, one value an activity or API call: the row of its ``op_id``.
    kinds
        uint8, one value an activity: its code in `KINDS`, 0 for a kind not known.
    device_ns, launches
        int64, time and number of the kernels, copies and sets of the op and all below it.
    main_kind
        uint8, code of the kind that takes most of ``device_ns``; 0 for none.
    """

    tree: OpTree
    depth: Ints
    activity_op: Ints
    call_op: Ints
    kinds: npt.NDArray[np.uint8]
    device_ns: Ints
    launches: Ints
    main_kind: npt.NDArray[np.uint8]


def kind_codes(profile: Profile) -> npt.NDArray[np.uint8]:
    """Return the code (see `KINDS`) of each activity's kind; 0 for a kind that is not known."""
    kinds = profile.tables["activities"].names("kind")
    known = {name: code for code, name in enumerate(KINDS)}
    codes = np.array([known.get(name, 0) for name in kinds.categories] + [0], np.uint8)
    return codes[kinds.codes]


def durations(profile: Profile) -> Ints:
    """Return the length of each activity, ns; 0 for one that ends before it starts."""
    activities = profile.tables["activities"]
    lengths: Ints = np.maximum(activities["end_ns"] - activities["start_ns"], 0)
    return lengths


def work_of(profile: Profile) -> Work:
    """Add up the device work of `profile` under its ops."""
    activities = profile.tables["activities"]
    tree = OpTree(profile.tables["ops"])
    count = len(tree)
    kinds, time = kind_codes(profile), durations(profile)
    activity_op = tree.rows(activities["op_id"])
    by_kind = np.zeros((len(BUSY_KINDS), count), np.int64)
    launches = np.zeros(count, np.int64)
    for i, kind in enumerate(BUSY_KINDS):
        rows = np.flatnonzero(kinds == kind)
        own = add_up(activity_op[rows], time[rows], count)[:-1]
        by_kind[i] = tree.subtree_sum(own)
        launches += tree.subtree_sum(add_up(activity_op[rows], np.ones_like(rows), count)[:-1])
    device_ns = by_kind.sum(axis=0)
    main = by_kind.argmax(axis=0) + 1 if count else np.empty(0, np.int64)
    return Work(
        tree, tree.depth, activity_op, tree.rows(profile.tables["api_calls"]["op_id"]), kinds,
        device_ns, launches, np.where(device_ns > 0, main, 0).astype(np.uint8),
    )  # fmt: skip
