"""Findings on memory, events and streams that the driver makes and frees again and again."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.lines_of_work import Places
from epprof_nb.analysis.critical_path.changed_durations import Removed
from epprof_nb.analysis.critical_path.saving_without_work import saving_without
from epprof_nb.analysis.findings.finding import Finding, launcher_name, op_id_of, stack_of
from epprof_nb.analysis.findings.rules.memory.growing_memory import growth
from epprof_nb.analysis.steps.iterations import iterations
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.data.repeats import repeat_at
from epprof_nb.util.format import duration, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

MIN_ROUNDS = 2
"""Minimum number of times that something is made again after something was freed."""
_MIN_ITERATIONS = 10
_STEADY_SHARE = 0.5
"""Without frees: minimum share of the later iterations in which something is made."""
_AROUND = 1.5
"""Maximum ratio of the time of the code with these calls to the time of the calls."""


class _Resource(NamedTuple):
    """Something that the driver makes and frees: patterns of the names of its calls, and words."""

    made: str
    freed: str
    says_made: str
    says_freed: str
    remedy: str


_DEVICE_MEMORY = _Resource(
    r"Malloc|MemAlloc|MemCreate|MemMap|MemSetAccess|MemAddressReserve",
    r"MemFree|cudaFree|hostFree|MemUnmap|MemRelease|MemAddressFree",
    "Device memory is allocated by the driver",
    "freed",
    "Keep the memory: do not return it to the driver in a loop (`torch.cuda.empty_cache()`, "
    "`free_all_blocks()`), and allocate from a pool (PyTorch's, CuPy's or RMM's), which uses it "
    "again.",
)
_RESOURCES = (
    # The first that fits: cuMemAllocHost is not device memory.
    _Resource(
        r"MallocHost|MemAllocHost|HostAlloc|HostRegister",
        r"FreeHost|HostUnregister",
        "Pinned host memory is allocated or registered",
        "released",
        "Allocate or register pinned memory once, before the loop, and copy into it.",
    ),
    _DEVICE_MEMORY,
    _Resource(
        r"EventCreate|StreamCreate",
        r"EventDestroy|StreamDestroy",
        "Events and streams are created",
        "destroyed",
        "Create events and streams once, before the loop, and reuse them.",
    ),
)

_ON_HOST = {"hostMalloc", "hostFree"}
_NO_POOL = (
    "Allocate the arrays of the host device once, before the loop, and write into them: it has no "
    "pool that would use memory again."
)
_RELEASE = "Release the memory that grows in each turn: then the pool uses what it has again."


def driver_allocations(index: ProfileIndex) -> Iterator[Finding]:
    """Yield a finding on each kind of resource that the driver makes in the steady state."""
    calls = index.profile.tables["api_calls"]
    names = calls.names("name")
    # The number of the resource, + for calls that make it and - for calls that free it.
    of_name = np.array([*map(_kind_of, names.categories), 0], np.int64)
    kind = of_name[names.codes]
    kind[calls["captured"] != 0] = 0
    for number, resource in enumerate(_RESOURCES, 1):
        rows = np.flatnonzero(np.abs(kind) == number)
        every = rows[np.argsort(calls["start_ns"][rows], kind="stable")]
        rows = _steady(index, every, kind[every] > 0)
        if len(rows):
            yield _finding(index, resource, rows, kind[rows] > 0, len(every))


def _kind_of(name: str) -> int:
    for number, resource in enumerate(_RESOURCES, 1):
        if re.search(resource.made, name):
            return number
        if re.search(resource.freed, name):
            return -number
    return 0


def _steady(index: ProfileIndex, rows: IntArray, is_made: BoolArray) -> IntArray:
    """Return the calls of the steady state: what a first pass makes is needed."""
    again = np.flatnonzero(is_made[1:] & ~is_made[:-1]) + 1
    if len(again) >= MIN_ROUNDS:
        return rows[int(np.argmin(is_made)) :]
    found = index.cached(iterations)
    n = len(found.start)
    if n < _MIN_ITERATIONS:
        return rows[:0]
    number = repeat_at(found.start, found.end, index.profile.tables["api_calls"]["start_ns"][rows])
    is_late = number >= n // 2
    share = len(np.unique(number[is_late])) / (n - n // 2)
    return rows[is_late] if share >= _STEADY_SHARE else rows[:0]


def _finding(
    index: ProfileIndex, resource: _Resource, rows: IntArray, is_made: BoolArray, count: int
) -> Finding:
    calls = index.profile.tables["api_calls"]
    starts, ends = calls["start_ns"][rows], calls["end_ns"][rows]
    parts = [
        _part(index, rows[of_part], words)
        for of_part, words in ((is_made, resource.says_made), (~is_made, resource.says_freed))
        if of_part.any()
    ]
    remedy = resource.remedy
    if {*calls.names("name").take(rows).to_list()} <= _ON_HOST:
        remedy = _NO_POOL
    elif is_made.all() and resource is _DEVICE_MEMORY and index.cached(growth) is not None:
        remedy = _RELEASE
    # Code that frees makes it necessary to allocate again.
    text, row = " and ".join(part for part, _ in parts), parts[-1][1]
    removed = Removed(thread=calls["thread_id"][rows], start=starts, end=ends)
    gain = saving_without(index, removed)
    return Finding(
        f"{text}, again and again{_earlier(count - len(rows))}.",
        gain,
        int(calls["start_ns"][row]),
        int(calls["end_ns"][row]),
        kind="driver allocation",
        remedy=remedy,
        gain_low_ns=gain // 2,
        # The code of the libraries around the calls takes time, too, which is not recorded.
        gain_high_ns=int(_AROUND * gain),
        op_id=op_id_of(index, int(index.call_op[row])),
        stack_id=stack_of(index, "api_calls", row),
        table="api_calls",
        rows=partial(np.sort, rows),
        spans=lambda: (starts, ends),
    )


def _earlier(calls: int) -> str:
    return f"; {plural(calls, 'earlier call')} of a first pass not counted" if calls else ""


def _part(index: ProfileIndex, rows: IntArray, words: str) -> tuple[str, int]:
    """Return a text on calls that make or free, and the longest call of their main place."""
    calls, places = index.profile.tables["api_calls"], index.cached(Places)
    time = np.maximum(calls["end_ns"][rows] - calls["start_ns"][rows], 0)
    place = places.of_calls(rows)
    of_top = place == int(sum_by_group(place, time, places.count).argmax())
    longest = int(rows[of_top][int(time[of_top].argmax())])
    (call,) = calls.names("name").take(np.array([longest])).to_list()
    where = launcher_name(index, stack_of(index, "api_calls", longest), int(index.call_op[longest]))
    return (
        f"{words} {plural(len(rows), 'time')} ({duration(int(time.sum()))} in `{call}`"
        f"{f' of {where}' if where else ''})"
    ), longest
