"""Where each event of a profile is drawn: its lane, and its row in the lane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.lookup import group
from epprof_nb.views.work import FIRST_WAIT, Work

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.profiles import Profile

Ints = npt.NDArray[np.int64]

MAX_ROWS = 24
"""Rows a lane is given at most; what nests or overlaps deeper shares the last one."""


@dataclass(slots=True)
class Lane:
    """One lane of the timeline.

    ``kind`` is what its events are; ``label`` is short, ``title`` tells the rest. A lane of waits
    only has no ``rows``: waits are drawn at its foot.
    """

    kind: Literal["ops", "api", "stream"]
    label: str
    title: str
    rows: int = 1
    device: int = -1
    thread: int = -1


@dataclass(frozen=True, slots=True)
class Placement:
    """Lane and row of each event of a table, int64; lane -1 is not drawn."""

    lane: Ints
    row: Ints


@dataclass(frozen=True, slots=True)
class Layout:
    """The lanes from top to bottom, and where the events of the three tables lie."""

    lanes: tuple[Lane, ...]
    ops: Placement
    api_calls: Placement
    activities: Placement


def device_names(info: Mapping[str, Any]) -> dict[int, str]:
    """Device id to device name, from a profile's info; devices without an id are left out."""
    return {
        int(device["device_id"]): str(device.get("name") or f"device {device['device_id']}")
        for device in info.get("devices") or ()
        if isinstance(device, dict) and device.get("device_id") is not None
    }


def _stack(start: Ints, end: Ints, least: Ints) -> Ints:
    """Return the first row, from `least` down, in which an event meets none that began before."""
    rows = np.zeros(len(start), np.int64)
    free_at = [np.iinfo(np.int64).min] * MAX_ROWS
    order = np.lexsort((-end, start))
    for i, begin, stop, low in zip(
        order.tolist(), start[order].tolist(), end[order].tolist(), least[order].tolist(),
        strict=True,
    ):  # fmt: skip
        row = min(low, MAX_ROWS - 1)
        while row < MAX_ROWS - 1 and free_at[row] > begin:
            row += 1
        free_at[row] = max(free_at[row], stop)
        rows[i] = row
    return rows


def _rows(lane: Ints, start: Ints, end: Ints, least: Ints) -> Ints:
    """Return a row for each event: `least`, unless events of a lane would overlap there."""
    rows = np.minimum(least, MAX_ROWS - 1)
    for number in np.unique(lane[lane >= 0]):
        mine = np.flatnonzero(lane == number)
        order = mine[np.lexsort((start[mine], rows[mine]))]
        same = (np.diff(lane[order]) == 0) & (np.diff(rows[order]) == 0)
        if np.any(same & (start[order][1:] < end[order][:-1])):
            rows[mine] = _stack(start[mine], end[mine], rows[mine])
    return rows


def _thread_lanes(profile: Profile, lanes: list[Lane]) -> tuple[Ints, Ints]:
    """Append the host's lanes; give the lane of each op and of each API call."""
    ops, calls = profile.tables["ops"], profile.tables["api_calls"]
    op_lane = np.full(len(ops), -1, np.int64)
    call_lane = np.full(len(calls), -1, np.int64)
    # Ops kept from an earlier profile, for what they captured, have no place on this clock.
    shown = ~ops.names("status").equals("earlier")
    cells = ops.names("category").equals("cell") & shown
    threads, calling = ops["thread_id"], calls["thread_id"]
    if cells.any():
        main = int(threads[np.argmax(cells)])
    elif shown.any():
        main = int(threads[shown][np.argmin(ops["start_ns"][shown])])
    else:
        main = int(calling[0]) if len(calling) else -1
    present = np.unique(np.concatenate([threads[shown], calling]))
    for thread in sorted(present.tolist(), key=lambda t: (t != main, t)):
        label = "main thread" if thread == main else f"thread {thread}"
        mine = (threads == thread) & shown
        if mine.any():
            op_lane[mine] = len(lanes)
            lanes.append(Lane("ops", label, f"Ops of thread {thread}", thread=thread))
        theirs = calling == thread
        if theirs.any():
            call_lane[theirs] = len(lanes)
            name = "API calls" if mine.any() else label
            lanes.append(Lane("api", name, f"CUDA API calls of thread {thread}", thread=thread))
    return op_lane, call_lane


def _stream_lanes(profile: Profile, lanes: list[Lane]) -> Ints:
    """Append a lane for each stream; give the lane of each activity."""
    activities = profile.tables["activities"]
    if not len(activities):
        return np.empty(0, np.int64)
    device, stream = activities["device_id"], activities["stream_id"]
    context = activities["context_id"]
    groups, first = group(device, context, stream)
    # By device, then stream; the groups' own order may be any.
    order = np.lexsort((context[first], stream[first], device[first]))
    keys = [(int(device[i]), int(context[i]), int(stream[i])) for i in first[order]]
    names = device_names(profile.info)
    devices = np.unique(device)
    pairs = [(on, which) for on, _, which in keys]
    number_of_group = np.empty(len(keys), np.int64)
    for number, (on, within, which) in enumerate(keys):
        label = f"stream {which}" if which >= 0 else "waits"
        if len(devices) > 1 and on >= 0:
            label = f"{label} · {on}"
        title = f"Stream {which}" if which >= 0 else "Waits for no stream in particular"
        if on >= 0:
            title += f" on device {on} ({names[on]})" if on in names else f" on device {on}"
        if pairs.count((on, which)) > 1:
            label += f" (ctx {within})"
            title += f", context {within}"
        number_of_group[order[number]] = len(lanes)
        lanes.append(Lane("stream", label, title, device=on))
    numbers: Ints = number_of_group[groups]
    return numbers


def build(profile: Profile, work: Work) -> Layout:
    """Lay out a whole profile, so that every window of it finds its events in the same place."""
    lanes: list[Lane] = []
    ops, calls = profile.tables["ops"], profile.tables["api_calls"]
    activities = profile.tables["activities"]
    op_lane, call_lane = _thread_lanes(profile, lanes)
    stream_lane = _stream_lanes(profile, lanes)

    threads = ops["thread_id"]
    depth = work.depth
    if len(ops):
        # What a thread runs for an op of another thread starts at the top of its own lane.
        parent = work.tree.parent
        arrives = (parent < 0) | (threads[parent] != threads)
        depth = depth - depth[work.tree.nearest(arrives)]

    # Waits are drawn on a line of their own at a lane's foot: they may overlap the work.
    waits = work.kinds >= FIRST_WAIT
    placed = []
    for table, lane, least in (
        (ops, op_lane, depth),
        (calls, call_lane, np.zeros(len(calls), np.int64)),
        (activities, np.where(waits, -1, stream_lane), np.zeros(len(activities), np.int64)),
    ):
        end = np.maximum(table["end_ns"], table["start_ns"])
        placed.append(_rows(lane, table["start_ns"], end, least))
    for number, item in enumerate(lanes):
        drawn = (op_lane, call_lane, np.where(waits, -1, stream_lane))
        of_lane = [
            rows[lane == number].max(initial=-1) for rows, lane in zip(placed, drawn, strict=True)
        ]
        item.rows = int(max(of_lane)) + 1
    return Layout(
        tuple(lanes),
        Placement(op_lane, placed[0]),
        Placement(call_lane, placed[1]),
        # A wait's row is told by its kind, not by a number.
        Placement(stream_lane, np.where(waits, MAX_ROWS, placed[2])),
    )
