"""Calls of the standard library in which the host waited for a thread or process, by samples."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.stack_lines import StackLines, short_function
from epprof_nb.analysis.base.waiting_frames import FOR_ANYTHING, waiting_stacks
from epprof_nb.analysis.utilisation.sampled_host import samples_within

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

_EVENT_LOOP = "asyncio"
_INSIDE = ("threading.py", "selectors.py")
"""Files whose functions wait for the calls of others."""


def waiting_call(
    index: ProfileIndex, start_ns: IntArray, end_ns: IntArray, stack: int
) -> str | None:
    """Return the call in which a function of the user waited for most of its time in intervals.

    Parameters
    ----------
    index
        Index of the profile.
    start_ns, end_ns
        int64 arrays: the intervals, which may overlap.
    stack
        A row of ``stacks``: a frame of the function.

    Returns
    -------
    call
        The innermost public function that is not of ``threading``, such as ``Future.result``, else
        the outermost one of it; None if the user's function worked, or waited in an event loop.
    """
    lines, samples = index.cached(StackLines), index.profile.tables["host_samples"]
    rows = samples_within(index, start_ns, end_ns)
    leaves, of_sample = np.unique(samples["stack_id"][rows], return_inverse=True)
    times = np.bincount(of_sample, samples["interval_ns"][rows], minlength=len(leaves))
    waits = np.append(waiting_stacks(index, FOR_ANYTHING), False)
    function = _function(lines, stack)
    worked, waited = 0.0, dict[str, float]()
    for leaf, time in zip(leaves.tolist(), times.tolist(), strict=True):
        own = int(lines.own[leaf])
        if own < 0 or _function(lines, own) != function:
            continue
        name = _call_of(lines, leaf, own) if waits[leaf] else None
        if name is None:
            worked += time
        else:
            waited[name] = waited.get(name, 0.0) + time
    if not waited or worked > sum(waited.values()):
        return None
    return max(waited, key=lambda name: waited[name])


def _call_of(lines: StackLines, leaf: int, own: int) -> str | None:
    """Return the public function in whose call a stack waits; None in an event loop."""
    found, inside, row = "", "", leaf
    while row != own:
        file, name = _file(lines, row), _name(lines, row)
        if file.parent.name == _EVENT_LOOP:
            return None
        if not any(part.startswith("_") for part in name.split(".")):
            if file.name in _INSIDE:
                inside = name
            else:
                found = found or name
        row = int(lines.parent[row])
    return found or inside or _name(lines, leaf)


def _file(lines: StackLines, row: int) -> PurePath:
    return PurePath(lines.file.take(slice(row, row + 1)).to_list()[0] or "")


def _name(lines: StackLines, row: int) -> str:
    return short_function(lines.function.take(slice(row, row + 1)).to_list()[0] or "")


def _function(lines: StackLines, row: int) -> tuple[PurePath, str]:
    return _file(lines, row), _name(lines, row)
