"""Chrome trace JSON, which Perfetto and ``chrome://tracing`` open.

Threads of the host are tracks with the ops and, in them, the API calls; streams are tracks of a
device's own process, with its counters; an arrow leads from an API call to each of its activities.
"""

from __future__ import annotations

import heapq
import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.data.schema import MISSING
from epprof_nb.exporters.chrome_counters import counters
from epprof_nb.formats.atomic_file import replacing
from epprof_nb.util.progress_bar import steps

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.data.table import Names, Table

_HOST = 1
_DEVICES = 3
"""Process ids of the host's tracks and of device 0's; viewers give 0 a meaning of their own."""
_BATCH = 50_000


def to_chrome(profile: ProfileData, path: str | os.PathLike[str]) -> None:
    """Write a profile as Chrome trace JSON, all or nothing, without building it in memory.

    Parameters
    ----------
    profile
        The profile. Statements that share one row (``count`` over 1) and ops that were suspended
        are not nested as slices must be: they become asynchronous slices.
    path
        The file; one that exists is replaced. Times in it are microseconds, to the nanosecond,
        since the profile's start.

    Raises
    ------
    OSError
        Where it cannot be written.
    """
    tracks = _Tracks(profile)
    events = _events(profile, tracks)
    tables = profile.tables
    # An activity comes with the two ends of its arrow.
    lines = len(tables["ops"]) + len(tables["api_calls"]) + 3 * len(tables["activities"])
    with replacing(path) as file, steps(f"Writing {Path(path).name}", lines, " events") as bar:
        file.write(b'{"displayTimeUnit": "ns", "traceEvents": [\n')
        # At least the name of the host's process.
        file.write(",\n".join(_head(profile, tracks)).encode())
        while batch := list(islice(events, _BATCH)):
            file.write((",\n" + ",\n".join(batch)).encode())
            bar.update(len(batch))
        file.write(b"\n]}\n")


class _Tracks:
    """The track of each activity: slices of one track must not overlap.

    Attributes
    ----------
    process, thread
        int64 arrays, one an activity: ids of the track.
    labels
        ``(process, thread)`` to the track's name.
    """

    def __init__(self, profile: ProfileData) -> None:
        activities = profile.tables["activities"]
        starts, ends = activities["start_ns"], activities["end_ns"]
        # A wait lasts as long as the work that it waits for, which is on the stream's track.
        waits = activities.names("kind").equals("synchronization")
        line = np.where(waits, activities["thread_id"], activities["stream_id"])
        groups, first = group_codes(activities["device_id"], waits.astype(np.int8), line)
        order = np.lexsort((starts, groups))
        bounds = np.searchsorted(groups[order], np.arange(len(first) + 1))
        self.process = activities["device_id"] + _DEVICES
        self.thread = np.zeros(len(activities), np.int64)
        self.labels: dict[tuple[int, int], str] = {}
        by_name = np.lexsort((line[first], waits[first], self.process[first]))
        thread = 1
        for one in by_name.tolist():
            rows = order[bounds[one] : bounds[one + 1]]
            lanes = _lanes(starts[rows], ends[rows])
            self.thread[rows] = thread + lanes
            owner = int(line[first[one]])
            name = f"waits of thread {owner}" if waits[first[one]] else f"stream {owner}"
            for lane in range(int(lanes.max()) + 1):
                label = name if lane == 0 else f"{name}, overlapping ({lane + 1})"
                self.labels[int(self.process[first[one]]), thread + lane] = label
            thread += int(lanes.max()) + 1
        # To viewers, the thread with its process's id is the main one, which comes first.
        self.thread += self.thread >= self.process
        self.labels = {(p, t + (t >= p)): label for (p, t), label in self.labels.items()}


def _lanes(starts: IntArray, ends: IntArray) -> IntArray:
    """Spread intervals, ascending by start, over as few lanes as keep them from overlapping."""
    lanes = np.zeros(len(starts), np.int64)
    if (starts[1:] >= np.maximum.accumulate(ends)[:-1]).all():
        return lanes
    busy: list[tuple[int, int]] = []
    for i, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        lane = heapq.heappop(busy)[1] if busy and busy[0][0] <= start else len(busy)
        heapq.heappush(busy, (end, lane))
        lanes[i] = lane
    return lanes


def _head(profile: ProfileData, tracks: _Tracks) -> Iterator[str]:
    yield from _track_names(profile, tracks)
    yield from counters(profile, _DEVICES)


def _events(profile: ProfileData, tracks: _Tracks) -> Iterator[str]:
    yield from _ops(profile.tables["ops"])
    yield from _calls(profile.tables["api_calls"])
    yield from _activities(profile.tables["activities"], tracks)
    yield from _arrows(profile, tracks)


def _track_names(profile: ProfileData, tracks: _Tracks) -> Iterator[str]:
    def event(what: str, process: int, thread: int, **args: str | int) -> str:
        return json.dumps({"ph": "M", "pid": process, "tid": thread, "name": what, "args": args})

    yield event("process_name", _HOST, 0, name="host")
    devices = {
        device.get("device_id"): str(device.get("name"))
        for device in profile.info.get("devices", [])
        if isinstance(device, dict)
    }
    for process in sorted({process for process, _ in tracks.labels}):
        device_id = process - _DEVICES
        name = f"device {device_id}: {devices.get(device_id, 'unknown')}"
        yield event("process_name", process, 0, name=name)
    for (process, thread), label in tracks.labels.items():
        yield event("thread_name", process, thread, name=label)
        yield event("thread_sort_index", process, thread, sort_index=thread)
    threads = np.unique(
        np.concatenate([profile.tables[name]["thread_id"] for name in ("ops", "api_calls")])
    )
    ops = profile.tables["ops"]
    cells = ops["thread_id"][ops.names("category").equals("cell")]
    main = int(cells[0]) if len(cells) else None
    for thread in sorted(threads.tolist(), key=lambda thread: (thread != main, thread)):
        name = "main thread" if thread == main else f"thread {thread}"
        yield event("thread_name", _HOST, thread, name=name)
        yield event("thread_sort_index", _HOST, thread, sort_index=int(thread != main))


def _ops(ops: Table) -> Iterator[str]:
    # Ops of an earlier profile, here for what they captured, have no place on this clock.
    ops = ops.take(np.flatnonzero(~ops.names("status").equals("earlier")))
    name, kind = _Quoted(ops.names("name")), _Quoted(ops.names("op_type"))
    args = _Arguments(ops.names("args"))
    nested = (ops["count"] <= 1) & (ops["suspended_ns"] == 0)
    for at in _batches(len(ops)):
        for title, cat, args_, is_nested, op_id, line, thread, start, length, times in zip(
            name[at],
            kind[at],
            args[at],
            nested[at].tolist(),
            ops["op_id"][at].tolist(),
            _ids(ops["line"][at]),
            ops["thread_id"][at].tolist(),
            _us(ops["start_ns"][at]),
            _us(np.maximum(ops["end_ns"][at] - ops["start_ns"][at], 0)),
            ops["count"][at].tolist(),
            strict=True,
        ):
            what = f'"pid":{_HOST},"tid":{thread},"cat":{cat},"name":{title}'
            more = f'"args":{{"op_id":{op_id},"line":{line},"count":{times},"args":{args_}}}'
            if is_nested:
                yield f'{{"ph":"X","ts":{start:.3f},"dur":{length:.3f},{what},{more}}}'
            else:
                pair = f'"id":"op {op_id}",{what}'
                yield f'{{"ph":"b","ts":{start:.3f},{pair},{more}}}'
                yield f'{{"ph":"e","ts":{start + length:.3f},{pair}}}'


def _calls(calls: Table) -> Iterator[str]:
    name = _Quoted(calls.names("name"))
    for at in _batches(len(calls)):
        for title, thread, start, length, correlation, result in zip(
            name[at],
            calls["thread_id"][at].tolist(),
            _us(calls["start_ns"][at]),
            _us(np.maximum(calls["end_ns"][at] - calls["start_ns"][at], 0)),
            _ids(calls["correlation_id"][at]),
            calls["return_value"][at].tolist(),
            strict=True,
        ):
            yield (
                f'{{"ph":"X","pid":{_HOST},"tid":{thread},"ts":{start:.3f},"dur":{length:.3f},'
                f'"cat":"api","name":{title},'
                f'"args":{{"correlation_id":{correlation},"return_value":{result}}}}}'
            )


def _activities(activities: Table, tracks: _Tracks) -> Iterator[str]:
    name, kind = _Quoted(activities.names("name")), _Quoted(activities.names("kind"))
    shape = [activities[f"{of}_{axis}"] for of in ("grid", "block") for axis in ("x", "y", "z")]
    for at in _batches(len(activities)):
        for title, cat, process, thread, start, length, correlation, op_id, size, xyz in zip(
            name[at],
            kind[at],
            tracks.process[at].tolist(),
            tracks.thread[at].tolist(),
            _us(activities["start_ns"][at]),
            _us(np.maximum(activities["end_ns"][at] - activities["start_ns"][at], 0)),
            _ids(activities["correlation_id"][at]),
            _ids(activities["op_id"][at]),
            _ids(activities["bytes"][at]),
            zip(*(_ids(axis[at]) for axis in shape), strict=True),
            strict=True,
        ):
            if cat == '"kernel"':
                detail = '"grid":[{},{},{}],"block":[{},{},{}]'.format(*xyz)
            else:
                detail = f'"bytes":{size}'
            yield (
                f'{{"ph":"X","pid":{process},"tid":{thread},"ts":{start:.3f},"dur":{length:.3f},'
                f'"cat":{cat},"name":{title},'
                f'"args":{{"correlation_id":{correlation},"op_id":{op_id},{detail}}}}}'
            )


def _arrows(profile: ProfileData, tracks: _Tracks) -> Iterator[str]:
    activities, calls = profile.tables["activities"], profile.tables["api_calls"]
    call = IdIndex(calls["correlation_id"]).rows(activities["correlation_id"])
    launched = (call >= 0) & ~activities.names("kind").equals("synchronization")
    rows = np.flatnonzero(launched)
    for at in _batches(len(rows)):
        for number, source, left, process, thread, arrived in zip(
            rows[at].tolist(),
            calls["thread_id"][call[rows[at]]].tolist(),
            _us(calls["start_ns"][call[rows[at]]]),
            tracks.process[rows[at]].tolist(),
            tracks.thread[rows[at]].tolist(),
            _us(activities["start_ns"][rows[at]]),
            strict=True,
        ):
            both = f'"id":{number},"cat":"launch","name":"launch"'
            yield f'{{"ph":"s","pid":{_HOST},"tid":{source},"ts":{left:.3f},{both}}}'
            yield f'{{"ph":"f","bp":"e","pid":{process},"tid":{thread},"ts":{arrived:.3f},{both}}}'


class _Quoted:
    """Names as JSON strings, each category escaped only once; indexed by a slice of rows."""

    missing = '"(unnamed)"'

    def __init__(self, names: Names) -> None:
        self._codes = names.codes
        self._texts = [*map(self.text, names.categories), self.missing]

    @staticmethod
    def text(category: str) -> str:
        """Return the JSON of one name."""
        return json.dumps(category)

    def __getitem__(self, rows: slice) -> list[str]:
        return [self._texts[code] for code in self._codes[rows].tolist()]


class _Arguments(_Quoted):
    """The ops' arguments as JSON; what JSON has no word for, such as NaN, as text."""

    missing = "null"

    @staticmethod
    def text(category: str) -> str:
        """Return the JSON of one op's arguments."""
        return json.dumps(json.loads(category, parse_constant=str))


def _batches(rows: int) -> Iterator[slice]:
    return (slice(i, i + _BATCH) for i in range(0, rows, _BATCH))


def _us(times: IntArray) -> list[float]:
    # Three decimals of it are exact to the nanosecond for more than a month.
    microseconds: list[float] = (times / 1000).tolist()
    return microseconds


def _ids(ids: IntArray) -> list[str]:
    return ["null" if i == MISSING else str(i) for i in ids.tolist()]
