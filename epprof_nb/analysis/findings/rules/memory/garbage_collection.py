"""Finding on pauses of Python's garbage collector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.critical_path.changed_durations import Removed
from epprof_nb.analysis.critical_path.saving_without_work import saving_without
from epprof_nb.analysis.findings.finding import Finding, launcher_name, op_id_of
from epprof_nb.analysis.findings.host_code_name import host_code_name
from epprof_nb.analysis.findings.rules.host_work.imports import import_statements
from epprof_nb.analysis.steps.causes_of_slow_iterations import collections
from epprof_nb.analysis.steps.iterations import iterations
from epprof_nb.analysis.utilisation.sampled_host import host_activity
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import duration, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

COLLECT_LESS = (
    "Call `gc.freeze()` after the preparation, so that collections skip its objects, and collect "
    "less often: raise `gc.set_threshold`, or remove calls of `gc.collect`."
)
_MAIN_SHARE = 0.5
"""Minimum share of one place in the pauses for the finding to name it."""
_MIN_SAMPLES = 5
"""Minimum number of samples in the pauses for a line to be named by them."""
_LEFT = 0.2
"""Part of the time that collections may still take."""


def collector_pauses(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on the pauses of the garbage collector."""
    ops, rows = index.profile.tables["ops"], index.cached(_counted)
    if not len(rows):
        return
    times = ops["duration_ns"][rows]
    total, count = int(times.sum()), int(ops["count"][rows].sum())
    single = rows[ops["count"][rows] == 1]
    starts, ends = ops["start_ns"][single], ops["end_ns"][single]
    together = total - int((ends - starts).sum())  # of pauses without times of their own
    removed = Removed(thread=ops["thread_id"][single], start=starts, end=ends)
    gain = saving_without(index, removed) + together
    longest = int(rows[int(times.argmax())])
    place = index.cached(Places).of_op[rows]
    by_place = sum_by_group(place, times, index.cached(Places).count)
    top = int(by_place.argmax())
    where = ""
    if by_place[top] >= _MAIN_SHARE * total:
        longest = int(rows[place == top][int(times[place == top].argmax())])
        parent = int(index.statement[longest])
        name = launcher_name(index, MISSING, parent) if parent >= 0 else ""
        where = f", mostly in {name}" if name else ""
    # A statement can run for the whole program: samples know the line of the function.
    sampled = host_activity(index, starts, ends)
    if sampled.samples.sum() >= _MIN_SAMPLES and sampled.share[0] >= _MAIN_SHARE:
        name = host_code_name(index, int(sampled.stack[0]))
        where = f", mostly in {name}" if name else where
    yield Finding(
        f"Python's garbage collector paused the program for {duration(total)} in "
        f"{plural(count, 'collection')}{where}.",
        gain,
        int(ops["start_ns"][longest]),
        int(ops["end_ns"][longest]),
        kind="garbage collection",
        remedy=COLLECT_LESS,
        gain_low_ns=int(gain * (1 - _LEFT)),
        op_id=op_id_of(index, longest),
        table="ops",
        rows=lambda: rows,
        spans=lambda: (starts, ends),
    )


def _counted(index: ProfileIndex) -> IntArray:
    """Return the rows of the pauses outside of the preparation.

    Imports create many objects, and so does the code before the first step. The profiler's own work
    causes pauses before the profile and after it, or before and after a cell.
    """
    found = index.cached(iterations)
    rows: IntArray = index.cached(collections)
    is_import = np.zeros(len(index.tree), np.bool_)
    is_import[index.cached(import_statements)] = True
    rows = rows[index.tree.nearest_ancestor(is_import)[rows] == MISSING]
    ops = index.profile.tables["ops"]
    rows = rows[(ops["end_ns"][rows] > 0) & (ops["start_ns"][rows] < wall_of(index.profile))]
    is_cell = ops.names("op_type").equals("cell")
    of_cells = np.isin(ops["thread_id"][rows], ops["thread_id"][is_cell])
    rows = rows[~of_cells | (index.tree.nearest_ancestor(is_cell)[rows] != MISSING)]
    if found.unit == "step" and len(found.start):
        rows = rows[ops["start_ns"][rows] >= found.start[0]]
    return rows


def pauses(index: ProfileIndex) -> tuple[IntArray, IntArray]:
    """Return starts and ends of the pauses that have rows of their own, ns."""
    ops, rows = index.profile.tables["ops"], index.cached(_counted)
    rows = rows[ops["count"][rows] == 1]
    return ops["start_ns"][rows], ops["end_ns"][rows]
