"""Time that profiling added to a profile: measured by runs that were not profiled, or estimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.added_time.estimated_time import MAX_PART, estimated_time
from epprof_nb.analysis.base.op_totals import self_host_ns

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray


LEAST_STATED_SHARE = 0.03
"""Share of the unprofiled wall time from which the headline states it."""
_LARGE_SHARE, _CERTAIN_PART = 1.0, 0.9
"""Estimated share from which only the least one is stated, and the part of the estimate that is
certain enough: as a share of what little the code itself took, the error would be large."""


@dataclass(frozen=True, slots=True)
class AddedTime:
    """Time that profiling added to the wall time.

    Attributes
    ----------
    total_ns
        Its sum.
    wall_ns
        Wall time of the profile.
    is_measured
        Whether unprofiled runs have shown it. Otherwise it is estimated.
    """

    total_ns: int
    wall_ns: int
    is_measured: bool

    def share(self) -> float | None:
        """Return it as a share of the unprofiled wall time; None if it is all of the wall time."""
        unprofiled = self.wall_ns - self.total_ns
        return self.total_ns / unprofiled if unprofiled > 0 else None

    @property
    def is_least(self) -> bool:
        """Whether it is an estimate that is too large to state more than the least share."""
        share = self.share()
        return not self.is_measured and (share is None or share > _LARGE_SHARE)

    def stated_share(self) -> float | None:
        """Return the share, or if `is_least`, the least one; None if it is all of the wall time."""
        if not self.is_least:
            return self.share()
        least_ns = round(_CERTAIN_PART * self.total_ns)
        return AddedTime(least_ns, self.wall_ns, self.is_measured).share()

    def between(self, start: IntArray, end: IntArray) -> IntArray:
        """Return what was added in intervals (int64 arrays of one length, ns): their share of it.

        Where in the code it was added is not known.
        """
        added: IntArray = np.rint(self.total_ns * ((end - start) / max(self.wall_ns, 1))).astype(
            np.int64
        )
        return added


def added_time(index: ProfileIndex) -> AddedTime | None:
    """Return what profiling added to a profile; None if it is not known."""
    stated, wall_ns = index.profile.info.get("added_ns") or {}, index.profile.wall_ns
    if "total" in stated:
        total_ns = min(stated["total"], wall_ns)  # a file may state anything
        return AddedTime(total_ns, wall_ns, not stated.get("estimated", False))
    found = None if stated else index.cached(estimated_time)
    return None if found is None else AddedTime(found.total_ns, wall_ns, is_measured=False)


def added_to_ops(index: ProfileIndex) -> IntArray:
    """Return what profiling added to the host time of each op without those below it, ns, int64.

    It is estimated by op; if runs without the profiler have shown it, each op has its share of it.
    0 if it is not known.
    """
    ops, added = index.profile.tables["ops"], index.cached(added_time)
    own = np.maximum(self_host_ns(ops, index.tree.parent), 0)
    found = None if added is None or added.is_measured else index.cached(estimated_time)
    if added is None:
        costs = np.zeros(len(ops))
    elif found is None:
        costs = own * (added.total_ns / max(added.wall_ns, 1))
    else:
        costs = np.minimum(found.of_op, MAX_PART * own)
    return np.rint(costs).astype(np.int64)


def reason_without_added_time(info: dict[str, Any]) -> str:
    """Return why what profiling added could not be measured, or is not known; else empty."""
    return str((info.get("added_ns") or {}).get("reason", ""))
