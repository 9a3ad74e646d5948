"""Activity of the host: the lines of the user's code that samples found in intervals of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.base.result_table import OptionalColumn, ResultTable, names_at, optional
from epprof_nb.analysis.base.stack_lines import INLINE_LOOPS, StackLines, enclosing_function
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.ids import unique_values, values_at
from epprof_nb.arrays.intervals import union
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray


_FEWEST = 3
"""Samples below which chance chooses the function."""
_MAIN = 0.5
"""Minimum share of one function in the samples for it to be named."""


class HostActivity(NamedTuple):
    """Lines or functions by their part of the sampled time, the largest first.

    ``stack`` (int64) is the innermost frame of the user's code, a row of ``stacks``; `MISSING` for
    time outside of the user's code. ``share`` (float64) is the part of the sampled time, and
    ``samples`` (int64) the number of samples.
    """

    stack: IntArray
    share: npt.NDArray[np.float64]
    samples: IntArray


def host_sample_table(index: ProfileIndex) -> ResultTable:
    """Return the columns of `Profile.host_samples`."""
    samples, lines = index.profile.tables["host_samples"], index.cached(StackLines)
    own = lines.own[samples["stack_id"]]
    return ResultTable(
        {
            "start_ns": samples["start_ns"],
            "thread_id": samples["thread_id"],
            "stack_id": OptionalColumn(samples["stack_id"], samples["stack_id"] == MISSING),
            "interval_ns": samples["interval_ns"],
            "processor_ns": optional(samples["processor_ns"]),
            "core_wait_ns": optional(samples["core_wait_ns"]),
            "function": names_at(lines.function, own),
            "file": names_at(lines.file, own),
            "line": optional(values_at(lines.line, own)),
        }
    )


def host_activity(index: ProfileIndex, start_ns: IntArray, end_ns: IntArray) -> HostActivity:
    """Sum up samples of `main_threads` by the innermost line of the user's code.

    Parameters
    ----------
    index
        Index of the profile.
    start_ns, end_ns
        int64 arrays: the intervals, which may overlap.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import index_of
    >>> from epprof_nb.testing import synthetic_profile
    >>> host_activity(index_of(synthetic_profile()), np.array([0]), np.array([9])).samples.tolist()
    []
    """
    rows = samples_within(index, start_ns, end_ns)
    return _summed(index, rows, index.cached(_lines_of_samples))


def functions_of_host(index: ProfileIndex, start_ns: IntArray, end_ns: IntArray) -> HostActivity:
    """Sum up samples by the innermost function of the user's code, as `host_activity` by line.

    ``stack`` is the line with most samples of the function.
    """
    rows = samples_within(index, start_ns, end_ns)
    return _summed(index, rows, index.cached(_functions_of_samples))


def main_place(
    index: ProfileIndex, thread: IntArray, start_ns: IntArray, end_ns: IntArray
) -> tuple[IntArray, IntArray]:
    """Return the line that the host ran for most of each interval.

    Parameters
    ----------
    index
        Index of the profile.
    thread
        The thread whose samples count, one per interval.
    start_ns, end_ns
        The intervals; intervals of one thread are disjoint.

    Returns
    -------
    stack
        int64 array: row of the innermost frame of the user's code; `MISSING` without samples, or
        if most of them were in other code.
    samples
        int64 array: number of samples in each interval.
    """
    samples, places = index.profile.tables["host_samples"], index.cached(_lines_of_samples)
    time, weight = samples["start_ns"], samples["interval_ns"]
    interval, row = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for one in np.unique(thread):
        at = np.flatnonzero(thread == one)
        at = at[np.argsort(start_ns[at], kind="stable")]
        of_thread = np.flatnonzero(samples["thread_id"] == one)
        last = np.searchsorted(start_ns[at], time[of_thread], side="right") - 1
        inside = (last >= 0) & (time[of_thread] < end_ns[at][last])
        interval.append(at[last[inside]])
        row.append(of_thread[inside])
    intervals, rows = np.concatenate(interval), np.concatenate(row)
    stack = np.full(len(thread), MISSING, np.int64)
    counts: IntArray = np.bincount(intervals, minlength=len(thread)).astype(np.int64)
    if len(rows):
        group, first = group_codes(intervals, places[rows])
        total = np.bincount(group, weights=weight[rows])
        # The last of each interval, which has most samples, stays.
        order = np.argsort(total, kind="stable")
        own = index.cached(StackLines).own[samples["stack_id"]]
        stack[intervals[first[order]]] = own[rows[first[order]]]
    return stack, counts


def _summed(index: ProfileIndex, rows: IntArray, groups: IntArray) -> HostActivity:
    samples = index.profile.tables["host_samples"]
    if not len(rows):
        none = np.empty(0, np.int64)
        return HostActivity(none, np.empty(0), none)
    weight = samples["interval_ns"][rows]
    # Each group is shown by its line with most samples.
    by_line, first = group_codes(groups[rows], index.cached(_lines_of_samples)[rows])
    order = np.argsort(-np.bincount(by_line, weights=weight), kind="stable")
    codes, shown = group_codes(groups[rows][first[order]])
    of_line = np.empty(len(first), np.int64)
    of_line[order] = codes
    group = of_line[by_line]
    total = np.bincount(group, weights=weight)
    own = index.cached(StackLines).own[samples["stack_id"][rows[first[order[shown]]]]]
    largest = np.argsort(-total, kind="stable")
    return HostActivity(
        own[largest],
        (total / max(total.sum(), 1))[largest],
        np.bincount(group).astype(np.int64)[largest],
    )


def sampled_host(index: ProfileIndex, start_ns: IntArray, end_ns: IntArray) -> int:
    """Return the main line of the user's function that the host ran for most of some intervals.

    It is a row of ``stacks``; `MISSING` if there are too few samples, or no function has half of
    them.
    """
    found = functions_of_host(index, start_ns, end_ns)
    if found.samples.sum() < _FEWEST or found.share[0] < _MAIN:
        return MISSING
    return int(found.stack[0])


def samples_within(index: ProfileIndex, start_ns: IntArray, end_ns: IntArray) -> IntArray:
    """Return the rows of the samples of `main_threads` in intervals."""
    samples = index.profile.tables["host_samples"]
    starts, ends = union(start_ns, end_ns)
    wanted = np.isin(samples["thread_id"], index.cached(main_threads))
    rows: IntArray = np.flatnonzero(wanted)
    if not len(starts):
        return rows[:0]
    time = samples["start_ns"][rows]
    at = np.searchsorted(starts, time, side="right") - 1
    return rows[(at >= 0) & (time < ends[at])]


def main_threads(index: ProfileIndex) -> list[int]:
    """Return the threads that launched work, else the one whose outermost ops take most time.

    Without ops, these are all threads.
    """
    launching = index.profile.tables["activities"]["thread_id"][index.is_device_work]
    if launched := [thread for thread in unique_values(launching) if thread != MISSING]:
        return launched
    ops = index.profile.tables["ops"]
    outermost = np.flatnonzero(ops["parent_op_id"] == MISSING)
    if not len(outermost):
        threads = index.profile.tables["host_samples"]["thread_id"]
        return [int(thread) for thread in np.unique(threads)]
    threads, at = np.unique(ops["thread_id"][outermost], return_inverse=True)
    length = (ops["end_ns"] - ops["start_ns"])[outermost]
    return [int(threads[np.bincount(at, weights=length).argmax()])]


def _lines_of_samples(index: ProfileIndex) -> IntArray:
    """Return a number for the line of each sample, `MISSING` outside of the user's code."""
    stacks = index.profile.tables["host_samples"]["stack_id"]
    lines: IntArray = index.cached(Places).of_stack[stacks]
    return lines


def _functions_of_samples(index: ProfileIndex) -> IntArray:
    """Return a number for the function of each sample.

    A loop in an expression belongs to its function; outside of functions, it has its own number.
    """
    lines = index.cached(StackLines)
    own = lines.own[index.profile.tables["host_samples"]["stack_id"]]
    names = lines.function
    number: dict[str, int] = {}
    around = [
        name if name in INLINE_LOOPS else enclosing_function(name) for name in names.categories
    ]
    functions = [*(number.setdefault(name, len(number)) for name in around), MISSING]
    function = np.array(functions)[np.append(names.codes, np.int32(MISSING))[own]]
    return group_codes(np.append(lines.file.codes, np.int32(MISSING))[own], function)[0]
