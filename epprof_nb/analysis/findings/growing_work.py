"""Growth of the device work from iteration to iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.findings.finding import launcher_name, stack_of
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.repeats import repeat_at

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import ResultTable

_LEAST_GROWTH = 1.1
"""Minimum ratio of launches: the later half of the iterations to the first half."""


def growth_of_work(index: ProfileIndex, found: ResultTable) -> str:
    """Return a text on the growth of the launches, and the line whose launches grew most.

    Empty if their number did not grow: then the same work took longer.
    """
    activities, n = index.profile.tables["activities"], len(found)
    rows = np.flatnonzero(index.is_device_work)
    call = index.calls.rows(activities["correlation_id"][rows])
    rows, call = rows[call != MISSING], call[call != MISSING]
    start, called = found["start_ns"], index.profile.tables["api_calls"]["start_ns"][call]
    number = repeat_at(start, start + found["wall_ns"] - 1, called)
    rows, number = rows[number >= 0], number[number >= 0]
    count = np.bincount(number, minlength=n)
    first, last = (float(np.median(half)) for half in np.array_split(count, 2))
    if not first or last < _LEAST_GROWTH * first:
        return ""
    places = index.cached(Places)
    place = places.of_activities(rows)
    growth = sum_by_group(place, np.where(2 * number >= n, 1, -1), places.count + 1)[:-1]
    top = int(rows[place == int(growth.argmax())][-1])
    name = launcher_name(index, stack_of(index, "activities", top), int(index.activity_op[top]))
    grown = f"it launched {int(count[-1]):,} times, the first one {int(count[0]):,} times"
    return f"{grown}; {name} grew most" if name else grown
