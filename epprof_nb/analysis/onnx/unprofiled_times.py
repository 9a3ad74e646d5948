"""Times of ONNX Runtime's runs and nodes without the profiler, estimated from recorded runs.

Runs with inputs of the same shapes take the same time. If only some of them were recorded node by
node, these represent the others: each node has the same share of the time in all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.op_status import has_host_time
from epprof_nb.analysis.onnx.profiler_slowdown import (
    call_durations,
    measured_slowdown,
    without_profiling,
)
from epprof_nb.analysis.onnx.recorded_runs import (
    CAPTURED,
    RECORDED,
    input_classes,
    node_events,
    run_rows,
)
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

    FloatArray = npt.NDArray[np.float64]


_MAX_OF_MEDIAN = 3
"""Maximum time of a run that nothing delayed, in medians of runs with inputs of the same shapes."""
_WEIGHT_STEPS, _LARGEST_WEIGHT = 16, 10_000
"""Weights are rounded to a 16th; with larger ones, sums of many long runs would not fit."""


class Runs(NamedTuple):
    """The runs of ONNX Runtime sessions: columns with one value per run.

    Attributes
    ----------
    row, session
        Row of the op, and the session.
    inputs
        Number that runs of one session with inputs of the same shapes share.
    is_recorded
        Whether it was recorded node by node.
    is_sample
        Whether it was, and took no more than three times as long as such runs with inputs of the
        same shapes: other processes delayed the others, in whichever node ran then.
    call_ns
        How long its call took.
    unprofiled_ns
        How long the call takes without the profiler, float64; NaN if unknown.
    """

    row: IntArray
    session: IntArray
    inputs: IntArray
    is_recorded: BoolArray
    is_sample: BoolArray
    call_ns: IntArray
    unprofiled_ns: FloatArray


def runs(index: ProfileIndex) -> Runs:
    """Return the runs of a profile, without replays of graphs, for `ProfileIndex.cached`.

    Without the profiler, a call takes as long as unprofiled ones with inputs of the same shapes. If
    there are none, it takes as long as comparable ones that were not recorded node by node; else
    its time is divided by the slowdown of comparable ones, else by the slowdown of its session.
    """
    ops, info = index.profile.tables["ops"], index.profile.info
    rows = run_rows(ops)
    state = np.array(node_events(ops, rows), object)
    rows, state = rows[state != CAPTURED], state[state != CAPTURED]
    is_recorded = state == RECORDED
    session = ops["session"][rows]
    call, unprofiled = call_durations(ops, rows)
    call = np.where(call == MISSING, ops["duration_ns"][rows], call)
    inputs, _ = group_codes(session, *input_classes(ops, rows))
    without = np.where(is_recorded, np.nan, call.astype(np.float64))
    for number in np.unique(session[is_recorded]).tolist():
        of_session = is_recorded & (session == number)
        times = without_profiling(info, number, call[of_session])
        if times is not None:
            without[of_session] = times
    for number in np.unique(inputs[is_recorded]).tolist():
        others = (inputs == number) & ~is_recorded
        of_inputs = (inputs == number) & is_recorded
        compared = of_inputs & (unprofiled != MISSING)
        if others.any():
            without[of_inputs] = np.median(call[others])
        elif compared.any():
            ratio = float(np.median(call[compared] / unprofiled[compared]))
            without[of_inputs] = call[of_inputs] / max(ratio, 1.0)
    without = np.where(unprofiled == MISSING, without, unprofiled)
    is_sample = is_recorded & ~_are_delayed(call, inputs, is_recorded)
    is_late = _are_delayed(without, inputs, ~np.isnan(without))
    without = np.where(is_late, _medians(without, inputs, ~np.isnan(without)), without)
    return Runs(rows, session, inputs, is_recorded, is_sample, call, without)


def _medians(times: IntArray | FloatArray, groups: IntArray, chosen: BoolArray) -> FloatArray:
    """Return the lower median of the chosen times of each one's group; NaN for none."""
    order = np.lexsort((times, groups))
    order = order[chosen[order]]
    count = np.bincount(groups[order], minlength=int(groups.max(initial=-1)) + 1)
    middle = np.cumsum(count) - count + (count - 1) // 2
    medians = np.full(len(count), np.nan)
    medians[count > 0] = times[order[middle[count > 0]]]
    of_each: FloatArray = medians[groups]
    return of_each


def _are_delayed(times: IntArray | FloatArray, groups: IntArray, chosen: BoolArray) -> BoolArray:
    """Mask of the chosen times that are much longer than the median of their group."""
    are: BoolArray = chosen & (times > _MAX_OF_MEDIAN * _medians(times, groups, chosen))
    return are


def unprofiled_host_ns(index: ProfileIndex) -> FloatArray:
    """Return the time of each op in all runs without the profiler, for `ProfileIndex.cached`.

    Returns
    -------
    host_ns
        float64 array, one value per op: its host time, multiplied by the time of all runs with
        inputs of the same shapes without the profiler, divided by the time of the recorded ones.
        Runs with inputs of which no run was recorded count with the others of their session.
        Delayed runs do not count: their times are those of the others.
    """
    ops = index.profile.tables["ops"]
    found = index.cached(runs)
    # Unknown times are used as recorded.
    without = np.where(np.isnan(found.unprofiled_ns), found.call_ns, found.unprofiled_ns)
    n = int(found.inputs.max(initial=-1)) + 1
    recorded_ns = np.maximum(_sum(found.inputs, np.where(found.is_sample, found.call_ns, 0), n), 1)
    total = _sum(found.inputs, without, n)
    has_recorded = np.bincount(found.inputs[found.is_recorded], minlength=n) > 0
    weight = np.zeros(len(found.row))
    for number in np.unique(found.session).tolist():
        of_session = found.session == number
        known = np.unique(found.inputs[of_session & has_recorded[found.inputs]])
        if len(known):
            others = without[of_session].sum() / max(total[known].sum(), 1.0)
            weight[of_session] = (total / recorded_ns)[found.inputs[of_session]] * others
    weight[found.is_recorded & ~found.is_sample] = 0.0
    of_op = _of_op(index, found, weight)
    # An event on a thread of a pool may lack its run; its session's slowdown applies.
    for number in np.unique(ops["session"][np.isnan(of_op)]).tolist():
        slowdown = measured_slowdown(index.profile.info, number) or 1.0
        of_op[np.isnan(of_op) & (ops["session"] == number)] = 1 / slowdown
    host_ns: FloatArray = np.where(has_host_time(ops), ops["duration_ns"] * of_op, 0.0)
    return host_ns


def run_weights(index: ProfileIndex) -> IntArray:
    """Return how much each op counts among those that were recorded, for `ProfileIndex.cached`.

    Recorded runs represent all runs with inputs of the same shapes. If one in 10 runs was recorded
    of some shapes, and one in 1,000 of others, the ops in the latter count 100 times as much.

    Returns
    -------
    weights
        int64 array, one value per op, at least 1; all 1 if all ops represent as many.
    """
    found = index.cached(runs)
    n = int(found.inputs.max(initial=-1)) + 1
    recorded = np.bincount(found.inputs[found.is_recorded], minlength=n)
    represented = np.bincount(found.inputs, minlength=n) / np.maximum(recorded, 1)
    of_run = represented[found.inputs]
    least = of_run[found.is_recorded].min(initial=np.inf)
    if not (found.is_recorded & (of_run > least)).any():
        return np.ones(len(index.profile.tables["ops"]), np.int64)
    of_op = _of_op(index, found, of_run)
    relative = np.where(np.isnan(of_op), 1.0, of_op / least)
    weights: IntArray = np.rint(np.clip(relative, 1, _LARGEST_WEIGHT) * _WEIGHT_STEPS).astype(
        np.int64
    )
    return weights


def _of_op(index: ProfileIndex, found: Runs, values: FloatArray) -> FloatArray:
    """Return the value of each op's run; NaN for ops outside of runs."""
    count = len(index.profile.tables["ops"])
    is_run = np.zeros(count, np.bool_)
    is_run[found.row] = True
    of_run = np.full(count + 1, np.nan)
    of_run[found.row] = values
    of_op: FloatArray = of_run[index.tree.nearest_ancestor(is_run)]
    return of_op


def _sum(groups: IntArray, values: npt.NDArray[np.generic], n: int) -> FloatArray:
    return np.bincount(groups, values, n).astype(np.float64)


def sampled_runs(index: ProfileIndex, sessions: IntArray) -> tuple[int, int] | None:
    """Return the number of recorded runs and of all runs of some sessions; None if equal."""
    found = index.cached(runs)
    of_sessions = np.isin(found.session, sessions)
    recorded, count = int(found.is_recorded[of_sessions].sum()), int(of_sessions.sum())
    return (recorded, count) if recorded < count else None
