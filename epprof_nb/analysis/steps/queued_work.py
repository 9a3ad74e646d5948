"""Queued work: how long iterations lasted while devices did what earlier ones had launched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.steps.iterations import iterations
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.ids import values_at
from epprof_nb.arrays.intervals import clip_times, covered_between, union
from epprof_nb.arrays.positions import positions
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.steps.iterations import Iterations
    from epprof_nb.arrays.types import IntArray


def queued_work(index: ProfileIndex) -> IntArray:
    """Return for how long devices worked in each iteration on a queue of earlier ones, ns.

    Code that launches ahead and waits in each tenth iteration has nine short iterations and a long
    one, in which nothing is slow. A queue has work of two iterations before or earlier; what an
    iteration launches for the next one does not count.
    """
    found = index.cached(iterations)
    if not len(found.start):
        return np.zeros(0, np.int64)
    queued = [_queued(index, found, chunk) for chunk in chunks(len(index.is_device_work))]
    begun, ended, iteration = np.concatenate([np.empty((3, 0), np.int64), *queued], axis=1)
    older = _time(found, begun, ended, iteration + 2)
    if not older.any():
        return older
    return np.where(older > 0, _time(found, begun, ended, iteration + 1), 0)


def _queued(index: ProfileIndex, found: Iterations, chunk: slice) -> IntArray:
    """Return the work of some activities that ended in later iterations than it was launched in.

    Its start and end, and the number of the iteration, as rows.
    """
    activities, calls = (index.profile.tables[name] for name in ("activities", "api_calls"))
    work = np.flatnonzero(index.is_device_work[chunk])
    begun, ended, correlation = (
        activities[name][chunk][work] for name in ("start_ns", "end_ns", "correlation_id")
    )
    begun, ended = clip_times(begun, ended)
    call = index.calls.rows(correlation)
    launched = np.where(call == MISSING, begun, values_at(calls["start_ns"], call))
    iteration = positions(found.start, launched, "right") - 1
    at = np.flatnonzero(ended > _begin(found, iteration + 1))
    return np.stack([begun[at], ended[at], iteration[at]])


def _begin(found: Iterations, number: IntArray) -> IntArray:
    """Return when iterations began; never for those behind the last one."""
    begins = np.append(found.start, np.iinfo(np.int64).max)
    return begins[np.minimum(number, len(found.start))]


def _time(found: Iterations, begun: IntArray, ended: IntArray, first: IntArray) -> IntArray:
    """Return for how long devices worked in each iteration, by work from its `first` one on."""
    later = _begin(found, first)
    at = np.flatnonzero(ended > later)
    busy = union(np.maximum(begun[at], later[at]), ended[at])
    return covered_between(*busy, found.start, np.maximum(found.end, found.start))
