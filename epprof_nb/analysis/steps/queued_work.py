"""Queued work: how long iterations lasted while devices did what earlier ones had launched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.steps.iterations import iterations
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
    activities, calls = (index.profile.tables[name] for name in ("activities", "api_calls"))
    work = np.flatnonzero(index.is_device_work)
    if not len(work) or not len(found.start):
        return np.zeros(len(found.start), np.int64)
    begun, ended = clip_times(activities["start_ns"][work], activities["end_ns"][work])
    call = index.calls.rows(activities["correlation_id"][work])
    launched = np.where(call == MISSING, begun, values_at(calls["start_ns"], call))
    iteration = positions(found.start, launched, "right") - 1
    earlier, older = (_time(found, begun, ended, iteration + back) for back in (1, 2))
    return np.where(older > 0, earlier, 0)


def _time(found: Iterations, begun: IntArray, ended: IntArray, first: IntArray) -> IntArray:
    """Return for how long devices worked in each iteration, by work from its `first` one on."""
    later = np.append(found.start, np.iinfo(np.int64).max)[np.minimum(first, len(found.start))]
    at = np.flatnonzero(ended > later)
    busy = union(np.maximum(begun[at], later[at]), ended[at])
    return covered_between(*busy, found.start, np.maximum(found.end, found.start))
