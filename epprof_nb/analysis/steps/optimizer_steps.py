"""Start and end of each step: where the code marks steps, else where an optimizer's step ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.op_status import ran
from epprof_nb.analysis.frameworks.training_phases import FORWARD_TYPES, is_of_type
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.repeats import repeat_bounds, repeat_names

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

_WORK = (*FORWARD_TYPES, "fused", "autograd", "data")
"""Types of the ops with which a step begins."""
_MAX_FIRST_LEAD = 2
"""Maximum time before the work of the first step, relative to the longest one of later steps."""


class Steps(NamedTuple):
    """Steps of a training loop: start and end of each (ns), and the number of the first."""

    starts: IntArray
    ends: IntArray
    first: int


def steps(index: ProfileIndex) -> Steps:
    """Return the steps of the profile, for `ProfileIndex.cached`."""
    names, (starts, ends) = repeat_names(index.profile.info), repeat_bounds(index.profile.info)
    # A script that marks no steps has step 0 only, which lasts from its start to its end.
    if names.unit == "step" and (names.first or len(starts) > 1):
        return Steps(starts, ends, names.first)
    ops = index.profile.tables["ops"]
    optimizer = is_of_type(index, "optimizer") & ran(ops)
    is_step = np.array([name.endswith(".step") for name in ops.names("name").categories] + [False])
    rows = np.flatnonzero(
        optimizer & is_step[ops.names("name").codes] & ops.names("status").equals("complete")
    )
    if not len(rows):
        empty = np.empty(0, np.int64)
        return Steps(empty, empty, 0)
    rows = rows[np.argsort(ops["end_ns"][rows], kind="stable")]
    # The work of a closure inside of the optimizer's step is part of that step.
    above = index.tree.nearest_ancestor(optimizer)
    work = np.sort(ops["start_ns"][is_of_type(index, *_WORK) & (above < 0)])
    ends = ops["end_ns"][rows]
    next_start = np.append(ops["start_ns"][rows][1:], np.iinfo(np.int64).max)
    after = np.append(work, np.iinfo(np.int64).max)[np.searchsorted(work, ends)]
    kept = (after < next_start) | (np.arange(len(rows)) == len(rows) - 1)
    rows, ends, after = rows[kept], ends[kept], after[kept]
    begin = _begin(index, rows, work, after[:-1] - ends[:-1])
    return Steps(np.append(begin, ends[:-1]), ends, 0)


def _begin(index: ProfileIndex, rows: IntArray, work: IntArray, leads: IntArray) -> int:
    """Return the time at which the first step begins: with the loop, else the profiled code.

    Parameters
    ----------
    index
        Index of the profile.
    rows
        Rows of the ops with which the steps end.
    work
        Start of each op with which the framework's work may begin, ascending, ns.
    leads
        Time from the start of each later step to the first of these, ns.
    """
    ops, info = index.profile.tables["ops"], index.profile.info
    starts, end = ops["start_ns"], int(ops["end_ns"][rows[0]])
    first, last = _path(index, int(rows[0])), _path(index, int(rows[-1]))
    common = 0
    while common < min(len(first), len(last)) - 1 and first[common] == last[common]:
        common += 1
    # With one step only, the loop is not known.
    around = first[common - 1 if len(rows) > 1 else 0] if common else MISSING
    begin = int(starts[around]) if common else int(repeat_bounds(info)[0].min(initial=0))
    first_work = int(np.append(work, end)[0 if len(rows) == 1 else np.searchsorted(work, begin)])
    first_work = min(first_work, int(starts[rows[0]]))
    lines = [int(ops["line"][path[common]]) for path in (first, last)]
    if len(rows) > 1 and lines[0] == lines[1] != MISSING:
        return begin  # The statement around the steps is their loop.
    # Code before the loop would count for the first step: a script's imports, or a function that
    # builds its model. The first batch may take longer than the others, though.
    longest = int(leads.max(initial=0))
    is_script = repeat_names(info).unit == "step"
    if (len(rows) > 1 or is_script) and first_work - begin > _MAX_FIRST_LEAD * longest:
        return max(begin, first_work - longest)
    return begin


def _path(index: ProfileIndex, row: int) -> list[int]:
    """Return the rows of an op and those around it, the outermost one first."""
    path = [row]
    while (above := int(index.tree.parent[path[-1]])) != MISSING:
        path.append(above)
    return path[::-1]
