"""by_step: how each step of a training loop spends its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.device_work import KERNEL
from epprof_nb.analysis.base.missing_records import busy_within
from epprof_nb.analysis.base.processes import process_by_process
from epprof_nb.analysis.base.result_table import OptionalColumn, ResultTable
from epprof_nb.analysis.base.unknown_device_times import missing_if_unknown
from epprof_nb.analysis.frameworks.training_phases import (
    BACKWARD,
    DATA,
    FORWARD,
    OPTIMIZER,
    OTHER,
    PHASES,
    is_of_type,
    op_phases,
    phase_host_ns,
    phase_starts,
)
from epprof_nb.analysis.steps.by_repeat import wall_statistics
from epprof_nb.analysis.steps.optimizer_steps import steps
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.intervals import covered_before, union
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.recorded_frameworks import records_framework
from epprof_nb.data.repeats import RepeatNames, repeat_at
from epprof_nb.util.format import percent

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.steps.by_repeat import RepeatStatistics
    from epprof_nb.arrays.types import BoolArray, IntArray

_COMMUNICATION = OTHER + 1
"""Column of communication, after the phases."""


def activity_steps(index: ProfileIndex) -> IntArray:
    """Return the number of the step that launched each activity; `MISSING` for none."""
    found, at = index.cached(steps), index.cached(_activity_rows)
    return np.where(at >= 0, at + found.first, MISSING)


def _activity_rows(index: ProfileIndex) -> IntArray:
    """Return the position in `steps` of the step that launched each activity."""
    tables, found = index.profile.tables, index.cached(steps)
    ids, starts = (tables["activities"][name] for name in ("correlation_id", "start_ns"))
    ops, calls = tables["ops"]["start_ns"], tables["api_calls"]["start_ns"]
    rows = np.empty(len(starts), np.int64)
    for chunk in chunks(len(starts)):
        # Without a recorded call, the launch was during the op; without an op, the start of the
        # activity is the best known time.
        times = starts[chunk].copy()
        for start, of in ((ops, index.activity_op[chunk]), (calls, index.calls.rows(ids[chunk]))):
            known = of >= 0
            times[known] = start[of[known]]
        rows[chunk] = repeat_at(found.starts, found.ends, times)
    return rows


@missing_if_unknown
@process_by_process
def step_table(index: ProfileIndex) -> ResultTable:
    """Return the columns of `Profile.by_step`."""
    starts, ends, first = index.cached(steps)
    n = len(starts)
    step = np.where(index.is_device_work, index.cached(_activity_rows), MISSING)
    of_phase = _device_ns(index, step, n)
    host = index.cached(_host_ns)
    busy, is_unknown = busy_within(index, starts, ends)
    no_device = np.full(n, not index.device_ids, np.bool_)
    idle = OptionalColumn(ends - starts - busy, no_device | is_unknown)
    has_no_phases = np.full(n, not records_framework(index.profile.info, "torch"))

    def of_phases(values: IntArray) -> OptionalColumn:
        return OptionalColumn(values, has_no_phases)

    return ResultTable(
        {
            "step": np.arange(first, first + n),
            "start_ns": starts,
            "wall_ns": ends - starts,
            "data_ns": of_phases(host[DATA]),
            "forward_ns": of_phases(of_phase[:, FORWARD]),
            "backward_ns": of_phases(of_phase[:, BACKWARD]),
            "optimizer_ns": of_phases(of_phase[:, OPTIMIZER]),
            "communication_ns": of_phase[:, _COMMUNICATION],
            "other_ns": of_phases(of_phase[:, DATA] + of_phase[:, OTHER]),
            "device_ns": of_phase.sum(axis=1),
            "idle_ns": idle,
            "kernels": sum_by_group(step, (index.kinds == KERNEL).astype(np.int64), n)[:-1],
            "forward_host_ns": of_phases(host[FORWARD]),
            "backward_host_ns": of_phases(host[BACKWARD]),
            "optimizer_host_ns": of_phases(host[OPTIMIZER]),
            "other_host_ns": of_phases(ends - starts - _in_phases(index, starts, ends)),
        }
    )


def _host_ns(index: ProfileIndex) -> dict[int, IntArray]:
    """Return the host time of each step by phase, ns."""
    starts, ends, _ = index.cached(steps)
    step = repeat_at(starts, ends, index.profile.tables["ops"]["start_ns"])
    return {
        phase: sum_by_group(step, times, len(starts))[:-1]
        for phase, times in index.cached(phase_host_ns).items()
    }


def _in_phases(index: ProfileIndex, starts: IntArray, ends: IntArray) -> IntArray:
    """Return how long the host was in a phase other than `OTHER` in each step, ns."""
    ops, begins = index.profile.tables["ops"], index.cached(phase_starts)
    is_phase = index.cached(op_phases) != OTHER
    covered = np.zeros(len(starts), np.int64)
    for rows, sign in ((begins & is_phase, 1), (begins & ~is_phase, -1)):
        times = union(ops["start_ns"][rows], ops["end_ns"][rows])
        before, until = (covered_before(*times, bounds) for bounds in (starts, ends))
        covered += sign * (until - before)
    return covered


def _device_ns(index: ProfileIndex, step: IntArray, n: int) -> IntArray:
    """Return the device time of each step by phase, shape ``(n, _COMMUNICATION + 1)``.

    The kernels of NCCL have a separate column, whatever their phase.
    """
    columns = _COMMUNICATION + 1
    phase_of_op = np.append(index.cached(op_phases), np.uint8(OTHER))
    communication = _is_communication(index)
    durations = index.profile.tables["activities"]["duration_ns"]
    sums = np.zeros(n * columns + 1, np.int64)
    for chunk in chunks(len(step)):
        phase = np.where(
            communication[chunk], _COMMUNICATION, phase_of_op[index.activity_op[chunk]]
        )
        cell = np.where(step[chunk] >= 0, step[chunk] * columns + phase, MISSING)
        np.add.at(sums, cell, durations[chunk])
    return sums[:-1].reshape(n, columns)


def _is_communication(index: ProfileIndex) -> BoolArray:
    """Return a mask of the kernels of NCCL, which wait for other devices."""
    names = index.profile.tables["activities"].names("name")
    of_name = np.array([name.startswith("nccl") for name in names.categories] + [False])
    return of_name[names.codes]


def step_statistics(index: ProfileIndex) -> RepeatStatistics | None:
    """Return the statistics of the optimizer's steps; None if the code was repeated.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> step_statistics(ProfileIndex(synthetic_profile(activities=100)))  # has no optimizer
    """
    if len(index.profile.info.get("repeats") or ()) > 1:
        return None
    starts, ends, first = index.cached(steps)
    if len(starts) < 2:
        return None
    walls, host = ends - starts, index.cached(_host_ns)
    whole = max(int(walls.sum()), 1)
    times = {PHASES[phase]: int(host[phase].sum()) for phase in (FORWARD, BACKWARD, OPTIMIZER)}
    # Code that loads its data without a DataLoader does so in the other time.
    if is_of_type(index, "data").any():
        times = {PHASES[DATA]: int(host[DATA].sum())} | times
    times[PHASES[OTHER]] = int((walls - _in_phases(index, starts, ends)).sum())
    phases = ", ".join(f"{name} {percent(time / whole)}" for name, time in times.items())
    return wall_statistics(walls, RepeatNames("step", first), f"; host time: {phases}")
