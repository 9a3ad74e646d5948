"""Complete repeats, without the code that a script runs before and after its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.op_status import ran
from epprof_nb.data.repeats import repeat_bounds, repeat_names

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex

_MIN_OTHERS = 2
"""Minimum number of other steps to compare a step with."""


def whole_repeats(index: ProfileIndex) -> slice:
    """Return the range of the repeats to count and compare, for `ProfileIndex.cached`.

    Step 0 of a script is left out: it holds the imports and other preparation before the first
    step. The code after the last call of `epprof_nb.step` is left out too, unless it is a step
    itself. It is one if the body of the loop begins with that call.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.testing import synthetic_profile
    >>> whole_repeats(ProfileIndex(synthetic_profile(activities=100)))  # was not repeated
    slice(0, 0, None)
    """
    count = len(repeat_bounds(index.profile.info)[0])
    names = repeat_names(index.profile.info)
    if names.unit != "step" or count < 2:
        return slice(0, count)
    first = int(names.first == 0)
    has_rest = count - 1 - first >= _MIN_OTHERS and _is_rest(index, first, count - 1)
    return slice(first, count - has_rest)


def _is_rest(index: ProfileIndex, first: int, last: int) -> bool:
    """Return whether the repeat `last` lacks work that each one from `first` on has."""
    profile = index.profile
    starts, ends = repeat_bounds(profile.info)
    ops, activities = profile.tables["ops"], profile.tables["activities"]
    inside = ran(ops) & (ops["repeat"] >= first) & (ops["repeat"] <= last)
    # An op that contains the call of `epprof_nb.step` ends in the next step. The last step of a
    # loop lacks the call that would begin another.
    rows = np.flatnonzero(inside)
    repeat = ops["repeat"][rows]
    is_within = (ops["end_ns"][rows] <= ends[repeat]) | (repeat == last)
    rows, repeat = rows[is_within], repeat[is_within]
    names = ops.names("name")
    seen = np.unique(names.codes[rows].astype(np.int64) * len(starts) + repeat)
    seen = seen[seen >= 0]
    code, of_repeat = np.divmod(seen, len(starts))
    times = np.bincount(code[of_repeat != last], minlength=len(names.categories))
    is_common = times == last - first
    if is_common.any():
        return bool(is_common.sum() > is_common[code[of_repeat == last]].sum())
    launched = activities["repeat"][index.is_device_work]
    launched = launched[(launched >= first) & (launched <= last)]
    launches = np.bincount(launched - first, minlength=last - first + 1)
    if launches[:-1].all():
        return not launches[-1]
    # Neither ops nor launches show what belongs to a step.
    wall = ends - starts
    return bool(2 * wall[last] < wall[first:last].min())
