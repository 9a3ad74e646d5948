"""by_phase: prefill and decode of language models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.added_time.added_time import added_time
from epprof_nb.analysis.base.missing_records import busy_within
from epprof_nb.analysis.base.op_totals import totals
from epprof_nb.analysis.base.processes import process_by_process, processes
from epprof_nb.analysis.base.result_table import OptionalColumn, ResultTable, categorical, optional
from epprof_nb.analysis.base.unknown_device_times import missing_if_unknown
from epprof_nb.analysis.onnx.unprofiled_times import Runs, runs
from epprof_nb.analysis.steps.by_repeat import wall_statistics
from epprof_nb.analysis.steps.prefill_and_decode import DECODE, ModelSteps, model_steps
from epprof_nb.analysis.utilisation.late_launches import launch_gaps
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.repeats import RepeatNames
from epprof_nb.data.token_arguments import PHASES
from epprof_nb.util.format import duration, plural

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.steps.by_repeat import RepeatStatistics
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table

    FloatArray = npt.NDArray[np.float64]

MIN_CALL_NS = 200_000
"""Minimum median of unprofiled calls of sessions, so that their rate can be estimated."""
_LARGEST_ERROR = 0.2
"""Maximum error of an estimated time, as a share of it: 95 % of it scatters less."""
MIN_STEPS = 4
"""Minimum number of decode steps that have statistics."""


@missing_if_unknown
@process_by_process
def phase_table(index: ProfileIndex, *, attribution: Attribution = "launch") -> ResultTable:
    """Return the columns of `Profile.by_phase`."""
    ops, steps = index.profile.tables["ops"], index.cached(model_steps)
    group, first = group_codes(steps.generation, steps.phase)
    n = len(first)
    groups = np.full(len(ops), MISSING, np.int64)
    groups[steps.row] = group
    sums = totals(index, groups, index.tree.nearest_ancestor(groups >= 0), attribution=attribution)
    start = ops["start_ns"][steps.row[first]]
    end = _ends(index, steps, group, first)
    busy, is_unknown = busy_within(index, start, end)
    no_device = np.full(n, not index.device_ids, np.bool_)
    count = sum_by_group(group, np.ones(len(group), np.int64), n)[:-1]
    tokens = sum_by_group(group, steps.tokens, n)[:-1]
    known_batch = _largest(steps.generation, steps.batch)[steps.generation]
    known_batch = np.where(steps.batch == MISSING, known_batch, steps.batch)
    wall = end - start
    host = sum_by_group(group, ops["duration_ns"][steps.row], n)[:-1]
    order = np.lexsort((steps.phase[first], steps.generation[first]))
    seconds = np.maximum(wall, 1) / 1e9
    unprofiled = _unprofiled_ns(index, steps, group, start, end)
    all_tokens = np.bincount(group, steps.tokens * np.maximum(known_batch, 1.0), n)
    return ResultTable(
        {
            "model": categorical([steps.model[call] for call in first.tolist()]),
            "generation": steps.generation[first],
            "phase": categorical([PHASES[code] for code in steps.phase[first].tolist()]),
            "calls": count,
            "batch": optional(_largest(group, known_batch)),
            "tokens": tokens,
            "past_tokens": optional(steps.past[first]),
            "cache_bytes": optional(_largest(group, steps.cache_bytes)),
            "start_ns": start,
            "wall_ns": wall,
            "ns_per_token": wall // np.maximum(tokens, 1),
            "tokens_per_s": all_tokens / seconds,
            "unprofiled_tokens_per_s": all_tokens * 1e9 / unprofiled,
            "host_ns": host,
            "device_ns": sums.measures["device_ns"],
            "kernels": sums.measures["kernels"],
            "idle_ns": OptionalColumn(wall - busy, no_device | is_unknown),
            "launch_idle_ns": OptionalColumn(_launch_idle_ns(index, groups, n), no_device),
        }
    ).take(order)


def left_out_calls(index: ProfileIndex) -> int:
    """Return the number of calls of language models of which it is not known what they continue."""
    indexes = [part.index for part in index.cached(processes)] or [index]
    return sum(each.cached(model_steps).left_out for each in indexes)


def _ends(index: ProfileIndex, steps: ModelSteps, group: IntArray, first: IntArray) -> IntArray:
    """Return the end of each phase: the start of its generation's next phase, else its own end.

    A library may begin to decode before it has processed all of the prompt. Such a phase ends with
    its own last call.
    """
    ops = index.profile.tables["ops"]
    start = ops["start_ns"][steps.row]
    last = start[first].copy()
    np.maximum.at(last, group, start)
    end = start[first].copy()
    np.maximum.at(end, group, ops["end_ns"][steps.row])
    following = {
        (generation, phase): begin
        for generation, phase, begin in zip(
            steps.generation[first].tolist(),
            steps.phase[first].tolist(),
            start[first].tolist(),
            strict=True,
        )
    }
    for i, call in enumerate(first.tolist()):
        key = int(steps.generation[call]), int(steps.phase[call]) + 1
        begin = following.get(key)
        if begin is not None and begin >= last[i]:
            end[i] = begin
    return end


def _unprofiled_ns(
    index: ProfileIndex, steps: ModelSteps, group: IntArray, start: IntArray, end: IntArray
) -> FloatArray:
    """Return how long each phase takes without the profiler, ns; NaN if that is not known well."""
    ops, found = index.profile.tables["ops"], index.cached(runs)
    added = index.cached(added_time)
    unprofiled = np.full(len(start), np.nan)
    if added is not None:
        unprofiled = np.maximum(end - start - added.between(start, end), 1.0)
    _, first = np.unique(group, return_index=True)
    thread = ops["thread_id"][steps.row]
    is_on_other = np.bincount(group, thread != thread[first][group], len(start)) > 0
    has_runs = np.bincount(group, np.isin(steps.row, found.row), len(start)) > 0
    for number in np.unique(thread[first]).tolist():
        of_thread = np.flatnonzero(has_runs & (thread[first] == number))
        mine = np.flatnonzero(ops["thread_id"][found.row] == number)
        mine = mine[np.argsort(ops["start_ns"][found.row[mine]], kind="stable")]
        begin = ops["start_ns"][found.row[mine]]
        low, high = (np.searchsorted(begin, at[of_thread]).tolist() for at in (start, end))
        for phase, i, j in zip(of_thread.tolist(), low, high, strict=True):
            # Runs of other models in the same time are slower, too.
            less, error = _slower_by(ops, found, mine[i:j], int(end[phase]))
            without = end[phase] - start[phase] - less
            unprofiled[phase] = without if error <= _LARGEST_ERROR * without else np.nan
    return np.where(has_runs & is_on_other, np.nan, unprofiled)


def _slower_by(ops: Table, found: Runs, some: IntArray, end: int) -> tuple[float, float]:
    """Return by how much some runs of a thread are slower with the profiler in all, and the error.

    Both are in ns, and NaN if unknown: for short calls, neither what the code between them is
    slowed down nor the scatter of their times is small. Medians are not changed by calls in which
    the host was busy, which occur without the profiler as well.
    """
    unprofiled, is_recorded = found.unprofiled_ns[some], found.is_recorded[some]
    if not len(some) or not np.median(unprofiled) >= MIN_CALL_NS:
        return np.nan, np.nan
    slower = found.call_ns[some] - unprofiled
    row = found.row[some[-1]]
    if ops["end_ns"][row] >= end:  # the phase lasts to the end of the run, not of its call
        slower[-1] = ops["duration_ns"][row] - unprofiled[-1]
    less, variance = 0.0, 0.0
    for of_kind in (slower[is_recorded], slower[~is_recorded]):
        n = len(of_kind)
        if not n:
            continue
        low, middle, high = np.quantile(of_kind, (0.25, 0.5, 0.75))
        added = max(middle, 0.0) * n
        less += added
        variance += (added if n < MIN_STEPS else 1.57 * (high - low) * np.sqrt(n)) ** 2
    return float(less), float(np.sqrt(variance))


def _largest(group: IntArray, values: IntArray) -> IntArray:
    """Return the largest value of each group; `MISSING` if it has none."""
    largest = np.full(int(group.max(initial=-1)) + 1, MISSING, np.int64)
    np.maximum.at(largest, group, values)
    return largest


def _launch_idle_ns(index: ProfileIndex, groups: IntArray, n: int) -> IntArray:
    """Return how long devices waited for launches by the calls of each phase, ns."""
    gaps = index.cached(launch_gaps)
    owner = index.tree.nearest_ancestor(groups >= 0)
    op = np.append(owner, MISSING)[index.activity_op[gaps.idle.next_row]]
    waited: IntArray = sum_by_group(np.append(groups, MISSING)[op], gaps.length, n)[:-1]
    return waited


def decode_statistics(index: ProfileIndex) -> RepeatStatistics | None:
    """Return the statistics of the decode steps of language models; None if there are few.

    A step lasts from the start of its call to the start of the next one, sampling included, or of a
    call of another generation on its thread, such as of a draft model.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> decode_statistics(ProfileIndex(synthetic_profile(activities=100)))  # has no such model
    """
    steps = index.cached(model_steps)
    is_decode = steps.phase == DECODE
    if np.count_nonzero(is_decode) < MIN_STEPS:
        return None
    ops = index.profile.tables["ops"]
    start, end = (ops[name][steps.row] for name in ("start_ns", "end_ns"))
    goes_on, following = _followers(start, steps.generation)
    _, on_thread = _followers(start, ops["thread_id"][steps.row])
    wall = np.where(goes_on, np.minimum(following, on_thread), end) - start
    wall = np.maximum(wall, 0)  # a damaged file may have negative times
    prefill, tokens = wall[~is_decode], int(steps.tokens[~is_decode].sum())
    before = (
        f"; prefill: {plural(tokens, 'token')} in {duration(int(prefill.sum()))}"
        if len(prefill)
        else ""
    )
    return wall_statistics(wall[is_decode], RepeatNames("decode step", 0), before)


def _followers(start: IntArray, group: IntArray) -> tuple[npt.NDArray[np.bool_], IntArray]:
    """Return whether each call has a later one in its group, and the start of that one."""
    order = np.lexsort((start, group))
    last = np.iinfo(np.int64).max
    following = np.full(len(start), last)
    goes_on = np.diff(group[order]) == 0
    following[order[:-1][goes_on]] = start[order[1:][goes_on]]
    return following != last, following
