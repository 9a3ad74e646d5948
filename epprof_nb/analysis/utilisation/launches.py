"""launches: cost of launching on the host and the device, by place."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.device_activity import queued_launches
from epprof_nb.analysis.base.device_work import KERNEL
from epprof_nb.analysis.base.first_calls import preparation_within
from epprof_nb.analysis.base.places import Places
from epprof_nb.analysis.base.processes import process_by_process
from epprof_nb.analysis.base.result_table import ResultTable
from epprof_nb.analysis.utilisation.idle_causes import (
    LONGEST_LAUNCH_NS,
    launch_latency,
    split_by_cause,
)
from epprof_nb.analysis.utilisation.idle_intervals import BETWEEN, idle_intervals
from epprof_nb.analysis.utilisation.waits import find_waits
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.groups import sum_by_group
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


@process_by_process
def launch_table(index: ProfileIndex) -> ResultTable:
    """Return the columns of `Profile.launches`."""
    places, gaps = index.cached(Places), index.cached(launch_gaps)
    n = places.count + 1
    gap_place = places.of_activities(gaps.idle.next_row)
    sums = _sums(index, places)
    shown = np.flatnonzero(sums["launches"])
    order = shown[np.argsort(-sums["api_ns"][shown], kind="stable")]
    count = np.maximum(sums["launches"], 1)
    columns = {
        **{name: sums[name] for name in _COUNTS},
        "api_ns": sums["api_ns"],
        "mean_api_ns": sums["api_ns"] // count,
        "launch_delay_ns": sums["delay_ns"] // count,
        "mean_queued": sums["queued"] / count,
        "launch_idle_ns": sum_by_group(gap_place, gaps.length, n)[:-1],
        "graph_saving_ns": sum_by_group(gap_place, gaps.saving, n)[:-1],
    }
    return ResultTable(
        {**places.columns(order), **{name: values[order] for name, values in columns.items()}}
    )


_COUNTS = ("launches", "graph_launches", "kernels", "short_kernels")


def _sums(index: ProfileIndex, places: Places) -> dict[str, IntArray]:
    """Return sums over the launches of each place; the last element is for no op."""
    calls, made = index.profile.tables["api_calls"], index.cached(launched_by_call)
    names = (*_COUNTS, "api_ns", "delay_ns", "queued")
    sums = {name: np.zeros(places.count + 1, np.int64) for name in names}
    for chunk in chunks(len(calls)):
        rows = np.flatnonzero(made.first_start[chunk] != _NEVER) + chunk.start
        op = made.op[rows]
        place = places.of_calls(rows, np.where(op == MISSING, index.call_op[rows], op))
        start = calls["start_ns"][rows]
        api = np.maximum(calls["end_ns"][rows] - start, 0)
        kernels = made.kernels[rows]
        values = {
            "launches": np.ones(len(rows), np.int64),
            "graph_launches": made.is_graph[rows].astype(np.int64),
            "kernels": kernels,
            "short_kernels": np.where(made.kernel_ns[rows] < api, kernels, 0),
            "api_ns": api,
            "delay_ns": np.maximum(made.first_start[rows] - start, 0),
            "queued": _queued_at(index, start),
        }
        for name in names:
            np.add.at(sums[name], place, values[name])
    return sums


_NEVER = np.iinfo(np.int64).max


class Launched(NamedTuple):
    """Work that each API call launched: columns with one value per call.

    ``first_start`` is the start of its first activity in ns, the largest int64 if it launched
    nothing; ``kernels`` counts its kernels, ``kernel_ns`` is their time, ``is_graph`` whether it
    launched a CUDA graph, and ``op`` the row of the op of its activities.
    """

    first_start: IntArray
    kernels: IntArray
    kernel_ns: IntArray
    is_graph: BoolArray
    op: IntArray


def launched_by_call(index: ProfileIndex) -> Launched:
    """Return what each API call launched."""
    activities, n = index.profile.tables["activities"], len(index.profile.tables["api_calls"])
    # The last element is for activities without a recorded call.
    first, op = np.full(n + 1, _NEVER), np.full(n + 1, MISSING, np.int64)
    kernels, kernel_ns = np.zeros((2, n + 1), np.int64)
    is_graph = np.zeros(n + 1, np.bool_)
    is_launch = activities.names("kind").equals("graph_launch")
    for chunk in chunks(len(activities)):
        rows = np.flatnonzero(index.is_device_work[chunk]) + chunk.start
        call = index.calls.rows(activities["correlation_id"][rows])
        start, end = activities["start_ns"][rows], activities["end_ns"][rows]
        np.minimum.at(first, call, start)
        op[call] = index.activity_op[rows]
        is_kernel = index.kinds[rows] == KERNEL
        np.add.at(kernels, call, is_kernel)
        np.add.at(kernel_ns, call, np.where(is_kernel, np.maximum(end - start, 0), 0))
        is_graph[call[(activities["graph_id"][rows] != MISSING) | is_launch[rows]]] = True
    return Launched(first[:-1], kernels[:-1], kernel_ns[:-1], is_graph[:-1], op[:-1])


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
    between = idle.take(idle.position == BETWEEN)
    call = index.calls.rows(activities["correlation_id"][between.next_row])
    in_graph = activities["graph_id"][between.next_row] != MISSING
    is_kernel = index.kinds[between.next_row] == KERNEL
    returned = np.append(index.profile.tables["api_calls"]["end_ns"], 0)[call]
    # The launch arrived before the device became idle: the device, not the host, made the gap.
    queued = (call != MISSING) & (returned + launch_latency(index) <= between.start)
    node_gap = _typical(between.take(in_graph & queued)) or _typical(between.take(queued))
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

    None if the code is not launch-bound.
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


def _typical(idle: IdleIntervals) -> int:
    length = idle.end - idle.start
    return int(np.median(length)) if len(length) else 0


def _queued_at(index: ProfileIndex, times: IntArray) -> IntArray:
    """Return how many launches were queued on all devices just before each time."""
    queued = np.zeros(len(times), np.int64)
    for device in index.device_ids:
        counter = index.cached(queued_launches, device)
        if len(counter.t):
            at = np.searchsorted(counter.t, times, "left") - 1
            queued += np.where(at >= 0, counter.level[at], 0)
    return queued
