"""MeasureColumns: the columns that all breakdowns by op share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.dataframe import optional
from epprof_nb.analysis.op_status import has_host_time, ran
from epprof_nb.analysis.op_totals import share
from epprof_nb.arrays.percentiles import GroupStatistics
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from epprof_nb.analysis.op_totals import Totals
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.profile_data import ProfileData


class MeasureColumns:
    """Columns of selected groups, followed by the unattributed device work if there is any.

    Parameters
    ----------
    profile
        The profile.
    groups
        int64 array: the group of each op; `MISSING` for none.
    totals
        Result of `epprof_nb.analysis.op_totals.totals` for these groups.
    order
        int64 array: the groups to show, in order.
    """

    def __init__(
        self, profile: ProfileData, groups: IntArray, totals: Totals, order: IntArray
    ) -> None:
        self._profile = profile
        self._groups = groups
        self._totals = totals
        self._order = order

    def column(self, values: IntArray, unattributed: int = 0) -> IntArray:
        """Return `values` (int64, one per group) in order, then that of the last row."""
        last = np.full(int(self._totals.has_unattributed), unattributed, np.int64)
        return np.append(values[self._order], last)

    def measure(self, name: str) -> IntArray:
        """Return a measure of `Totals.measures`."""
        return self.column(self._totals.measures[name], self._totals.unattributed[name])

    def device(self) -> dict[str, npt.NDArray[np.generic] | pd.api.extensions.ExtensionArray]:
        """Return ``device_ns`` to ``launch_delay_ns``: device time, numbers, bytes, bandwidth."""
        totals = self._totals
        return {
            "device_ns": self.measure("device_ns"),
            "self_device_ns": self.column(totals.own_device_ns, totals.unattributed["device_ns"]),
            "share": share(self.measure("device_ns"), totals.device_ns),
            **{name: self.measure(name) for name in ("kernels", "memcpys", "memsets", "bytes")},
            "bandwidth": bandwidth(self.measure("copied_bytes"), self.measure("copy_ns")),
            "launch_delay_ns": mean_delay(self.measure("delay_ns"), self.measure("delays")),
        }

    def device_per_execution(self) -> dict[str, IntArray]:
        """Return ``mean_device_ns`` and ``p95_device_ns`` of an op and all ops below it."""
        ops = self._profile.tables["ops"]
        statistics = self._statistics(self._totals.device_ns_of_op, ran(ops))
        return {
            "mean_device_ns": self.column(statistics.mean),
            "p95_device_ns": self.column(statistics.percentile(95)),
        }

    def host_per_execution(self, *percents: int) -> dict[str, IntArray]:
        """Return ``mean_ns`` and one ``p.._ns`` for each of `percents`: host time."""
        ops = self._profile.tables["ops"]
        statistics = self._statistics(ops["duration_ns"], has_host_time(ops))
        columns = {"mean_ns": self.column(statistics.mean)}
        for percent in percents:
            columns[f"p{percent}_ns"] = self.column(statistics.percentile(percent))
        return columns

    def _statistics(self, values: IntArray, counts_op: BoolArray) -> GroupStatistics:
        ops = self._profile.tables["ops"]
        rows = np.flatnonzero((self._groups >= 0) & counts_op)
        counts = np.maximum(ops["count"][rows], 1)
        # A row that stands for several executions holds their sum: each counts as their mean.
        per_execution = values[rows]
        if (counts > 1).any():
            per_execution = np.rint(per_execution / counts).astype(np.int64)
        return GroupStatistics(self._groups[rows], per_execution, len(self._totals.count), counts)


def bandwidth(size: IntArray, duration: IntArray) -> npt.NDArray[np.float64]:
    """Return bytes per second from bytes and nanoseconds; NaN without bytes or time."""
    is_known = (size > 0) & (duration > 0)
    return np.where(is_known, size * 1e9 / np.maximum(duration, 1), np.nan)


def mean_delay(total: IntArray, count: IntArray) -> pd.api.extensions.ExtensionArray:
    """Return rounded means of delays (ns), dtype Int64; ``<NA>`` if there is no delay."""
    mean = np.rint(total / np.maximum(count, 1)).astype(np.int64)
    return optional(np.where(count > 0, mean, MISSING))
