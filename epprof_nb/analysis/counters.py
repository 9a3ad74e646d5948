"""What is counted over time for each device: busy time, outstanding launches, bytes copied.

Each counter is a pure function of the tables, and small whatever the size of the profile: at most
so many points, from which nothing that a point stands for can be misread. A sum (busy time, bytes)
is exact at its points, so a rate between two of them is exact too. A level (outstanding launches)
comes as the least and the most of each stretch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.device_work import MEMCPY
from epprof_nb.analysis.devices import device_names
from epprof_nb.arrays.ids import unique_values

if TYPE_CHECKING:
    from epprof_nb.analysis.device_activity import Counted
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.views.view_model import Prepared

Window: TypeAlias = tuple[int, int]
"""First and last nanosecond."""

POINTS = 4096
"""Points of a counter at most."""


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

    t: IntArray
    value: IntArray


@dataclass(frozen=True, slots=True)
class Level:
    """What goes up and down by steps: its least and most from each time `t` to the next.

    Attributes
    ----------
    t
        int64, ns, ascending; the level is 0 before the first, and stays after the last.
    low, high
        int32; equal where the level did not change within the stretch.
    """

    t: IntArray
    low: npt.NDArray[np.int32]
    high: npt.NDArray[np.int32]


def busy(counted: Counted, window: Window | None = None, points: int = POINTS) -> Sum:
    """Return the time for which a device was busy.

    Exact everywhere where it was busy in few stretches, and at `points` equal steps where in many.
    In a window the sum begins with it.
    """
    starts, ends = counted.busy
    inside = slice(0, len(starts))
    if window is not None:
        begin = int(np.searchsorted(ends, window[0], "right"))
        inside = slice(begin, int(np.searchsorted(starts, window[1])))
    starts, ends = starts[inside], ends[inside]
    if not len(starts):
        return Sum(starts, ends)
    low, high = window or (int(starts[0]), int(ends[-1]))
    if 2 * len(starts) > points:
        t = _equal_steps(max(int(starts[0]), low), min(int(ends[-1]), high), points)
        at = np.maximum(np.searchsorted(starts, t, "right") - 1, 0)
        total = counted.busy_until[inside.start + at] + np.minimum(t, ends[at]) - starts[at]
        return Sum(t, total - total[0])
    t = np.clip(np.stack([starts, ends], axis=1).reshape(-1), low, high)
    length = np.diff(t, prepend=t[:1])
    length[::2] = 0
    return Sum(t, np.cumsum(length))


def copied(counted: Counted, window: Window | None = None, points: int = POINTS) -> Sum:
    """Return the bytes that a device's copies moved, each copy at a steady rate.

    Exact everywhere where there are few copies, and at `points` equal steps where there are many.
    In a window the sum begins with it.
    """
    start, end, size = counted.copies
    if window is not None:
        low, high = window
        rows = np.flatnonzero(end[: np.searchsorted(start, high)] > low)
        start, end, size = start[rows], end[rows], size[rows]
        length = end - start
        start, end = np.maximum(start, low), np.minimum(end, high)
        size = np.rint(size * ((end - start) / length)).astype(np.int64)
    if not len(start):
        return Sum(np.empty(0, np.int64), np.empty(0, np.int64))
    if 2 * len(start) <= points:
        edges = np.unique(np.concatenate([start, end]))
    else:
        edges = _equal_steps(int(start.min()), int(end.max()), points)
    return Sum(edges, _moved(start, end, size, edges))


def _equal_steps(begin: int, end: int, points: int) -> IntArray:
    """Return at most `points` times from `begin` to `end`, fewer where they would fall together."""
    return np.unique(np.rint(np.linspace(begin, end, points)).astype(np.int64))


def _moved(start: IntArray, end: IntArray, size: IntArray, edges: IntArray) -> IntArray:
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
    total: IntArray = np.rint(np.concatenate([[0.0], np.cumsum(moved)])).astype(np.int64)
    return total


def outstanding(counted: Counted, window: Window | None = None, points: int = POINTS) -> Level:
    """Return how many launches a device had been given and not yet finished; see `Counted`."""
    t, level = counted.launches
    if not len(t):
        return Level(t, level, level)
    # Without a window: until everything is done.
    low_end, high_end = window or (int(t[0]) - 1, int(t[-1]) + 1)
    first, last = np.searchsorted(t, (low_end, high_end), "right").tolist()
    if last - first < points:
        held = level[first - 1] if first else 0
        t, level = np.insert(t[first:last], 0, low_end), np.insert(level[first:last], 0, held)
        return Level(t, level, level)
    edges = _equal_steps(low_end, high_end, points)
    # What changes at an edge belongs to the stretch that begins there.
    at = np.searchsorted(t, edges)
    before = np.where(at > 0, level[at - 1], 0)
    low, high = before[:-1].copy(), before[:-1].copy()
    filled = np.flatnonzero(np.diff(at))
    begin, inside = at[filled], level[: at[-1]]
    low[filled] = np.minimum.reduceat(inside, begin)
    high[filled] = np.maximum.reduceat(inside, begin)
    # A stretch begins with the level that it inherits, unless a change is due at its edge.
    inherits = filled[t[begin] != edges[filled]]
    low[inherits] = np.minimum(low[inherits], before[inherits])
    high[inherits] = np.maximum(high[inherits], before[inherits])
    return Level(edges, np.append(low, before[-1]), np.append(high, before[-1]))


def tracks(prepared: Prepared) -> list[dict[str, Any]]:
    """Return which counters there are, found at little cost.

    They are kept as `epprof_nb.views.view_model.Prepared.tracks`.

    Returns
    -------
    tracks
        One ``{"what", "device", "name"}`` a counter, by device: ``what`` is ``"busy"``,
        ``"launches"`` or ``"copied"``. A device that copied nothing has no counter of copies.
    """
    activities = prepared.profile.tables["activities"]
    copies = np.flatnonzero(prepared.work.kinds == MEMCPY)
    copies = copies[activities["bytes"][copies] > 0]
    copying = set(unique_values(activities["device_id"][copies]))
    names = device_names(prepared.profile.info)
    devices = sorted({lane.device for lane in prepared.layout.lanes if lane.device >= 0})
    return [
        {"what": what, "device": device, "name": names.get(device, f"device {device}")}
        for device in devices
        for what in ("busy", "launches", "copied")
        if what != "copied" or device in copying
    ]


def columns(
    prepared: Prepared, window: Window | None = None, points: int = POINTS
) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of the counters that `tracks` lists.

    Parameters
    ----------
    prepared
        The profile.
    window
        First and last nanosecond to count in; None for all. Sums begin with the window.
    points
        Points of a counter at most.

    Returns
    -------
    columns
        ``counter.<position in tracks>.t`` (ns), and ``value`` (ns or bytes) of a sum, ``low`` and
        ``high`` of a level.
    """
    found: dict[str, npt.NDArray[Any]] = {}
    for position, track in enumerate(prepared.tracks):
        key, of = f"counter.{position}", (prepared.counted(track["device"]), window, points)
        if track["what"] == "launches":
            level = outstanding(*of)
            found |= {f"{key}.t": level.t, f"{key}.low": level.low, f"{key}.high": level.high}
        else:
            total = busy(*of) if track["what"] == "busy" else copied(*of)
            found |= {f"{key}.t": total.t, f"{key}.value": total.value}
    return found
