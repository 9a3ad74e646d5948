"""launches: cost of launching on the host and the device, by place."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.device_activity import queued_launches
from epprof_nb.analysis.base.device_work import KERNEL
from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.base.processes import process_by_process
from epprof_nb.analysis.base.result_table import ResultTable
from epprof_nb.analysis.utilisation.late_launches import launch_gaps
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray


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


def _queued_at(index: ProfileIndex, times: IntArray) -> IntArray:
    """Return how many launches were queued on all devices just before each time."""
    queued = np.zeros(len(times), np.int64)
    for device in index.device_ids:
        counter = index.cached(queued_launches, device)
        if len(counter.t):
            at = np.searchsorted(counter.t, times, "left") - 1
            queued += np.where(at >= 0, counter.level[at], 0)
    return queued
