"""Launch-bound code: idle gaps that end with late launches, and whether these are the rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.device_work import KERNEL
from epprof_nb.analysis.base.first_calls import preparation_within
from epprof_nb.analysis.utilisation.idle_causes import (
    LONGEST_LAUNCH_NS,
    launch_latency,
    split_by_cause,
)
from epprof_nb.analysis.utilisation.idle_intervals import BETWEEN, idle_intervals
from epprof_nb.analysis.utilisation.waits import find_waits
from epprof_nb.arrays.ids import mask_as_slice, values_at
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.utilisation.idle_intervals import IdleIntervals
    from epprof_nb.arrays.types import BoolArray, IntArray

LAUNCH_HOST_NS = 100_000
"""Longest time before an API call that counts as launching; longer ones are work of the host."""
_LATE_SHARE = 0.5
"""Minimum share of the kernels that were launched alone, and late, in code that is launch-bound.

It is 0.81 to 1 in recorded programs that are launch-bound, and at most 0.42 in those that lose 3 %
to launches for another reason.
"""


class LaunchGaps(NamedTuple):
    """Idle gaps in which a device waited for a kernel that was launched on its own.

    ``idle`` has the intervals, ``length`` the time until the next work arrived (ns), ``in_call``
    the part of it from the API call on, and ``saving`` the part that a CUDA graph would save. More
    time before the call than `LAUNCH_HOST_NS` is not part of ``length``: it is work of the host.
    """

    idle: IdleIntervals
    length: IntArray
    in_call: IntArray
    saving: IntArray
    node_gap_ns: int


def launch_gaps(index: ProfileIndex) -> LaunchGaps:
    """Return the idle gaps between work that end with a kernel launched on its own."""
    activities = index.profile.tables["activities"]
    idle = idle_intervals(index)
    between = idle.take(mask_as_slice(idle.position == BETWEEN))
    call = index.calls.rows(activities["correlation_id"][between.next_row])
    in_graph = activities["graph_id"][between.next_row] != MISSING
    is_kernel = index.kinds[between.next_row] == KERNEL
    returned = values_at(index.profile.tables["api_calls"]["end_ns"], call)
    # The launch arrived before the device became idle: the device, not the host, made the gap.
    queued = (call != MISSING) & (returned + launch_latency(index) <= between.start)
    gap = between.end - between.start
    node_gap = _typical(gap[in_graph & queued]) or _typical(gap[queued])
    found = is_kernel & ~in_graph & ~queued & (call != MISSING)
    found &= ~_made_by_wait(index, between)
    idle = between.take(found)
    parts = split_by_cause(index, idle)
    host, in_call = parts["not_launched"], parts["launching"]
    host = np.where(host <= LAUNCH_HOST_NS, host, 0)
    in_call = np.where(in_call <= LONGEST_LAUNCH_NS, in_call, 0)
    called = idle.end - parts["held"] - parts["launching"]
    in_call = in_call - preparation_within(index, called, called + in_call)
    length = host + in_call
    saving = np.maximum(length - node_gap, 0)
    return LaunchGaps(idle, length, in_call, saving, node_gap)


def counted_as_launching(index: ProfileIndex) -> IntArray:
    """Return the activities whose host time before the call counts as launching, ascending rows.

    Empty if the code is not launch-bound.
    """
    gaps = index.cached(launch_gaps)
    if not is_launch_bound(index):
        return np.empty(0, np.int64)
    return np.unique(gaps.idle.next_row[gaps.length > gaps.in_call])


def is_launch_bound(index: ProfileIndex) -> bool:
    """Return whether launches kept a device waiting for most of the kernels launched alone."""
    gaps, graphs = index.cached(launch_gaps), index.profile.tables["activities"]["graph_id"]
    alone = int(((index.kinds == KERNEL) & (graphs == MISSING)).sum())
    return bool(gaps.saving.any()) and len(gaps.length) >= _LATE_SHARE * alone


def _made_by_wait(index: ProfileIndex, idle: IdleIntervals) -> BoolArray:
    """Return which gaps are long because the host waited for the device before the launch."""
    waits = index.cached(find_waits)
    late = waits.next_row[2 * waits.avoidable > waits.idle_after]
    made: BoolArray = np.isin(idle.next_row, late)
    return made


def _typical(length: IntArray) -> int:
    return int(np.median(length)) if len(length) else 0
