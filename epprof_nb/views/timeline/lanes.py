"""Timeline layout: the lane of each event, and its row within the lane."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.base.device_work import FIRST_WAIT
from epprof_nb.analysis.base.devices import device_labels, device_names
from epprof_nb.analysis.base.processes import processes
from epprof_nb.analysis.base.thread_labels import thread_label, thread_names
from epprof_nb.arrays.ids import unique_values
from epprof_nb.arrays.row_packing import pack_rows
from epprof_nb.arrays.small_codes import SmallCodes
from epprof_nb.data.schema import ACTIVITY_KINDS
from epprof_nb.util.thread_pool import ThreadPool
from epprof_nb.views.timeline.row_builder import build_rows
from epprof_nb.views.timeline.with_statements import depth_without, ops_of_with_statements

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.data.table import Table
    from epprof_nb.views.timeline.rows import EventRows


MAX_LANES = 200
"""Maximum number of threads, and of streams, that are drawn."""

MAX_ROWS = 24
"""Maximum rows per lane; events nested or overlapping deeper share the last one."""


@dataclass(slots=True)
class Lane:
    """A lane of the timeline.

    ``kind`` is the kind of its events, ``label`` a short name, ``title`` a description, and
    ``device_label`` the name of its device if there are several. A lane that only has
    synchronizations has no ``rows``: these are drawn at the bottom edge of a lane.
    """

    kind: Literal["ops", "api", "stream"]
    label: str
    title: str
    rows: int = 0
    device: int = -1
    thread: int = -1
    device_label: str = ""

    @property
    def full_label(self) -> str:
        """The label, with the label of the device if it has one."""
        return f"{self.label} · {self.device_label}" if self.device_label else self.label


@dataclass(frozen=True, slots=True)
class EventLayout:
    """Positions of the events of one table on the timeline.

    ``row_index`` is the index of each event's row in ``event_rows``, of a small unsigned dtype;
    ``len(event_rows)`` for events that are not drawn.
    """

    row_index: npt.NDArray[Any]
    event_rows: EventRows

    def lane_and_row(self, event: int) -> tuple[int, int]:
        """Return the lane of an event and its row in it; (-1, -1) if it is not drawn."""
        index = int(self.row_index[event])
        if index >= len(self.event_rows):
            return -1, -1
        return int(self.event_rows.lane[index]), int(self.event_rows.row[index])

    def neighbours(self, event: int) -> tuple[int | None, int | None]:
        """Return the previous and the next event in an event's row; None at the ends."""
        index, event_rows = int(self.row_index[event]), self.event_rows
        if index >= len(event_rows):
            return None, None
        first, end = int(event_rows.first[index]), int(event_rows.first[index + 1])
        at = bisect_left(
            range(first, end), int(event_rows.start[event]),
            key=lambda position: int(event_rows.start[event_rows.order[position]]),
        ) + first  # fmt: skip
        while event_rows.order[at] != event:
            at += 1
        before = int(event_rows.order[at - 1]) if at > first else None
        return before, int(event_rows.order[at + 1]) if at + 1 < end else None

    @property
    def is_drawn(self) -> npt.NDArray[np.bool_]:
        """Whether each event is drawn."""
        is_drawn: npt.NDArray[np.bool_] = np.less(self.row_index, len(self.event_rows))
        return is_drawn


@dataclass(frozen=True, slots=True)
class TimelineLayout:
    """The lanes from top to bottom, and the layout of the events of the three tables.

    ``notes`` say which threads and streams are not drawn.
    """

    lanes: tuple[Lane, ...]
    ops: EventLayout
    api_calls: EventLayout
    activities: EventLayout
    notes: tuple[str, ...] = ()

    def by_prefix(self) -> dict[str, EventLayout]:
        """Return the event layouts by the viewer's prefixes of the tables."""
        return {"op": self.ops, "api": self.api_calls, "act": self.activities}


def _thread_lanes(
    profile: ProfileData,
    call_thread: SmallCodes,
    hidden: IntArray,
    lanes: list[Lane],
    notes: list[str],
) -> tuple[SmallCodes, SmallCodes]:
    """Append the lanes of the threads; return the lane of each op and of each API call."""
    ops, calls = profile.tables["ops"], profile.tables["api_calls"]
    # Ops of an earlier profile, kept because they captured a CUDA graph, have no times here.
    shown = ~ops.names("status").equals("earlier")
    shown[hidden] = False
    cells = np.flatnonzero(ops.names("category").equals("cell") & shown)
    op_thread = SmallCodes.of(ops["thread_id"])
    if not shown.all():
        op_thread = SmallCodes.combined(op_thread, SmallCodes.of(shown.view(np.uint8))).map(
            lambda key: key[0] if key[1] else None
        )
    with_ops, with_calls = set(op_thread.values) - {None}, set(call_thread.values)
    if len(cells):
        main = int(ops["thread_id"][cells[0]])
    elif with_ops:
        first = np.argmin(np.where(shown, ops["start_ns"], np.iinfo(np.int64).max))
        main = int(ops["thread_id"][first])
    else:
        main = int(calls["thread_id"][0]) if len(calls) else -1
    op_lanes, call_lanes = {}, {}
    names = thread_names(profile.info)
    threads = with_ops | with_calls
    if len(threads) > MAX_LANES:
        host_ns = _total_ns(op_thread, ops["duration_ns"]) + _total_ns(
            call_thread, calls["duration_ns"]
        )
        threads = {main, *(t for t, _ in host_ns.most_common(MAX_LANES - 1))}
        notes.append(_left_out("threads", len(with_ops | with_calls), "host time"))
    uses = Counter(names.get(thread) for thread in threads)
    for thread in sorted(threads, key=lambda t: (t != main, t)):
        name = names.get(thread)
        label = thread_label(names, thread, is_main=thread == main)
        if label == name and uses[name] > 1:
            label = f"{name} · {thread}"
        described = f"thread {thread} ({name})" if name else f"thread {thread}"
        if thread in with_ops:
            op_lanes[thread] = len(lanes)
            lanes.append(Lane("ops", label, f"Ops of {described}", thread=thread))
        if thread in with_calls:
            call_lanes[thread] = len(lanes)
            of_calls = "API calls" if thread in with_ops else label
            lanes.append(Lane("api", of_calls, f"CUDA API calls of {described}", thread=thread))
    return op_thread.map(op_lanes.get), call_thread.map(call_lanes.get)


def _streams(activities: Table) -> SmallCodes:
    """Return the device, context and stream of each activity."""
    names = ("device_id", "context_id", "stream_id")
    return SmallCodes.combined(*(SmallCodes.of(activities[name]) for name in names))


def _stream_lanes(
    profile: ProfileData, codes: SmallCodes, lanes: list[Lane], notes: list[str]
) -> SmallCodes:
    """Append one lane per stream; return the lane of each activity."""
    keys = list(codes.values)
    if len(keys) > MAX_LANES:
        device_ns = _total_ns(codes, profile.tables["activities"]["duration_ns"])
        notes.append(_left_out("streams", len(keys), "device time"))
        keys = [key for key, _ in device_ns.most_common(MAX_LANES)]
    keys.sort(key=lambda key: (key[0], key[2], key[1]))  # by device, then stream
    names = device_names(profile.info)
    devices = {device for device, _, _ in keys}
    contexts = Counter((device, stream) for device, _, stream in keys)
    device_label = device_labels(profile.info, devices)
    numbers = {}
    for device, context, stream in keys:
        label = f"stream {stream}" if stream >= 0 else "waits"
        title = f"Stream {stream}" if stream >= 0 else "Synchronization without a stream"
        if device >= 0:
            title += f" on {device_label[device]}"
            name = names.get(device, device_label[device])
            if name != device_label[device]:
                # The name of the host device begins with its label.
                title = f"{title} ({name.removeprefix(device_label[device]).strip(' ()')})"
        if contexts[device, stream] > 1:
            label += f" (ctx {context})"
            title += f", context {context}"
        numbers[device, context, stream] = len(lanes)
        of_several = device_label[device] if len(devices) > 1 and device >= 0 else ""
        lanes.append(Lane("stream", label, title, device=device, device_label=of_several))
    return codes.map(numbers.get)


def _total_ns(codes: SmallCodes, durations: IntArray) -> Counter[Any]:
    """Return the sum of the durations of each value except None."""
    sums = np.bincount(codes.codes, np.maximum(durations, 0), len(codes.values))
    totals = zip(codes.values, sums.tolist(), strict=True)
    return Counter({value: int(total) + 1 for value, total in totals if value is not None})


def _left_out(what: str, count: int, most: str) -> str:
    return (
        f"The timeline shows {MAX_LANES} of {count:,} {what}, those with the most {most}. Totals "
        "and tables include all."
    )


def build_layout(profile: ProfileData, index: ProfileIndex) -> TimelineLayout:
    """Lay out a whole profile. The layout does not depend on the window shown."""
    lanes: list[Lane] = []
    notes: list[str] = []
    tables = profile.tables
    # Synchronizations are drawn at the bottom edge of a lane, since they may overlap the work.
    foot = [MAX_ROWS if kind >= FIRST_WAIT else 0 for kind in range(len(ACTIVITY_KINDS))]
    # NumPy does most of the work and releases the GIL meanwhile.
    with ThreadPool(2) as pool:
        streams = pool.submit(_streams, tables["activities"])
        call_thread = SmallCodes.of(tables["api_calls"]["thread_id"])
        hidden = np.array(list(index.cached(ops_of_with_statements)), np.int64)
        op_lane, call_lane = _thread_lanes(profile, call_thread, hidden, lanes, notes)
        stream_lane = _stream_lanes(profile, streams.result(), lanes, notes)
        order = _by_process(index, lanes)
        lanes = [lanes[number] for number in order]
        place = {number: at for at, number in enumerate(order)}
        op_lane, call_lane, stream_lane = (
            of_table.map(place.get) for of_table in (op_lane, call_lane, stream_lane)
        )
        activities = pool.submit(
            _lay_out, tables["activities"], stream_lane, SmallCodes(index.kinds, foot)
        )
        calls = pool.submit(_lay_out, tables["api_calls"], call_lane, _ROW_0)
        ops = _lay_out(tables["ops"], op_lane, SmallCodes.of(_min_rows(profile, index, hidden)))
        layout = TimelineLayout((), ops, calls.result(), activities.result())
    for event_layout in layout.by_prefix().values():
        event_rows = event_layout.event_rows
        # MAX_ROWS is the bottom edge, which is not a row.
        for lane, row in zip(event_rows.lane.tolist(), event_rows.row.tolist(), strict=True):
            if row < MAX_ROWS:
                lanes[lane].rows = max(lanes[lane].rows, row + 1)
    return replace(layout, lanes=tuple(lanes), notes=tuple(notes))


def _by_process(index: ProfileIndex, lanes: Sequence[Lane]) -> list[int]:
    """Return the numbers of the lanes in order: threads, then devices, process by process."""
    process_of: dict[tuple[str, int], int] = {}
    for number, part in enumerate(index.cached(processes)):
        tables = part.index.profile.tables
        for name in ("ops", "api_calls"):
            process_of |= dict.fromkeys(
                (("thread", thread) for thread in unique_values(tables[name]["thread_id"])), number
            )
        process_of |= dict.fromkeys((("device", d) for d in part.index.device_ids), number)

    def process(lane: Lane) -> int:
        key = ("device", lane.device) if lane.kind == "stream" else ("thread", lane.thread)
        return process_of.get(key, len(process_of))

    return sorted(range(len(lanes)), key=lambda number: process(lanes[number]))


def _min_rows(profile: ProfileData, index: ProfileIndex, hidden: IntArray) -> npt.NDArray[np.uint8]:
    """Return the minimum row of each op: its nesting depth within its thread."""
    threads, tree = profile.tables["ops"]["thread_id"], index.tree
    depth, parent = depth_without(tree, hidden), tree.parent
    # Ops whose parent is on another thread start at the top of their own lane.
    from_other_thread = (parent >= 0) & (threads[parent] != threads) if len(parent) else parent >= 0
    if from_other_thread.any():
        depth = depth - depth[tree.nearest_ancestor(from_other_thread | (parent < 0))]
    rows: npt.NDArray[np.uint8] = np.minimum(depth, MAX_ROWS - 1).astype(np.uint8)
    return rows


_ROW_0 = SmallCodes(np.empty(0, np.uint8), [0])
"""Every event in row 0."""


def _lay_out(table: Table, lane: SmallCodes, row: SmallCodes) -> EventLayout:
    """Lay out the events of a table such that only the last row of a lane has overlaps."""
    layout = _with_rows(lane, row, table["start_ns"], table["end_ns"])
    event_rows = layout.event_rows
    start, end = event_rows.start, event_rows.end
    crowded = np.unique(event_rows.lane[event_rows.overlapping & (event_rows.row < MAX_ROWS - 1)])
    if not len(crowded):
        return layout
    rows = np.append(event_rows.row, 0)[layout.row_index].astype(np.uint8)
    for number in crowded.tolist():
        in_lane = np.flatnonzero((event_rows.lane == number) & (event_rows.row < MAX_ROWS))
        parts = [
            event_rows.order[event_rows.first[index] : event_rows.first[index + 1]]
            for index in in_lane.tolist()
        ]
        events = np.concatenate(parts)
        begins = start[events]
        rows[events] = pack_rows(begins, np.maximum(end[events], begins), rows[events], MAX_ROWS)
    return _with_rows(lane, SmallCodes.of(rows), start, end)


def _with_rows(lane: SmallCodes, row: SmallCodes, start: IntArray, end: IntArray) -> EventLayout:
    codes = SmallCodes.combined(lane, row)
    keys = sorted({key for key in codes.values if key[0] is not None})
    numbers = {key: number for number, key in enumerate(keys)}
    row_index = codes.recode(numbers, len(keys))
    lane_of, row_of = np.array(keys, np.int64).reshape(-1, 2).T
    return EventLayout(row_index, build_rows(row_index, lane_of, row_of, start, end))
