"""Visits to a place that waits: the host's time there, and what it launched and read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.device_work import KERNEL
from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.utilisation.late_launches import LAUNCH_HOST_NS
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.ids import values_at
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray


class Visits(NamedTuple):
    """Visits of one place: from its first API call there to its last, without others between.

    ``start`` and ``end`` are when the host was there (ns) on ``thread``: int64 arrays, one value
    per visit. ``calls`` and ``activities`` are the rows of what it called and launched there.
    ``goes_on`` says whether kernels were launched there after the last wait, ``copies_back``
    whether inputs were copied to the device.
    """

    thread: IntArray
    start: IntArray
    end: IntArray
    goes_on: BoolArray
    copies_back: BoolArray
    calls: IntArray
    activities: IntArray


def visits(index: ProfileIndex, waits: IntArray) -> Visits:
    """Return the visits in which some API calls of one place waited.

    A visit begins where the statement does; in a function without statements, halfway from the last
    call before, at most `LAUNCH_HOST_NS` before its first call: what the host did earlier is work
    of other lines. It ends with the last call there.
    """
    calls, activities = (index.profile.tables[name] for name in ("api_calls", "activities"))
    places = index.cached(Places)
    (place,) = np.unique(places.of_calls(waits))
    is_wait = np.zeros(len(calls), np.bool_)
    is_wait[waits] = True
    found = []
    for thread in np.unique(calls["thread_id"][waits]).tolist():
        rows = index.calls_of_thread(thread)
        is_there = places.of_calls(rows) == place
        statement = values_at(index.statement, index.call_op[rows])
        begins = is_there & ~(np.append(False, is_there[:-1]) & _same(statement))
        begins |= is_there & _comes_again(index, rows, statement, begins)
        number = np.where(is_there, np.cumsum(begins) - 1, MISSING)
        first = np.flatnonzero(begins)
        visited = np.unique(number[is_wait[rows]])
        at = np.flatnonzero(is_there & np.isin(number, visited))
        last = np.flatnonzero(np.append(number[1:], MISSING) != number)
        last = last[is_there[last]]
        start = _start(index, rows, first)[visited]
        end = np.maximum(calls["end_ns"][rows[last]][visited], start)
        found.append((thread, start, end, rows, number, visited, rows[at]))
    is_kernel, is_input, is_of_visit = np.zeros((3, len(calls) + 1), np.bool_)
    of_calls = np.concatenate([part[6] for part in found])
    is_of_visit[of_calls] = True
    of_input = activities.names("copy_kind").equals("HtoD")
    of_visits = []
    for chunk in chunks(len(of_input)):
        launched = index.calls.rows(activities["correlation_id"][chunk])
        is_kernel[launched[index.kinds[chunk] == KERNEL]] = True
        is_input[launched[of_input[chunk]]] = True
        of_visits.append(np.flatnonzero(is_of_visit[launched]) + chunk.start)
    is_kernel[-1] = is_input[-1] = False
    later: list[list[BoolArray]] = [[], []]
    for _, _, _, rows, number, visited, _ in found:
        last_wait = np.full(int(number.max(initial=0)) + 1, MISSING, np.int64)
        at = np.flatnonzero((number >= 0) & is_wait[rows])
        np.maximum.at(last_wait, number[at], at)
        for mask, of_mask in zip((is_kernel, is_input), later, strict=True):
            after = np.flatnonzero((number >= 0) & mask[rows])
            after = after[after > last_wait[number[after]]]
            of_mask.append(np.isin(visited, number[after]))
    return Visits(
        np.concatenate([np.full(len(part[1]), part[0]) for part in found]),
        np.concatenate([part[1] for part in found]),
        np.concatenate([part[2] for part in found]),
        np.concatenate(later[0]),
        np.concatenate(later[1]),
        of_calls,
        np.concatenate([np.empty(0, np.int64), *of_visits]),
    )


def _same(statement: IntArray) -> BoolArray:
    """Return which calls are in the same execution of a statement as the call before."""
    same: BoolArray = np.append(False, statement[1:] == statement[:-1])
    return same


def _comes_again(
    index: ProfileIndex, rows: IntArray, statement: IntArray, begins: BoolArray
) -> BoolArray:
    """Return which calls begin a visit anew, after work of other lines that made no call.

    They are in the same stack as the first call of the visit, a while after the call before. A
    statement needs no such sign.
    """
    calls, places = index.profile.tables["api_calls"], index.cached(Places)
    late = calls["start_ns"][rows[1:]] - calls["end_ns"][rows[:-1]] > LAUNCH_HOST_NS
    first = rows[np.maximum.accumulate(np.where(begins, np.arange(len(rows)), 0))]
    again = np.append(False, late)
    for key in (calls["stack_id"], calls.names("name").codes):
        again &= key[rows] == key[first]
    is_marked = (statement >= 0) & (places.of_op[statement] == places.of_calls(rows))
    found: BoolArray = again & ~is_marked
    return found


def _start(index: ProfileIndex, rows: IntArray, first: IntArray) -> IntArray:
    """Return when the host came to a place, for the first call of each visit."""
    calls, ops = index.profile.tables["api_calls"], index.profile.tables["ops"]
    start = calls["start_ns"][rows[first]]
    before = np.where(first > 0, calls["end_ns"][rows[first - 1]], np.minimum(start, 0))
    start = np.minimum(start, np.maximum(before + (start - before) // 2, start - LAUNCH_HOST_NS))
    statement = values_at(index.statement, index.call_op[rows[first]])
    places = index.cached(Places)
    is_marked = places.of_op[statement] == places.of_calls(rows[first])
    is_marked &= (statement >= 0) & (values_at(ops["count"], statement) == 1)
    begun = values_at(ops["start_ns"], statement)
    found: IntArray = np.where(is_marked & (begun >= before), begun, start)
    return found
