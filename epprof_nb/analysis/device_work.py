"""The device work under each op: how much, and of which kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.index import Shared
from epprof_nb.arrays.chunks import chunks
from epprof_nb.util.cached import once

if TYPE_CHECKING:
    from typing import Any

    from epprof_nb.analysis.op_tree import OpTree
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData


KINDS = ("none", "kernel", "memcpy", "memset", "synchronization", "graph_launch")
"""Kinds of activity; their position is the code that the viewer knows them by."""

KERNEL, MEMCPY, MEMSET, FIRST_WAIT = 1, 2, 3, 4
BUSY_KINDS = (KERNEL, MEMCPY, MEMSET)
"""Codes of the kinds that keep a device busy."""


class Work:
    """Ops as rows of a tree with what was launched under each; row -1 is none.

    Each attribute is computed when it is first asked for.

    Parameters
    ----------
    profile
        The profile.
    shared
        What the profile's tables share; made anew where left out.
    """

    def __init__(self, profile: ProfileData, shared: Shared | None = None) -> None:
        self._profile = profile
        self._shared = shared or Shared(profile)

    @property
    def tree(self) -> OpTree:
        """The tree of the ops."""
        return self._shared.tree

    @once
    def kinds(self) -> npt.NDArray[np.uint8]:
        """Code in `KINDS` of each activity's kind, uint8; 0 for a kind not known."""
        return kind_codes(self._profile)

    @once
    def activity_op(self) -> npt.NDArray[np.integer[Any]]:
        """Row of the ``op_id`` of each activity, int32."""
        return self._owners("activities")

    @once
    def call_op(self) -> npt.NDArray[np.integer[Any]]:
        """Row of the ``op_id`` of each API call, int32."""
        return self._owners("api_calls")

    @property
    def device_ns(self) -> IntArray:
        """Time of the kernels, copies and sets of each op and all below it, int64."""
        total: IntArray = self._time_of(slice(None)).sum(axis=0)
        return total

    def main_kind(self, ops: IntArray | slice) -> npt.NDArray[np.uint8]:
        """Code of the kind that takes most of the ``device_ns`` of each of `ops`; 0 for none."""
        time = self._time_of(ops)
        return np.where(time.any(axis=0), time.argmax(axis=0) + 1, 0).astype(np.uint8)

    def _time_of(self, ops: IntArray | slice) -> IntArray:
        """Time by kind, as in `BUSY_KINDS`, of ops and all below them."""
        time: IntArray = self.time_until[:, self.tree.leave[ops]]
        time -= self.time_until[:, self.tree.enter[ops]]
        return time

    @once
    def launches(self) -> IntArray:
        """Number of the kernels, copies and sets of each op and all below it, int64."""
        counts = np.zeros(len(self.tree) + 1, np.int64)
        busy = np.isin(np.arange(len(KINDS)), BUSY_KINDS)
        for piece in chunks(len(self.kinds)):
            rows = self.activity_op[piece][busy[self.kinds[piece]]]
            np.add.at(counts, rows, 1)
        return self.tree.subtree_sum(counts[:-1])

    def _owners(self, table: str) -> npt.NDArray[np.int32]:
        ids = self._profile.tables[table]["op_id"]
        rows = np.empty(len(ids), np.int32)
        for piece in chunks(len(ids)):
            rows[piece] = self.tree.rows(ids[piece])
        return rows

    @once
    def time_until(self) -> IntArray:
        """Time by kind, as in `BUSY_KINDS`, of all ops before each number in preorder, int64."""
        activities = self._profile.tables["activities"]
        start, end, ids = (activities[name] for name in ("start_ns", "end_ns", "op_id"))
        count, slots = len(self.tree), len(BUSY_KINDS) + 1
        # The last slot of an op is for what does not keep a device busy; those of row -1, no op,
        # are behind those of all ops.
        time = np.zeros((count + 1) * slots, np.int64)
        for piece in chunks(len(activities)):
            key = self.tree.rows(ids[piece])
            key *= slots
            # The busy kinds are those from 1: as unsigned numbers, 0 less 1 is the largest.
            key += np.minimum(self.kinds[piece] - np.uint8(BUSY_KINDS[0]), np.uint8(slots - 1))
            length = end[piece] - start[piece]
            np.add.at(time, key, np.maximum(length, 0, out=length))
        until = np.zeros((len(BUSY_KINDS), count + 1), np.int64)
        for place in range(len(BUSY_KINDS)):
            until[place, 1:][self.tree.enter] = time[place:-slots:slots]
        return np.cumsum(until, axis=1, out=until)


def kind_codes(profile: ProfileData) -> npt.NDArray[np.uint8]:
    """Return the code (see `KINDS`) of each activity's kind; 0 for a kind that is not known."""
    kinds = profile.tables["activities"].names("kind")
    known = {name: code for code, name in enumerate(KINDS)}
    of_code = np.array([known.get(name, 0) for name in kinds.categories] + [0], np.uint8)
    codes = np.empty(len(kinds), np.uint8)
    for piece in chunks(len(kinds)):
        # Of a missing name, -1, the last one counts.
        np.take(of_code, kinds.codes[piece], out=codes[piece], mode="wrap")
    return codes


def busy_time(profile: ProfileData, kinds: npt.NDArray[np.uint8]) -> int:
    """Return the time of all kernels, copies and sets, ns; `kinds` are those of `kind_codes`."""
    activities = profile.tables["activities"]
    total = 0
    for piece in chunks(len(activities)):
        length = activities["end_ns"][piece] - activities["start_ns"][piece]
        of_busy = (kinds[piece] >= BUSY_KINDS[0]) & (kinds[piece] <= BUSY_KINDS[-1])
        total += int(np.maximum(length, 0, out=length).sum(where=of_busy))
    return total
