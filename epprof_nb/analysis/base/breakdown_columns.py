"""Columns that all breakdowns by op share: counts, device time, host time, percentiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.op_status import has_host_time, ran
from epprof_nb.analysis.base.op_totals import share
from epprof_nb.analysis.base.result_table import OptionalColumn, optional
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.ids import mask_as_slice
from epprof_nb.arrays.intervals import EARLIEST, LATEST
from epprof_nb.arrays.percentiles import GroupStatistics
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.cached import cached_property

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.executions import Executions
    from epprof_nb.analysis.base.op_totals import Totals
    from epprof_nb.analysis.base.result_table import Column
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.profile_data import ProfileData

HIGH_PERCENTILE = 95
"""Percentile of the columns ``p95_device_ns`` and ``p95_host_ns``, named after it."""


class MeasureColumns:
    """Columns of selected groups, followed by the unattributed device work if there is any.

    Parameters
    ----------
    profile
        The profile.
    groups
        int64 array: the group of each op; `MISSING` for none.
    totals
        Result of `epprof_nb.analysis.base.op_totals.totals` for these groups.
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
        """Return `values` (int64, one per group) in order, then the value of the last row."""
        last = np.full(int(self._totals.has_unattributed), unattributed, np.int64)
        return np.append(values[self._order], last)

    def count(self, executions: Executions | None = None) -> IntArray:
        """Return the number of executions; of the ops that ran if `executions` is None."""
        counts = self._totals.count
        if executions is not None:
            groups = self._groups[executions.rows]
            counts = sum_by_group(groups, executions.counts, len(counts))[:-1]
        return self.column(counts)

    def device(self) -> dict[str, Column]:
        """Return the columns ``device_ns`` to ``launch_delay_ns``, including all ops below."""
        return self._device(self._totals.measures)

    def self_device(self) -> dict[str, Column]:
        """Return the columns of `device` for the ops alone, with the prefix ``self_``."""
        columns = self._device(self._totals.own_measures)
        return {f"self_{name}": values for name, values in columns.items()}

    def device_and_self(self) -> dict[str, Column]:
        """Return the columns of `device`, and ``self_device_ns`` as the second one."""
        columns = self.device()
        return {
            "device_ns": columns.pop("device_ns"),
            "self_device_ns": self.self_device()["self_device_ns"],
            **columns,
        }

    def _device(self, measures: dict[str, IntArray]) -> dict[str, Column]:
        rest = self._totals.unattributed
        sums = {name: self.column(values, rest[name]) for name, values in measures.items()}
        return {
            "device_ns": sums["device_ns"],
            "share": share(sums["device_ns"], self._totals.device_ns),
            **{name: sums[name] for name in ("kernels", "memcpys", "memsets", "bytes")},
            "bandwidth": bandwidth(sums["copied_bytes"], sums["copy_ns"]),
            "launch_delay_ns": mean_delay(sums["delay_ns"], sums["delays"]),
        }

    def device_per_execution(
        self, executions: Executions | None = None
    ) -> dict[str, OptionalColumn]:
        """Return ``mean_device_ns`` and ``p95_device_ns`` of an op and all ops below it.

        They are missing in a row without executions.

        Parameters
        ----------
        executions
            The executions with their device time; the ops that ran if None.
        """
        if executions is None:
            ops = self._profile.tables["ops"]
            counted = (self._groups >= 0) & ran(ops)
            statistics = self._statistics(self._totals.device_ns_of_op, counted)
        else:
            statistics = self._of_rows(*executions)
        known = self.column((statistics.count > 0).astype(np.int64)) == 1
        return {
            name: OptionalColumn(self.column(values), ~known)
            for name, values in (
                ("mean_device_ns", statistics.mean),
                (f"p{HIGH_PERCENTILE}_device_ns", statistics.percentile(HIGH_PERCENTILE)),
            )
        }

    def host(self, values: IntArray) -> OptionalColumn:
        """Return host times (int64, one per group); missing where none was measured."""
        known = self.column(self._is_timed_group) == 1
        return OptionalColumn(np.where(known, self.column(values), 0), ~known)

    @cached_property
    def _is_timed(self) -> BoolArray:
        """Mask of the ops that have a group and a recorded host time."""
        return (self._groups >= 0) & has_host_time(self._profile.tables["ops"])

    @cached_property
    def _is_timed_group(self) -> IntArray:
        """1 for each group with an op of `_is_timed`, else 0."""
        is_known = np.zeros(len(self._totals.count), np.int64)
        is_known[self._groups[mask_as_slice(self._is_timed)]] = 1
        return is_known

    def host_per_execution(
        self, *percents: int, weights: IntArray | None = None
    ) -> dict[str, OptionalColumn]:
        """Return ``mean_host_ns`` and one ``p.._host_ns`` for each of `percents`.

        `weights` (int64, one per op, at least 1) is how often an execution counts; once if None.
        """
        ops = self._profile.tables["ops"]
        statistics = self._statistics(ops["duration_ns"], self._is_timed, weights)
        columns = {"mean_host_ns": self.host(statistics.mean)}
        for percent in percents:
            columns[f"p{percent}_host_ns"] = self.host(statistics.percentile(percent))
        return columns

    def _statistics(
        self, values: IntArray, counted: BoolArray, weights: IntArray | None = None
    ) -> GroupStatistics:
        ops, rows = self._profile.tables["ops"], mask_as_slice(counted)
        of_rows = None if weights is None else weights[rows]
        return self._of_rows(rows, values[rows], ops["count"][rows], of_rows)

    def _of_rows(
        self,
        rows: IntArray | BoolArray | slice,
        values: IntArray,
        counts: IntArray,
        weights: IntArray | None = None,
    ) -> GroupStatistics:
        several = np.flatnonzero(counts > 1)
        if len(several):
            # A row of several executions holds their sum, so each execution counts with the mean.
            values = values.copy()
            values[several] = np.rint(values[several] / counts[several])
            counts = np.maximum(counts, 1)
            weights = counts if weights is None else counts * weights
        return GroupStatistics(self._groups[rows], values, len(self._totals.count), weights)


def bandwidth(size: IntArray, duration: IntArray) -> npt.NDArray[np.float64]:
    """Return bytes per second from bytes and nanoseconds; NaN without bytes or time."""
    is_known = (size > 0) & (duration > 0)
    return np.where(is_known, size * 1e9 / np.maximum(duration, 1), np.nan)


def mean_delay(total: IntArray, count: IntArray) -> OptionalColumn:
    """Return rounded means of delays (ns), dtype Int64; ``<NA>`` if there is no delay."""
    # Times of an overflown clock may round to 2**63.
    mean = np.clip(np.rint(total / np.maximum(count, 1)), EARLIEST, LATEST).astype(np.int64)
    return optional(np.where(count > 0, mean, MISSING))
