"""What several tables of one profile are made from, each part computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.attribution import Attribution, device_work, launch_delays, op_rows
from epprof_nb.analysis.op_tree import OpTree
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.ids import IdIndex, unique_values
from epprof_nb.arrays.intervals import union
from epprof_nb.util.cached import Kept, once

if TYPE_CHECKING:
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.profile_data import ProfileData


MEASURES = (
    "activities", "device_ns", "bytes", "kernels", "memcpys", "memsets", "copied_bytes", "copy_ns",
    "delay_ns", "delays",
)  # fmt: skip
"""What is added up of activities; see `epprof_nb.analysis.op_totals.Totals`."""


class Shared:
    """Parts of a profile's analysis, found when first asked for and kept as long as this is.

    Parameters
    ----------
    profile
        The profile; it must not change while this is in use.
    """

    def __init__(self, profile: ProfileData) -> None:
        self._profile = profile
        self._sums: Kept[Attribution, dict[str, IntArray]] = Kept(self._add_up)
        self._busy = Kept(self._union)

    @once
    def tree(self) -> OpTree:
        """The tree of the ops."""
        return OpTree(self._profile.tables["ops"])

    @once
    def work(self) -> BoolArray:
        """Which activities are work of the device; bool, one an activity."""
        return device_work(self._profile.tables["activities"])

    @once
    def calls(self) -> IdIndex:
        """The first API call of each correlation id."""
        return IdIndex(self._profile.tables["api_calls"]["correlation_id"])

    @once
    def delays(self) -> tuple[IntArray, BoolArray]:
        """Launch delays, and where they are known; see `launch_delays`."""
        return launch_delays(
            self._profile.tables["activities"], self._profile.tables["api_calls"], self.calls
        )

    def busy(self, device_id: int | None = None) -> tuple[IntArray, IntArray]:
        """Return when a device worked; see `epprof_nb.analysis.idle.busy_intervals`."""
        return self._busy[device_id]

    def _union(self, device_id: int | None) -> tuple[IntArray, IntArray]:
        activities = self._profile.tables["activities"]
        on = activities["device_id"]
        if device_id is None:
            each = [self.busy(device) for device in unique_values(on)]
            if len(each) == 1:
                return each[0]
            starts = [np.empty(0, np.int64), *(begin for begin, _ in each)]
            ends = [np.empty(0, np.int64), *(end for _, end in each)]
            return union(np.concatenate(starts), np.concatenate(ends))
        work = self.work & (on == device_id)
        return union(activities["start_ns"][work], activities["end_ns"][work])

    def op_sums(self, attribution: Attribution) -> dict[str, IntArray]:
        """Add up the activities that count for each op itself.

        Parameters
        ----------
        attribution
            See `epprof_nb.analysis.attribution.op_rows`.

        Returns
        -------
        sums
            Name of a measure (`MEASURES`) to int64 array, shape ``(ops + 1,)``; the last value is
            that of the activities without an op.
        """
        return self._sums[attribution]

    def _add_up(self, attribution: Attribution) -> dict[str, IntArray]:
        activities = self._profile.tables["activities"]
        owners = op_rows(activities, self.tree, attribution)
        kind = activities.names("kind")
        of_kind = {name: kind.equals(name) for name in ("kernel", "memcpy", "memset")}
        delays, known = self.delays
        sums = {name: np.zeros(len(self.tree) + 1, np.int64) for name in MEASURES}
        for piece in chunks(len(activities)):
            owner, time = owners[piece], activities["duration_ns"][piece]
            size = np.maximum(activities["bytes"][piece], 0)
            kernel, memcpy, memset = (which[piece] for which in of_kind.values())
            timed = kernel & known[piece]
            for name, which, values in (
                ("activities", self.work[piece], 1),
                ("device_ns", self.work[piece], time),
                ("bytes", self.work[piece] & (size > 0), size),
                ("kernels", kernel, 1),
                ("memcpys", memcpy, 1),
                ("memsets", memset, 1),
                ("copied_bytes", memcpy, size),
                ("copy_ns", memcpy, time),
                ("delay_ns", timed, delays[piece]),
                ("delays", timed, 1),
            ):
                rows = np.flatnonzero(which)
                of = values[rows] if isinstance(values, np.ndarray) else values
                np.add.at(sums[name], owner[rows], of)
        return sums
