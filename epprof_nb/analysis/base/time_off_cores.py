"""Time before samples in which their thread did not use a core: it waited for one, or did not."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.processor_use import load_of
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.arrays.ids import unique_values
from epprof_nb.arrays.intervals import covered_between, union
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Collection

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table


class TimeOffCores(NamedTuple):
    """Parts of the interval before each sample, in ns, as far as they are known (int64 arrays).

    In ``blocked``, the thread waited for something else than a core, which it did in ``queued``;
    recorded waits are not in it. ``used`` is its processor time since the sample of the thread
    before.
    """

    blocked: IntArray
    queued: IntArray
    used: IntArray


def time_off_cores(index: ProfileIndex) -> TimeOffCores:
    """Return how long the thread of each sample was off the cores.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import index_of
    >>> from epprof_nb.testing import synthetic_profile
    >>> time_off_cores(index_of(synthetic_profile())).blocked.tolist()
    []
    """
    samples, waits = (index.profile.tables[name] for name in ("host_samples", "thread_waits"))
    blocked, queued, used = (np.zeros(len(samples), np.int64) for _ in range(3))
    for thread in unique_values(samples["thread_id"]):
        rows = np.flatnonzero(
            (samples["thread_id"] == thread) & (samples["processor_ns"] != MISSING)
        )
        if len(rows) < 2:
            continue
        lasted, computed = (np.diff(samples[name][rows]) for name in ("start_ns", "processor_ns"))
        waited, rows = waits_for_cores(samples, rows), rows[1:]
        # A thread may do anything while it is not sampled, as in a call of the device's API.
        sampled = np.minimum(lasted, samples["interval_ns"][rows])
        now, is_own = samples["start_ns"][rows], waits["thread_id"] == thread
        recorded = union(waits["start_ns"][is_own], waits["end_ns"][is_own])
        known = covered_between(*recorded, now - sampled, now)
        off = lasted - computed - waited - (lasted - sampled) - known
        blocked[rows] = np.clip(off, 0, sampled)
        queued[rows] = np.clip(waited, 0, sampled - blocked[rows])
        used[rows] = np.maximum(computed, 0)
    return TimeOffCores(blocked, queued, used)


def used_by_other_threads(index: ProfileIndex, threads: Collection[int]) -> float:
    """Return the processor time of the process without that of some sampled threads, ns.

    It is 0 if that is unknown.
    """
    info, samples = index.profile.info, index.profile.tables["host_samples"]
    is_theirs = np.isin(samples["thread_id"], list(threads))
    theirs = int(index.cached(time_off_cores).used.sum(where=is_theirs))
    return max(load_of(info).get("own_cores", 0.0) * wall_of(index.profile) - theirs, 0.0)


def waits_for_cores(samples: Table, rows: IntArray) -> IntArray:
    """Return how long a thread waited for a core before each of its samples but the first.

    A wait is known once it has ended. What does not fit into the time since the last sample was
    before that. `rows` are those of the samples of one thread, in order.
    """
    time, used, waited = (
        np.diff(samples[name][rows]) for name in ("start_ns", "processor_ns", "core_wait_ns")
    )
    if (samples["core_wait_ns"][rows] == MISSING).any():
        return np.zeros_like(time)
    over = np.cumsum((waited + used - time)[::-1])[::-1]
    before = over - np.minimum(np.minimum.accumulate(over[::-1]), 0)[::-1]
    in_each: IntArray = waited + np.append(before[1:], 0) - before
    return in_each
