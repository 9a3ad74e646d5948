"""The columns that every breakdown by ops shares: device work, host time, executions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.dataframe import optional
from epprof_nb.analysis.op_totals import share
from epprof_nb.arrays.percentiles import GroupStatistics
from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    import pandas as pd

    from epprof_nb.analysis.op_totals import Totals
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData


class Columns:
    """Columns of chosen groups, followed by the rest where work belongs to no group.

    Parameters
    ----------
    profile
        The profile.
    groups
        int64 array, one an op: its group; `epprof_nb.data.schema.MISSING` for none.
    sums
        What `epprof_nb.analysis.op_totals.totals` gives for these groups.
    order
        int64 array: the groups to show, in order.
    """

    def __init__(
        self, profile: ProfileData, groups: IntArray, sums: Totals, order: IntArray
    ) -> None:
        self._profile = profile
        self._groups = groups
        self._sums = sums
        self._order = order

    def of(self, values: IntArray, rest: int = 0) -> IntArray:
        """Return `values` (int64, one a group) in order, then `rest`."""
        more = np.full(int(self._sums.has_rest), rest, np.int64)
        return np.append(values[self._order], more)

    def work(self, name: str) -> IntArray:
        """Return a measure of `Totals.work`."""
        return self.of(self._sums.work[name], self._sums.rest[name])

    def device(self) -> dict[str, npt.NDArray[np.generic] | pd.api.extensions.ExtensionArray]:
        """``device_ns``, ``self_device_ns``, ``share``, what was launched, bytes, bandwidth."""
        sums = self._sums
        return {
            "device_ns": self.work("device_ns"),
            "self_device_ns": self.of(sums.own_device_ns, sums.rest["device_ns"]),
            "share": share(self.work("device_ns"), sums.device_ns),
            **{name: self.work(name) for name in ("kernels", "memcpys", "memsets", "bytes")},
            "bandwidth": bandwidth(self.work("copied_bytes"), self.work("copy_ns")),
            "launch_delay_ns": mean_delay(self.work("delay_ns"), self.work("delays")),
        }

    def device_an_execution(self) -> dict[str, IntArray]:
        """``mean_device_ns`` and ``p95_device_ns``: of an op and all below it, an execution."""
        statistics = self._statistics(self._sums.device_ns_of_op)
        return {
            "mean_device_ns": self.of(statistics.mean),
            "p95_device_ns": self.of(statistics.percentile(95)),
        }

    def host_an_execution(self, *percents: int) -> dict[str, IntArray]:
        """``mean_ns`` and, for each of `percents`, ``p.._ns``: host time of an execution."""
        statistics = self._statistics(self._profile.tables["ops"]["duration_ns"])
        columns = {"mean_ns": self.of(statistics.mean)}
        for percent in percents:
            columns[f"p{percent}_ns"] = self.of(statistics.percentile(percent))
        return columns

    def _statistics(self, values: IntArray) -> GroupStatistics:
        ops = self._profile.tables["ops"]
        # An op of an earlier profile is here for the graph that it captured: it did not run.
        rows = np.flatnonzero((self._groups >= 0) & ~ops.names("status").equals("earlier"))
        times = np.maximum(ops["count"][rows], 1)
        # A row that stands for many executions has their sum: each counts as their mean.
        each = np.rint(values[rows] / times).astype(np.int64) if (times > 1).any() else values[rows]
        return GroupStatistics(self._groups[rows], each, len(self._sums.count), times)


def bandwidth(size: IntArray, duration: IntArray) -> npt.NDArray[np.float64]:
    """Return bytes a second from bytes and nanoseconds; NaN where no time was spent."""
    some = (size > 0) & (duration > 0)
    return np.where(some, size * 1e9 / np.maximum(duration, 1), np.nan)


def mean_delay(total: IntArray, count: IntArray) -> pd.api.extensions.ExtensionArray:
    """Return the mean of delays (ns), rounded, dtype Int64; ``<NA>`` where there is none."""
    mean = np.rint(total / np.maximum(count, 1)).astype(np.int64)
    return optional(np.where(count > 0, mean, MISSING))
