"""What is counted over time for each device: busy time, outstanding launches, bytes copied.

Each counter is a pure function of the tables, and small whatever the size of the profile: at most
so many points, from which nothing that a point stands for can be misread. A sum (busy time, bytes)
is exact at its points, so a rate between two of them is exact too. A level (outstanding launches)
comes as the least and the most of each stretch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.attribute import device_work
from epprof_nb.analysis.idle import busy_intervals
from epprof_nb.id_lookup import find
from epprof_nb.schema import MISSING
from epprof_nb.views.layout import device_names

if TYPE_CHECKING:
    from epprof_nb.profiles import Profile
    from epprof_nb.views.prepared import Prepared

Ints = npt.NDArray[np.int64]

POINTS = 4096
"""Points of a counter at most."""
_CHUNK = 64
"""Stretches that are counted at once: their events fit the processor's caches."""


@dataclass(frozen=True, slots=True)
class Sum:
    """What grows over time: `value` is exact at each time `t`, and a straight line in between.

    Attributes
    ----------
    t
        int64, ns, ascending; the sum is 0 before the first and stays after the last.
    value
        int64, the sum since the start.
    """

    t: Ints
    value: Ints


@dataclass(frozen=True, slots=True)
class Level:
    """What goes up and down by steps: its least and most from each time `t` to the next.

    Attributes
    ----------
    t
        int64, ns, ascending; the level is 0 before the first, and stays after the last.
    low, high
        int64; equal where the level did not change within the stretch.
    """

    t: Ints
    low: Ints
    high: Ints


def busy(profile: Profile, device: int, points: int = POINTS) -> Sum:
    """Return the time for which a device was busy.

    Exact everywhere where it was busy in few stretches, and at `points` equal steps where in many.
    """
    starts, ends = busy_intervals(profile, device)
    t = np.stack([starts, ends], axis=1).reshape(-1)
    length = np.stack([np.zeros_like(starts), ends - starts], axis=1).reshape(-1)
    total = np.cumsum(length)
    if len(t) > points:
        steps = _equal_steps(int(t[0]), int(t[-1]), points)
        total = np.rint(np.interp(steps, t, total)).astype(np.int64)
        t = steps
    return Sum(t, total)


def copied(profile: Profile, device: int, points: int = POINTS) -> Sum:
    """Return the bytes that a device's copies moved, each copy at a steady rate.

    Exact everywhere where there are few copies, and at `points` equal steps where there are many.
    A copy that takes no time counts as one nanosecond.
    """
    activities = profile.tables["activities"]
    chosen = activities.names("kind").equals("memcpy") & (activities["device_id"] == device)
    rows = np.flatnonzero(chosen & (activities["bytes"] > 0))
    if not len(rows):
        return Sum(np.empty(0, np.int64), np.empty(0, np.int64))
    start, size = activities["start_ns"][rows], activities["bytes"][rows]
    end = np.maximum(activities["end_ns"][rows], start + 1)
    if 2 * len(rows) <= points:
        edges = np.unique(np.concatenate([start, end]))
    else:
        edges = _equal_steps(int(start.min()), int(end.max()), points)
    return Sum(edges, _moved(start, end, size, edges))


def _equal_steps(begin: int, end: int, points: int) -> Ints:
    """Return at most `points` times from `begin` to `end`, fewer where they would fall together."""
    return np.unique(np.rint(np.linspace(begin, end, points)).astype(np.int64))


def _moved(start: Ints, end: Ints, size: Ints, edges: Ints) -> Ints:
    """Return the bytes moved until each edge; the edges enclose all copies."""
    last = len(edges) - 2
    first_bin = np.minimum(np.searchsorted(edges, start, "right") - 1, last)
    last_bin = np.maximum(np.searchsorted(edges, end, "left") - 1, first_bin)
    bins = last + 1
    rate = size / (end - start)
    within = first_bin == last_bin
    moved = np.bincount(first_bin[within], size[within], bins)
    # A copy across edges: what lies in its first bin, in its last, and in those between.
    begin, stop, rate = first_bin[~within], last_bin[~within], rate[~within]
    moved += np.bincount(begin, rate * (edges[begin + 1] - start[~within]), bins)
    moved += np.bincount(stop, rate * (end[~within] - edges[stop]), bins)
    slope = np.bincount(begin + 1, rate, bins + 1) - np.bincount(stop, rate, bins + 1)
    # Where nothing is open, what rounding left of the slopes is nothing.
    is_open = np.cumsum(np.bincount(begin + 1, minlength=bins + 1) - np.bincount(
        stop, minlength=bins + 1))  # fmt: skip
    moved += np.where(is_open > 0, np.cumsum(slope), 0)[:bins] * np.diff(edges)
    total: Ints = np.rint(np.concatenate([[0.0], np.cumsum(moved)])).astype(np.int64)
    return total


def outstanding(profile: Profile, device: int, points: int = POINTS) -> Level:
    """Return how many launches a device had been given and not yet finished.

    A launch counts from its API call's start until the last of what it launched has ended: the
    replay of a CUDA graph is one. An activity whose API call was not recorded counts while it
    runs.
    """
    given, done = _launches(profile, device)
    if not len(given):
        return _steps(given, done)
    # Nearly in order as they are: a sort that merges runs is the fastest.
    given.sort(kind="stable")
    done.sort(kind="stable")
    if 2 * len(given) <= points:
        return _steps(given, done)
    edges = _equal_steps(int(given[0]), int(done[-1]) + 1, points)
    # Events at an edge belong to the stretch that begins there.
    ups, downs = np.searchsorted(given, edges), np.searchsorted(done, edges)
    before = ups - downs
    low, high = before[:-1].copy(), before[:-1].copy()
    for first in range(0, len(low), _CHUNK):
        last = min(first + _CHUNK, len(low))
        part = _steps(given[ups[first] : ups[last]], done[downs[first] : downs[last]])
        if not len(part.t):
            continue
        level = part.low + before[first]
        at = np.searchsorted(part.t, edges[first:last])
        filled = np.flatnonzero(np.diff(np.append(at, len(level))))
        low[first + filled] = np.minimum.reduceat(level, at[filled])
        high[first + filled] = np.maximum.reduceat(level, at[filled])
        # A stretch begins with the level that it inherits, unless a change is due at its edge.
        inherits = np.ones(last - first, np.bool_)
        inherits[filled] = part.t[at[filled]] != edges[first + filled]
        held = first + np.flatnonzero(inherits)
        low[held] = np.minimum(low[held], before[held])
        high[held] = np.maximum(high[held], before[held])
    # After the last edge everything is done.
    return Level(edges, np.append(low, 0), np.append(high, 0))


def _steps(given: Ints, done: Ints) -> Level:
    """Return the level after each time at which something was given or done."""
    # The lowest bit tells which: one sort does for both.
    events = np.concatenate([given * 2 + 1, done * 2])
    events.sort(kind="stable")
    t = events >> 1
    level = np.cumsum((events & 1) * 2 - 1)
    last = np.ones(len(t), np.bool_)
    last[:-1] = t[1:] != t[:-1]
    level = level[last]
    return Level(t[last], level, level)


def _launches(profile: Profile, device: int) -> tuple[Ints, Ints]:
    """Return when each launch was given and when the last of its activities ended, unordered."""
    activities, calls = profile.tables["activities"], profile.tables["api_calls"]
    rows = np.flatnonzero(device_work(activities) & (activities["device_id"] == device))
    start, correlation = activities["start_ns"][rows], activities["correlation_id"][rows]
    end = np.maximum(activities["end_ns"][rows], start)
    call = find(calls["correlation_id"], correlation)
    call[correlation == MISSING] = -1
    none = np.iinfo(np.int64).min
    last = np.full(len(calls) + 1, none)
    np.maximum.at(last, call, end)
    launched = np.flatnonzero(last[:-1] != none)
    alone = call == -1
    # No launch ends before it was given, whatever the clocks say.
    given, done = calls["start_ns"][launched], last[launched]
    return (
        np.concatenate([np.minimum(given, done), start[alone]]),
        np.concatenate([done, end[alone]]),
    )


def tracks(prepared: Prepared) -> list[dict[str, Any]]:
    """Return which counters there are, found at little cost.

    Returns
    -------
    tracks
        One ``{"what", "device", "name"}`` a counter, by device: ``what`` is ``"busy"``,
        ``"launches"`` or ``"copied"``. A device that copied nothing has no counter of copies.
    """
    activities = prepared.profile.tables["activities"]
    copies = activities.names("kind").equals("memcpy") & (activities["bytes"] > 0)
    copying = set(np.unique(activities["device_id"][copies]).tolist())
    names = device_names(prepared.profile.info)
    devices = sorted({lane.device for lane in prepared.layout.lanes if lane.device >= 0})
    return [
        {"what": what, "device": device, "name": names.get(device, f"device {device}")}
        for device in devices
        for what in ("busy", "launches", "copied")
        if what != "copied" or device in copying
    ]


def columns(prepared: Prepared, points: int = POINTS) -> dict[str, Ints]:
    """Return the columns of the counters that `tracks` lists.

    Parameters
    ----------
    prepared
        The profile.
    points
        Points of a counter at most.

    Returns
    -------
    columns
        ``counter.<position in tracks>.t`` (ns), and ``value`` (ns or bytes) of a sum, ``low`` and
        ``high`` of a level.
    """
    found: dict[str, Ints] = {}
    for position, track in enumerate(tracks(prepared)):
        key, of = f"counter.{position}", (prepared.profile, track["device"], points)
        if track["what"] == "launches":
            level = outstanding(*of)
            found |= {f"{key}.t": level.t, f"{key}.low": level.low, f"{key}.high": level.high}
        else:
            total = busy(*of) if track["what"] == "busy" else copied(*of)
            found |= {f"{key}.t": total.t, f"{key}.value": total.value}
    return found
