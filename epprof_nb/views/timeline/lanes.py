"""Where each event of a profile is drawn: its lane, and its row in the lane."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.device_work import FIRST_WAIT, KINDS
from epprof_nb.analysis.devices import device_names
from epprof_nb.arrays.row_packing import pack_rows
from epprof_nb.arrays.small_codes import SmallCodes
from epprof_nb.views.timeline.rows import Series, put_in_order

if TYPE_CHECKING:
    from epprof_nb.analysis.index import ProfileIndex
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.data.table import Table

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
    rows: int = 0
    device: int = -1
    thread: int = -1


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the events of a table are drawn.

    ``code`` is the number of each event's series, of a short unsigned dtype; that of events that
    are not drawn is ``len(series)``.
    """

    code: npt.NDArray[Any]
    series: Series

    def place(self, event: int) -> tuple[int, int]:
        """Lane and row of one event; lane -1 is not drawn."""
        code = int(self.code[event])
        if code >= len(self.series):
            return -1, -1
        return int(self.series.lane[code]), int(self.series.row[code])

    def beside(self, event: int) -> tuple[int | None, int | None]:
        """Return the events before and after one in its row, by time; None at the ends."""
        code, series = int(self.code[event]), self.series
        if code >= len(series):
            return None, None
        first, end = int(series.first[code]), int(series.first[code + 1])
        at = bisect_left(
            range(first, end), int(series.start[event]),
            key=lambda position: int(series.start[series.order[position]]),
        ) + first  # fmt: skip
        while series.order[at] != event:
            at += 1
        before = int(series.order[at - 1]) if at > first else None
        return before, int(series.order[at + 1]) if at + 1 < end else None

    @property
    def drawn(self) -> npt.NDArray[np.bool_]:
        """Which events are drawn."""
        drawn: npt.NDArray[np.bool_] = np.less(self.code, len(self.series))
        return drawn

    @property
    def lane(self) -> Ints:
        """Lane of each event, int64; -1 is not drawn."""
        values: Ints = np.append(self.series.lane, -1)[self.code]
        return values

    @property
    def row(self) -> Ints:
        """Row of each event in its lane, int64; `MAX_ROWS` is the foot."""
        values: Ints = np.append(self.series.row, -1)[self.code]
        return values


@dataclass(frozen=True, slots=True)
class Layout:
    """The lanes from top to bottom, and where the events of the three tables lie."""

    lanes: tuple[Lane, ...]
    ops: Placement
    api_calls: Placement
    activities: Placement

    def places(self) -> dict[str, Placement]:
        """Return where the events lie by the viewer's short names of the tables."""
        return {"op": self.ops, "api": self.api_calls, "act": self.activities}


def _thread_lanes(
    profile: ProfileData, calling: SmallCodes, lanes: list[Lane]
) -> tuple[SmallCodes, SmallCodes]:
    """Append the host's lanes; give the lane of each op and of each API call."""
    ops, calls = profile.tables["ops"], profile.tables["api_calls"]
    # Ops kept from an earlier profile, for what they captured, have no place on this clock.
    shown = ~ops.names("status").equals("earlier")
    cells = np.flatnonzero(ops.names("category").equals("cell") & shown)
    op_thread = SmallCodes.of(ops["thread_id"])
    if not shown.all():
        op_thread = SmallCodes.combined(op_thread, SmallCodes.of(shown.view(np.uint8))).map(
            lambda key: key[0] if key[1] else None
        )
    with_ops, with_calls = set(op_thread.values) - {None}, set(calling.values)
    if len(cells):
        main = int(ops["thread_id"][cells[0]])
    elif with_ops:
        first = np.argmin(np.where(shown, ops["start_ns"], np.iinfo(np.int64).max))
        main = int(ops["thread_id"][first])
    else:
        main = int(calls["thread_id"][0]) if len(calls) else -1
    op_lanes, call_lanes = {}, {}
    for thread in sorted(with_ops | with_calls, key=lambda t: (t != main, t)):
        label = "main thread" if thread == main else f"thread {thread}"
        if thread in with_ops:
            op_lanes[thread] = len(lanes)
            lanes.append(Lane("ops", label, f"Ops of thread {thread}", thread=thread))
        if thread in with_calls:
            call_lanes[thread] = len(lanes)
            name = "API calls" if thread in with_ops else label
            lanes.append(Lane("api", name, f"CUDA API calls of thread {thread}", thread=thread))
    return op_thread.map(op_lanes.get), calling.map(call_lanes.get)


def _streams(activities: Table) -> SmallCodes:
    """Device, context and stream of each activity."""
    names = ("device_id", "context_id", "stream_id")
    return SmallCodes.combined(*(SmallCodes.of(activities[name]) for name in names))


def _stream_lanes(profile: ProfileData, codes: SmallCodes, lanes: list[Lane]) -> SmallCodes:
    """Append a lane for each stream; give the lane of each activity."""
    # By device, then stream.
    keys = sorted(codes.values, key=lambda key: (key[0], key[2], key[1]))
    names = device_names(profile.info)
    devices = {on for on, _, _ in keys}
    contexts = Counter((on, which) for on, _, which in keys)
    numbers = {}
    for on, within, which in keys:
        label = f"stream {which}" if which >= 0 else "waits"
        if len(devices) > 1 and on >= 0:
            label = f"{label} · {on}"
        title = f"Stream {which}" if which >= 0 else "Waits for no stream in particular"
        if on >= 0:
            title += f" on device {on} ({names[on]})" if on in names else f" on device {on}"
        if contexts[on, which] > 1:
            label += f" (ctx {within})"
            title += f", context {within}"
        numbers[on, within, which] = len(lanes)
        lanes.append(Lane("stream", label, title, device=on))
    return codes.map(numbers.get)


def build(profile: ProfileData, index: ProfileIndex) -> Layout:
    """Lay out a whole profile, so that every window of it finds its events in the same place."""
    lanes: list[Lane] = []
    tables = profile.tables
    # Waits are drawn on a line of their own at a lane's foot: they may overlap the work.
    foot = [MAX_ROWS if kind >= FIRST_WAIT else 0 for kind in range(len(KINDS))]
    # Most of the work is done in NumPy, which lets other threads run.
    with ThreadPoolExecutor(2) as pool:
        streams = pool.submit(_streams, tables["activities"])
        calling = SmallCodes.of(tables["api_calls"]["thread_id"])
        op_lane, call_lane = _thread_lanes(profile, calling, lanes)
        stream_lane = _stream_lanes(profile, streams.result(), lanes)
        activities = pool.submit(
            _place, tables["activities"], stream_lane, SmallCodes(index.kinds, foot)
        )
        calls = pool.submit(_place, tables["api_calls"], call_lane, _FLAT)
        ops = _place(tables["ops"], op_lane, SmallCodes.of(_levels(profile, index)))
        layout = Layout((), ops, calls.result(), activities.result())
    for placed in (layout.ops, layout.api_calls, layout.activities):
        series = placed.series
        # A wait's row is told by its kind, not by a number: a lane of waits alone has no rows.
        for lane, row in zip(series.lane.tolist(), series.row.tolist(), strict=True):
            if row < MAX_ROWS:
                lanes[lane].rows = max(lanes[lane].rows, row + 1)
    return replace(layout, lanes=tuple(lanes))


def _levels(profile: ProfileData, index: ProfileIndex) -> npt.NDArray[np.uint8]:
    """Row that each op takes at least: how deep it is nested in its thread."""
    threads, tree = profile.tables["ops"]["thread_id"], index.tree
    depth, parent = tree.depth, tree.parent
    # What a thread runs for an op of another thread starts at the top of its own lane.
    arrives = (parent >= 0) & (threads[parent] != threads) if len(parent) else parent >= 0
    if arrives.any():
        depth = depth - depth[tree.nearest_ancestor(arrives | (parent < 0))]
    levels: npt.NDArray[np.uint8] = np.minimum(depth, MAX_ROWS - 1).astype(np.uint8)
    return levels


_FLAT = SmallCodes(np.empty(0, np.uint8), [0])
"""Every event in row 0."""


def _place(table: Table, lane: SmallCodes, row: SmallCodes) -> Placement:
    """Put the events of a table into series; events of a row overlap in the last rows only."""
    placed = _in_series(lane, row, table["start_ns"], table["end_ns"])
    series = placed.series
    start, end = series.start, series.end
    crowded = np.unique(series.lane[series.overlapping & (series.row < MAX_ROWS - 1)])
    if not len(crowded):
        return placed
    rows = np.append(series.row, 0)[placed.code].astype(np.uint8)
    for number in crowded.tolist():
        mine = np.flatnonzero((series.lane == number) & (series.row < MAX_ROWS))
        parts = [series.order[series.first[s] : series.first[s + 1]] for s in mine.tolist()]
        which = np.concatenate(parts)
        begins = start[which]
        rows[which] = pack_rows(begins, np.maximum(end[which], begins), rows[which], MAX_ROWS)
    return _in_series(lane, SmallCodes.of(rows), start, end)


def _in_series(lane: SmallCodes, row: SmallCodes, start: Ints, end: Ints) -> Placement:
    codes = SmallCodes.combined(lane, row)
    keys = sorted({key for key in codes.values if key[0] is not None})
    numbers = {key: number for number, key in enumerate(keys)}
    code = codes.recode(numbers, len(keys))
    lane_of, row_of = np.array(keys, np.int64).reshape(-1, 2).T
    return Placement(code, put_in_order(code, lane_of, row_of, start, end))
