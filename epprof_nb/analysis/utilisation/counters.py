"""Counters of each device over time: busy time, queued launches and bytes copied.

The timeline, the figures and the Chrome exporter use these definitions:

* A device is *busy* while it executes device work (`epprof_nb.analysis.base.device_work`); work
  that overlaps counts once.
* A launch is *queued* from its API call until its last activity ends, so the replay of a CUDA
  graph is one launch (`epprof_nb.analysis.base.device_activity.queued_launches`).

Each counter is downsampled to at most `POINTS` points without hiding extremes. A cumulative
counter (busy time, bytes) is exact at its points, so a rate between two of them is exact too. A
range counter (queued launches) has the minimum and maximum from each point to the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from epprof_nb.analysis.base.device_activity import busy_total, copies, queued_launches
from epprof_nb.analysis.base.device_work import MEMCPY
from epprof_nb.analysis.base.devices import device_name
from epprof_nb.analysis.base.missing_records import not_recorded, unrecorded_gaps
from epprof_nb.analysis.base.wall_time import recorded_span
from epprof_nb.arrays.ids import unique_values
from epprof_nb.arrays.intervals import covered_before

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

Window: TypeAlias = tuple[int, int]
"""First and last nanosecond."""

POINTS = 4096
"""Maximum number of points of a counter."""
MAX_UNKNOWN = 1000
"""Maximum number of intervals without records in the data of a view."""


@dataclass(frozen=True, slots=True)
class CumulativeCounter:
    """A counter that grows: exact at each time `t`, linear in between.

    Attributes
    ----------
    t
        int64, ns, ascending; the counter is 0 before the first and constant after the last.
    value
        int64, the sum since the start.
    """

    t: IntArray
    value: IntArray


@dataclass(frozen=True, slots=True)
class RangeCounter:
    """A counter that goes up and down: its minimum and maximum from each time `t` to the next.

    Attributes
    ----------
    t
        int64, ns, ascending; the counter is 0 before the first and constant after the last.
    low, high
        int32; equal if the counter did not change between two times.
    """

    t: IntArray
    low: npt.NDArray[np.int32]
    high: npt.NDArray[np.int32]


def busy_ns(
    index: ProfileIndex, device_id: int, window: Window | None = None, points: int = POINTS
) -> CumulativeCounter:
    """Return the time during which a device was busy.

    The counter is exact everywhere if the device has few busy intervals; otherwise it has
    `points` equidistant points. In a window it starts at 0.
    """
    starts, ends = index.busy(device_id)
    inside = slice(0, len(starts))
    if window is not None:
        begin = int(np.searchsorted(ends, window[0], "right"))
        inside = slice(begin, int(np.searchsorted(starts, window[1])))
    begins, stops = starts[inside], ends[inside]
    if not len(begins):
        return CumulativeCounter(begins, stops)
    low, high = window or (int(begins[0]), int(stops[-1]))
    if 2 * len(begins) > points:
        t = _equal_steps(max(int(begins[0]), low), min(int(stops[-1]), high), points)
        total = covered_before(starts, ends, t, index.cached(busy_total, device_id))
        return CumulativeCounter(t, total - total[0])
    t = np.clip(np.stack([begins, stops], axis=1).reshape(-1), low, high)
    length = np.diff(t, prepend=t[:1])
    length[::2] = 0
    return CumulativeCounter(t, np.cumsum(length))


def busy_shares(
    index: ProfileIndex, device_id: int, edges: npt.NDArray[Any]
) -> npt.NDArray[np.float64]:
    """Return the share of each bin during which a device was busy.

    Parameters
    ----------
    index
        Index of the profile.
    device_id
        The device.
    edges
        Array, shape ``(n + 1,)``: the edges of the bins, nanoseconds, ascending.

    Returns
    -------
    shares
        float64 array, shape ``(n,)``, 0 to 1: the share of the time that is known, see
        `epprof_nb.analysis.base.missing_records`, and in a window of a job the time in which the
        device's process was recorded. NaN for a bin without such time.
    """
    if (span := recorded_span(index.profile, device_id)) is not None:
        edges = np.clip(edges, *span)
    covered = covered_before(*index.busy(device_id), edges, index.cached(busy_total, device_id))
    unknown = covered_before(*index.cached(unrecorded_gaps, device_id), edges)
    known = np.diff(edges) - np.diff(unknown)
    busy = np.diff(covered)
    shares: npt.NDArray[np.float64] = np.full(len(busy), np.nan)
    np.divide(busy, known, out=shares, where=known > 0)
    return shares


def known_mean(shares: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    """Return the mean of the known values by column; NaN if there is none."""
    values = np.stack(shares)
    known = (~np.isnan(values)).sum(axis=0)
    mean: npt.NDArray[np.float64] = np.full(values.shape[1], np.nan)
    np.divide(np.nansum(values, axis=0), known, out=mean, where=known > 0)
    return mean


def bytes_copied(
    index: ProfileIndex, device_id: int, window: Window | None = None, points: int = POINTS
) -> CumulativeCounter:
    """Return the bytes that a device's copies moved, each copy at a constant rate.

    The counter is exact everywhere if there are few copies; otherwise it has `points`
    equidistant points. In a window it starts at 0.
    """
    start, end, size = index.cached(copies, device_id)
    if window is not None:
        low, high = window
        rows = np.flatnonzero(end[: np.searchsorted(start, high)] > low)
        start, end, size = start[rows], end[rows], size[rows]
        length = end - start
        start, end = np.maximum(start, low), np.minimum(end, high)
        size = np.rint(size * ((end - start) / length)).astype(np.int64)
    if not len(start):
        return CumulativeCounter(np.empty(0, np.int64), np.empty(0, np.int64))
    if 2 * len(start) <= points:
        edges = np.unique(np.concatenate([start, end]))
    else:
        edges = _equal_steps(int(start.min()), int(end.max()), points)
    return CumulativeCounter(edges, _moved_before(start, end, size, edges))


def _equal_steps(begin: int, end: int, points: int) -> IntArray:
    """Return at most `points` equidistant times from `begin` to `end`, without duplicates."""
    return np.unique(np.rint(np.linspace(begin, end, points)).astype(np.int64))


def _moved_before(start: IntArray, end: IntArray, size: IntArray, edges: IntArray) -> IntArray:
    """Return the bytes moved before each edge; the edges enclose all copies."""
    last = len(edges) - 2
    first_bin = np.minimum(np.searchsorted(edges, start, "right") - 1, last)
    last_bin = np.maximum(np.searchsorted(edges, end, "left") - 1, first_bin)
    bins = last + 1
    rate = size / (end - start)
    within = first_bin == last_bin
    moved = np.bincount(first_bin[within], size[within], bins).astype(np.float64)  # int64 if empty
    # A copy across edges has a part in its first bin, one in its last, and full bins in between.
    begin, stop, rate = first_bin[~within], last_bin[~within], rate[~within]
    moved += np.bincount(begin, rate * (edges[begin + 1] - start[~within]), bins)
    moved += np.bincount(stop, rate * (end[~within] - edges[stop]), bins)
    slope = np.bincount(begin + 1, rate, bins + 1) - np.bincount(stop, rate, bins + 1)
    # Rounding leaves small slopes where no copy is open: ignore them.
    is_open = np.cumsum(np.bincount(begin + 1, minlength=bins + 1) - np.bincount(
        stop, minlength=bins + 1))  # fmt: skip
    moved += np.where(is_open > 0, np.cumsum(slope), 0)[:bins] * np.diff(edges)
    total: IntArray = np.rint(np.concatenate([[0.0], np.cumsum(moved)])).astype(np.int64)
    return total


def queued(
    index: ProfileIndex, device_id: int, window: Window | None = None, points: int = POINTS
) -> RangeCounter:
    """Return the number of queued launches of a device; see `queued_launches`."""
    t, level = index.cached(queued_launches, device_id)
    if not len(t):
        return RangeCounter(t, level, level)
    # Without a window, the counter ends when all launches are done.
    low_end, high_end = window or (int(t[0]) - 1, int(t[-1]) + 1)
    first, last = np.searchsorted(t, (low_end, high_end), "right").tolist()
    if last - first < points:
        initial = level[first - 1] if first else 0
        t, level = np.insert(t[first:last], 0, low_end), np.insert(level[first:last], 0, initial)
        return RangeCounter(t, level, level)
    edges = _equal_steps(low_end, high_end, points)
    # A change at an edge belongs to the interval that begins there.
    at = np.searchsorted(t, edges)
    before = np.where(at > 0, level[at - 1], 0)
    low, high = before[:-1].copy(), before[:-1].copy()
    filled = np.flatnonzero(np.diff(at))
    begin, inside = at[filled], level[: at[-1]]
    low[filled] = np.minimum.reduceat(inside, begin)
    high[filled] = np.maximum.reduceat(inside, begin)
    # An interval starts with the level before it, unless the level changes at its edge.
    inherits = filled[t[begin] != edges[filled]]
    low[inherits] = np.minimum(low[inherits], before[inherits])
    high[inherits] = np.maximum(high[inherits], before[inherits])
    return RangeCounter(edges, np.append(low, before[-1]), np.append(high, before[-1]))


def tracks(index: ProfileIndex) -> list[dict[str, Any]]:
    """Return which counters the profile has, without computing them.

    Returns
    -------
    tracks
        One ``{"what", "device", "name"}`` per counter, by device: ``what`` is ``"busy"``,
        ``"launches"`` or ``"copied"``. A device without copies has no counter of copies. If records
        are missing, ``"unknown"`` of the first counter has the longest intervals without records,
        as starts and ends in ns, ascending.
    """
    activities = index.profile.tables["activities"]
    rows = np.flatnonzero(index.kinds == MEMCPY)
    rows = rows[activities["bytes"][rows] > 0]
    with_copies = set(unique_values(activities["device_id"][rows]))
    return [
        {"what": what, "device": device, "name": device_name(index.profile.info, device)}
        | (_unknown(index, device) if what == "busy" else {})
        for device in index.device_ids
        for what in ("busy", "launches", "copied")
        if device >= 0 and (what != "copied" or device in with_copies)
    ]


def _unknown(index: ProfileIndex, device_id: int) -> dict[str, list[list[int]]]:
    times = np.stack(index.cached(not_recorded, device_id), axis=1)
    longest = np.argsort(times[:, 0] - times[:, 1], kind="stable")[:MAX_UNKNOWN]
    return {"unknown": times[np.sort(longest)].tolist()} if len(times) else {}


def columns(
    index: ProfileIndex, window: Window | None = None, points: int = POINTS
) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of the counters that `tracks` lists.

    Parameters
    ----------
    index
        Index of the profile.
    window
        First and last nanosecond; None for the whole profile. Cumulative counters start at 0.
    points
        Maximum number of points of a counter.

    Returns
    -------
    columns
        ``counter.<position in tracks>.t`` (ns), and ``value`` (ns or bytes) of a cumulative
        counter, ``low`` and ``high`` of a range counter.
    """
    result: dict[str, npt.NDArray[Any]] = {}
    for position, track in enumerate(index.cached(tracks)):
        key, arguments = f"counter.{position}", (index, track["device"], window, points)
        if track["what"] == "launches":
            level = queued(*arguments)
            result |= {f"{key}.t": level.t, f"{key}.low": level.low, f"{key}.high": level.high}
        else:
            total = busy_ns(*arguments) if track["what"] == "busy" else bytes_copied(*arguments)
            result |= {f"{key}.t": total.t, f"{key}.value": total.value}
    return result
