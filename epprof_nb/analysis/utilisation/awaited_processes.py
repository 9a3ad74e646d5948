"""Time in which statements waited for processes that were started before, by samples."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.source_text import source_line
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.base.waiting_frames import waiting_stacks
from epprof_nb.analysis.utilisation.sampled_host import samples_within
from epprof_nb.arrays.ancestors import nearest_ancestor
from epprof_nb.arrays.intervals import union
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

_WAITS = {
    ("subprocess.py", "Popen.communicate"),
    ("subprocess.py", "Popen.wait"),
    ("process.py", "BaseProcess.join"),
}
"""File and function of the methods that wait for a process."""
_STARTS = {("subprocess.py", "Popen.__init__"), ("process.py", "BaseProcess.start")}
_STARTING = re.compile(r"\b(?:Popen|Process)\b|\.start\(")
"""Code that starts a process: samples may miss it, as it takes a millisecond."""


def awaited_processes_ns(index: ProfileIndex, start_ns: IntArray, end_ns: IntArray) -> int:
    """Return for how long statements waited in intervals for processes that were started before.

    Only a statement outside of functions counts that calls a method of the process: ``p.wait()``,
    but not ``subprocess.run(...)``, which starts what it waits for. The time is 0 if a process was
    started in the intervals, because it can be the awaited one.

    Parameters
    ----------
    index
        Index of the profile.
    start_ns, end_ns
        int64 arrays: the intervals.
    """
    lines, samples = index.cached(StackLines), index.profile.tables["host_samples"]
    rows = samples_within(index, start_ns, end_ns)
    stack, is_statement = (
        samples["stack_id"][rows],
        lines.is_own & lines.function.equals("<module>"),
    )
    is_wait = waiting_stacks(index, _WAITS) & np.append(is_statement, False)[lines.parent]
    waits, starts = (
        np.append(nearest_ancestor(lines.parent, frames) != MISSING, False)[stack]
        for frames in (is_wait, waiting_stacks(index, _STARTS))
    )
    if not waits.any() or starts.any() or _starts_in_text(index, *union(start_ns, end_ns)):
        return 0
    return int(samples["interval_ns"][rows][waits].sum())


def _starts_in_text(index: ProfileIndex, start_ns: IntArray, end_ns: IntArray) -> bool:
    """Return whether the source of a statement that began in the intervals starts a process."""
    ops = index.profile.tables["ops"]
    at = np.searchsorted(start_ns, ops["start_ns"], side="right") - 1
    rows = np.flatnonzero((at >= 0) & (ops["start_ns"] < end_ns[at]) & (ops["line"] != MISSING))
    cells, lines = ops.names("cell").take(rows).to_list(), ops["line"][rows].tolist()
    places = set(zip(cells, lines, strict=True))
    return any(_STARTING.search(source_line(index.profile, *place)) for place in places)
