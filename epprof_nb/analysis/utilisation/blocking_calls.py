"""API calls that block the host until a device has finished something."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.copies import is_pageable, is_synchronous
from epprof_nb.analysis.base.device_work import MEMCPY
from epprof_nb.arrays.ids import unique_values
from epprof_nb.arrays.intervals import covered_between, union

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray


def is_wait(index: ProfileIndex) -> BoolArray:
    """Return which API calls block the host until the device has finished something.

    These are synchronizing calls, synchronous copies, and copies to pageable memory, whose calls
    return when the copy is done, even if their name says asynchronous.
    """
    tables = index.profile.tables
    names = tables["api_calls"].names("name")
    of_name = [_blocks(name) for name in names.categories]
    waits = np.array([*of_name, False], np.bool_)[names.codes]
    copies = np.flatnonzero(index.kinds == MEMCPY)
    to_host = tables["activities"].names("copy_kind").equals("DtoH")[copies]
    copies = copies[to_host & is_pageable(index, copies)]
    copies = copies[is_synchronous(index, copies)]
    waits[index.calls.rows(tables["activities"]["correlation_id"][copies])] = True
    return waits


def _blocks(name: str) -> bool:
    return "Synchronize" in name or ("Memcpy" in name and "Async" not in name)


def host_wait(index: ProfileIndex, threads: IntArray, starts: IntArray, ends: IntArray) -> IntArray:
    """Return how long each thread was in a blocking API call between each start and end."""
    calls = index.profile.tables["api_calls"]
    waits = np.flatnonzero(index.cached(is_wait))
    result = np.zeros(len(threads), np.int64)
    wait_threads = calls["thread_id"][waits]
    for thread in unique_values(wait_threads):
        of_thread = waits[wait_threads == thread]
        blocked = union(calls["start_ns"][of_thread], calls["end_ns"][of_thread])
        at = np.flatnonzero(threads == thread)
        result[at] = covered_between(*blocked, starts[at], ends[at])
    return result
