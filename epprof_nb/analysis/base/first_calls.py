"""First calls of a profile, which the profiler makes longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.source_text import reads_clock
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.intervals import clip_times, covered_between, union
from epprof_nb.arrays.stable_order import in_order
from epprof_nb.data.repeats import repeat_bounds

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table

FIRST_WORK_NS = 2_500_000
"""Time that recording the first ops and their stacks takes before the first launch, at most."""
FIRST_TURNS_NS = 5_000_000
"""Time that the first calls of a profile take in the first turns of a loop, at most.

On an H200, the first training step of a profile took 4.4 ms longer than unprofiled, half of it at
the first sight of its kernels, and a forward pass of 30 layers 1.9 ms.
"""
_FIRST_MODULE_NS = 1_000_000
"""Time before the first call of a module, in which the framework's hooks are prepared, at most."""
_AFTER_NS = 300_000
"""Time after the first launch of a thread in which its other calls are slow, too."""
_SLOW, _SLOW_NS = 3, 200_000
"""Minimum factor of the median call, and time beyond it, of a first call that CUPTI made longer."""
_LONGEST_NS = 5_000_000
"""Longest time that CUPTI takes in the first launch of a thread; more is work of the launch."""


def is_measured(index: ProfileIndex) -> bool:
    """Return whether the program measures itself: in repeats or marked steps, or by a clock.

    Then its first calls are part of what it measures. Elsewhere, code that runs once has to make
    them.
    """
    if len(repeat_bounds(index.profile.info)[0]) > 1:
        return True
    return any(reads_clock(text) for text in index.profile.sources.values())


def preparation(index: ProfileIndex) -> tuple[IntArray, IntArray]:
    """Return when the profiler prepared its recording, around the first launch of each thread.

    CUPTI makes this launch longer than the median one, and the profiler the ops before the first
    of all. Without recorded calls of CUDA, there are no such times.

    Returns
    -------
    starts, ends
        int64 arrays, nanoseconds: disjoint intervals, ascending.
    """
    calls = index.profile.tables["api_calls"]
    of_cuda = calls.names("domain").equals("driver") | calls.names("domain").equals("runtime")
    rows = np.flatnonzero(of_cuda & _named(calls, "Launch", "Memset", "Memcpy"))
    rows = in_order(rows, calls["start_ns"][rows])
    first = rows[group_codes(calls["thread_id"][rows])[1]]
    start, end = clip_times(calls["start_ns"][first], calls["end_ns"][first])
    took = end - start
    # The median of millions of calls takes a while.
    usual = np.array(
        [_usual(calls, rows, row) if long else 0
         for row, long in zip(first.tolist(), (took >= _SLOW_NS).tolist(), strict=True)],
        np.int64,
    )  # fmt: skip
    is_slow = (took >= _SLOW * usual) & (took - usual >= _SLOW_NS)
    if not is_slow.any():
        return rows[:0], rows[:0]
    first_work = int(start[0])
    start, end, usual = start[is_slow], end[is_slow], usual[is_slow]
    begins, ends = start, np.minimum(end, start + _LONGEST_NS)
    module_start, module_end = _before_first_module(index.profile.tables["ops"])
    starts = np.concatenate((begins, module_start, [first_work - FIRST_WORK_NS]))
    return union(starts, np.concatenate((ends - usual + _AFTER_NS, module_end, [first_work])))


def _usual(calls: Table, rows: IntArray, row: int) -> int:
    """Return the median time of the calls with the name of one; 0 for a single launch."""
    codes = calls.names("name").codes
    alike = rows[codes[rows] == codes[row]]
    if len(alike) < 2 and _named(calls, "Launch")[row]:
        return 0
    return max(int(np.median(calls["end_ns"][alike] - calls["start_ns"][alike])), 0)


def _named(calls: Table, *words: str) -> BoolArray:
    """Return which calls have one of these words in their name."""
    names = calls.names("name")
    found = [any(word in name for word in words) for name in names.categories]
    named: BoolArray = np.array([*found, False], np.bool_)[names.codes]
    return named


def _before_first_module(ops: Table) -> tuple[IntArray, IntArray]:
    """Return the time before the first call of a module, since the op around it began."""
    rows = np.flatnonzero(ops.names("op_type").equals("module"))
    if not len(rows):
        return rows, rows
    first = rows[[int(ops["start_ns"][rows].argmin())]]
    end = ops["start_ns"][first]
    of_parent = np.flatnonzero(ops["op_id"] == ops["parent_op_id"][first[0]])
    start = end - _FIRST_MODULE_NS
    return np.maximum(start, ops["start_ns"][of_parent[:1]].max(initial=0)), end


def preparation_within(index: ProfileIndex, start: IntArray, end: IntArray) -> IntArray:
    """Return how much of each time range the profiler took for its first calls, ns."""
    prepared = index.cached(preparation)
    return covered_between(*prepared, start, np.maximum(start, end))
