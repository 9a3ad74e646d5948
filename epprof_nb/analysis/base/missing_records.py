"""Launches without records, and the time in which their work may have run.

Records are dropped beyond ``max_records``, or by CUPTI. A device without a record at some time was
idle only if no such work can have run then. Otherwise this time is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epprof_nb.analysis.base.wall_time import recorded_span
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.ids import contains
from epprof_nb.arrays.intervals import complement, covered_before, union
from epprof_nb.arrays.positions import positions
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.names import CategoryColumn
    from epprof_nb.data.table import Table

    Intervals = tuple[IntArray, IntArray]

_LAUNCHES = {"kernel": "Launch", "memcpy": "Memcpy", "memset": "Memset"}
"""Activity kind to a part of the names of the driver calls that launch it."""
_OTHER_LAUNCHES = ("Graph", "HostFunc")
"""Parts of the names of calls that launch a graph, or a host function, which has no record."""
_MIN_UNKNOWN = 0.02
"""Minimum unknown share of a device's time that could change a finding."""


class Counts(NamedTuple):
    """Number of records in a profile, without and with the missing ones."""

    recorded: int
    all: int


def record_counts(info: Mapping[str, Any]) -> Counts | None:
    """Return the number of records, without and with the missing ones; None if not counted.

    Examples
    --------
    >>> record_counts({"recorded": {"launched": {"kernel": 100}, "lost": {"kernel": 97}}})
    Counts(recorded=3, all=100)
    """
    recorded = info.get("recorded")
    if not isinstance(recorded, Mapping):
        return None
    launched, lost = total_count(recorded.get("launched")), total_count(recorded.get("lost"))
    return Counts(max(launched - lost, 0), max(launched, lost)) if launched or lost else None


def statements_lost(info: Mapping[str, Any]) -> int:
    """Return the number of executions of statements in recursive calls that were not recorded.

    Examples
    --------
    >>> statements_lost({"recorded": {"statements_lost": 7}}), statements_lost({})
    (7, 0)
    """
    recorded = info.get("recorded")
    lost = recorded.get("statements_lost") if isinstance(recorded, Mapping) else None
    return max(total_count(lost), 0)


def total_count(counts: object) -> int:
    """Return the sum of numbers by kind; a plain number is its own sum."""
    if isinstance(counts, Mapping):
        return sum(total_count(count) for count in counts.values())
    return int(counts) if isinstance(counts, int | float) else 0


def missing_launches(activities: Table, calls: Table, *, dropped: bool) -> dict[str, IntArray]:
    """Return the API calls that launched an activity whose record is missing, by kind.

    Parameters
    ----------
    activities, calls
        Tables of a recording.
    dropped
        Whether a recorder dropped records.

    Returns
    -------
    rows
        Kind of activity to rows of `calls`. Launches of graphs are left out, because their number
        of nodes is unknown.
    """
    launching = (calls["return_value"] == 0) & ~calls["captured"]
    # A runtime call and its driver call are the same launch: only the driver call is counted.
    domain = calls.names("domain")
    is_runtime = domain.equals("runtime")
    if dropped:
        # With external correlation, CUPTI records no driver calls inside runtime calls.
        is_runtime &= contains(calls["correlation_id"][~is_runtime], calls["correlation_id"])
    launching &= ~is_runtime
    if not dropped:
        # The host device counts dropped records itself. Without any, a call without an activity
        # is a command that was skipped because an earlier one failed.
        launching &= ~domain.equals("host")
    names = calls.names("name")
    found = {}
    for kind, part in _LAUNCHES.items():
        rows = np.flatnonzero(launching & _is_named(names, part, _OTHER_LAUNCHES))
        correlations = calls["correlation_id"][rows]
        found[kind] = rows[~contains(activities["correlation_id"], correlations)]
    return found


def _is_named(names: CategoryColumn, part: str, other: tuple[str, ...] = ()) -> BoolArray:
    """Return which names contain a part and none of the others."""
    of_name = [part in name and not any(o in name for o in other) for name in names.categories]
    return np.array([*of_name, False], np.bool_)[names.codes]


def launches_without_record(index: ProfileIndex) -> dict[str, IntArray]:
    """Return `missing_launches` of a profile; empty if no record is missing.

    If records were dropped, launches of graphs without any recorded node are included.
    """
    recorded = index.profile.info.get("recorded")
    if not isinstance(recorded, Mapping):
        return {}
    dropped = total_count(recorded.get("dropped")) > 0
    if not dropped and not total_count(recorded.get("lost")):
        return {}
    activities, calls = (index.profile.tables[name] for name in ("activities", "api_calls"))
    found = missing_launches(activities, calls, dropped=dropped)
    if dropped:
        is_graph = _is_named(calls.names("name"), "GraphLaunch") & (calls["return_value"] == 0)
        rows = np.flatnonzero(is_graph)
        launched = contains(activities["correlation_id"], calls["correlation_id"][rows])
        found["graph_launch"] = rows[~launched]
    return found


def unrecorded(index: ProfileIndex) -> Intervals:
    """Return when unrecorded work may have run, for `ProfileIndex.cached`.

    Such work may have run from its launch until the next recorded activity of the same thread, else
    until the end.

    Returns
    -------
    starts, ends
        int64 arrays as `union` returns them, nanoseconds; empty if no record is missing.
    """
    missing = index.cached(launches_without_record)
    none = np.empty(0, np.int64)
    if not missing:
        return none, none
    activities, calls = (index.profile.tables[name] for name in ("activities", "api_calls"))
    rows = np.concatenate(list(missing.values()))
    starts, ends = calls["start_ns"][rows], _next_start(index, rows)
    # Without records of the calls, or with graphs, work may be missing until the end.
    if not len(rows) or (activities["graph_id"] != MISSING).any():
        last = activities["end_ns"].max(initial=0)
        starts, ends = np.append(starts, last), np.append(ends, _end_of(index))
    return union(starts, ends)


def _end_of(index: ProfileIndex) -> int:
    """Return the end of a profile, ns."""
    tables = index.profile.tables
    last = (int(tables[name]["end_ns"].max(initial=0)) for name in ("activities", "api_calls"))
    return max(index.profile.wall_ns, *last)


def _next_start(index: ProfileIndex, rows: IntArray) -> IntArray:
    """Return when the thread of each API call next started a recorded activity, ns."""
    calls = index.profile.tables["api_calls"]
    first = index.cached(first_starts)
    is_known = first < np.iinfo(np.int64).max
    ends = np.full(len(rows), _end_of(index), np.int64)
    for thread in np.unique(calls["thread_id"][rows]).tolist():
        known = np.flatnonzero(is_known & (calls["thread_id"] == thread))
        known = known[np.argsort(calls["start_ns"][known], kind="stable")]
        of_thread = np.flatnonzero(calls["thread_id"][rows] == thread)
        start = calls["start_ns"][rows[of_thread]]
        at = positions(calls["start_ns"][known], start, "right")
        has_next = at < len(known)
        ends[of_thread[has_next]] = first[known[at[has_next]]]
    return ends


def first_starts(index: ProfileIndex) -> IntArray:
    """Return when the first activity of each API call started; the largest int64 for none."""
    activities = index.profile.tables["activities"]
    first = np.full(len(index.profile.tables["api_calls"]) + 1, np.iinfo(np.int64).max)
    for chunk in chunks(len(activities)):
        rows = np.flatnonzero(index.is_device_work[chunk])
        call = index.calls.rows(activities["correlation_id"][chunk][rows])
        np.minimum.at(first, call, activities["start_ns"][chunk][rows])
    return first[:-1]


def is_unrecorded(index: ProfileIndex, starts: IntArray, ends: IntArray) -> BoolArray:
    """Return in which intervals unrecorded work may have run."""
    unknown = index.cached(unrecorded)
    if not len(unknown[0]):
        return np.zeros(len(starts), np.bool_)
    before, until = (covered_before(*unknown, times) for times in (starts, ends))
    mask: BoolArray = until > before
    return mask


def unrecorded_gaps(index: ProfileIndex, device: int | None = None) -> Intervals:
    """Return the intervals without recorded work in which a device may have been busy.

    Parameters
    ----------
    index
        Index of the profile.
    device
        The device; None for intervals in which no device has recorded work.

    Returns
    -------
    starts, ends
        int64 arrays as `union` returns them, nanoseconds.
    """
    if not len(index.cached(unrecorded)[0]):
        return index.cached(unrecorded)
    starts, ends = index.busy(device)
    begin = min(0, int(starts.min(initial=0)))
    starts, ends = complement(starts, ends, begin, _end_of(index))
    is_unknown = is_unrecorded(index, starts, ends)
    return starts[is_unknown], ends[is_unknown]


def not_recorded(index: ProfileIndex, device: int) -> Intervals:
    """Return the intervals in which a device was not recorded: it is neither busy nor idle.

    In a window of a job, these are also the times before the begin and after the end of the
    device's process. Parameters and result as in `unrecorded_gaps`.
    """
    gaps = index.cached(unrecorded_gaps, device)
    span = recorded_span(index.profile, device)
    if span is None:
        return gaps
    begin, end = (np.array([time], np.int64) for time in span)
    outside = complement(begin, end, 0, _end_of(index))
    return union(*map(np.concatenate, zip(gaps, outside, strict=True)))


def busy_within(
    index: ProfileIndex, starts: IntArray, ends: IntArray
) -> tuple[IntArray, BoolArray]:
    """Return how long any device was recorded as busy in each time range, ns.

    The second array is a mask of the ranges in which unrecorded work may have run.
    """
    before, until = (covered_before(*index.busy(), times) for times in (starts, ends))
    gaps = index.cached(unrecorded_gaps)
    unknown = covered_before(*gaps, ends) - covered_before(*gaps, starts)
    return until - before, unknown > 0


def lacks_records(index: ProfileIndex) -> bool:
    """Return whether missing records could change a finding or a critical path.

    Findings on less than `_MIN_UNKNOWN` of the time would not be shown.
    """
    devices: list[int | None] = [*index.device_ids] or [None]
    gaps = [index.cached(unrecorded_gaps, device) for device in devices]
    unknown = max(int((ends - starts).sum()) for starts, ends in gaps)
    return unknown > 0 and unknown >= _MIN_UNKNOWN * _end_of(index)
