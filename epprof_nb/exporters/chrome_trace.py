"""Chrome trace JSON, which Perfetto and ``chrome://tracing`` open.

A thread of the host is a track with its ops and API calls; another track has the repeats of the
code. Each device is a process with its counters and one track per stream. An arrow leads from an
API call to each of its activities.
"""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.devices import device_names
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.arrays.row_packing import pack_rows
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.repeats import repeat_bounds
from epprof_nb.exporters.chrome_counters import counters
from epprof_nb.formats.atomic_file import replacing
from epprof_nb.util.progress_bar import progress_bar

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.names import CategoryColumn
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.data.table import Table

_HOST = 1
_DEVICES = 3
"""Process ids of the host and of device 0; 0 has a special meaning in viewers."""
_REPEATS = 2**22 + 1
"""Thread id of the track of the repeats, larger than Linux gives to any thread."""
_BATCH = 50_000


def to_chrome(profile: ProfileData, path: str | os.PathLike[str]) -> None:
    """Write a profile as Chrome trace JSON, atomically and without building it in memory.

    Parameters
    ----------
    profile
        The profile. Ops with a ``count`` over 1 and suspended ops do not nest as slices must, so
        they are written as asynchronous slices.
    path
        The file; an existing file is replaced. Times are microseconds since the profile's start,
        with three decimals.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    tracks = _Tracks(profile)
    events = _events(profile, tracks)
    tables = profile.tables
    # Each activity has an arrow with two ends.
    lines = len(repeat_bounds(profile.info)[0])
    lines += len(tables["ops"]) + len(tables["api_calls"]) + 3 * len(tables["activities"])
    with (
        replacing(path) as file,
        progress_bar(f"Writing {Path(path).name}", lines, " events") as bar,
    ):
        file.write(b'{"displayTimeUnit": "ns", "traceEvents": [\n')
        # The head is never empty: it has the name of the host's process.
        file.write(",\n".join(_head(profile, tracks)).encode())
        while batch := list(islice(events, _BATCH)):
            file.write((",\n" + ",\n".join(batch)).encode())
            bar.update(len(batch))
        file.write(b"\n]}\n")


class _Tracks:
    """Tracks of the activities, on which slices do not overlap.

    Attributes
    ----------
    process, thread
        int64 arrays, one value per activity: process and thread id of its track.
    labels
        ``(process, thread)`` to name of the track.
    """

    def __init__(self, profile: ProfileData) -> None:
        activities = profile.tables["activities"]
        starts = activities["start_ns"]
        ends = np.maximum(activities["end_ns"], starts)
        # A wait lasts as long as the work it waits for, which is on the track of the stream.
        is_wait = activities.names("kind").equals("synchronization")
        owner = np.where(is_wait, activities["thread_id"], activities["stream_id"])
        groups, first = group_codes(activities["device_id"], is_wait.astype(np.int8), owner)
        order = np.argsort(groups, kind="stable")
        bounds = np.searchsorted(groups[order], np.arange(len(first) + 1))
        self.process = activities["device_id"] + _DEVICES
        self.thread = np.zeros(len(activities), np.int64)
        self.labels: dict[tuple[int, int], str] = {}
        thread = 1
        for group in np.lexsort((owner[first], is_wait[first], self.process[first])).tolist():
            rows = order[bounds[group] : bounds[group + 1]]
            track = pack_rows(starts[rows], ends[rows])
            self.thread[rows] = thread + track
            number = int(owner[first[group]])
            name = f"waits of thread {number}" if is_wait[first[group]] else f"stream {number}"
            for i in range(int(track.max()) + 1):
                label = name if i == 0 else f"{name}, overlapping ({i + 1})"
                self.labels[int(self.process[first[group]]), thread + i] = label
            thread += int(track.max()) + 1
        # Viewers take the thread with the id of its process for the main thread, and sort it
        # first: skip this id.
        self.thread += self.thread >= self.process
        self.labels = {(p, t + (t >= p)): label for (p, t), label in self.labels.items()}


def _head(profile: ProfileData, tracks: _Tracks) -> Iterator[str]:
    yield from _track_names(profile, tracks)
    yield from counters(profile, _DEVICES)


def _events(profile: ProfileData, tracks: _Tracks) -> Iterator[str]:
    yield from _repeats(profile)
    yield from _ops(profile.tables["ops"])
    yield from _calls(profile.tables["api_calls"])
    yield from _activities(profile.tables["activities"], tracks)
    yield from _arrows(profile, tracks)


def _track_names(profile: ProfileData, tracks: _Tracks) -> Iterator[str]:
    def event(what: str, process: int, thread: int, **args: str | int) -> str:
        return json.dumps({"ph": "M", "pid": process, "tid": thread, "name": what, "args": args})

    yield event("process_name", _HOST, 0, name="host")
    names = device_names(profile.info)
    for process in sorted({process for process, _ in tracks.labels}):
        device_id = process - _DEVICES
        name = f"device {device_id}: {names.get(device_id, 'unknown')}"
        yield event("process_name", process, 0, name=name)
    for (process, thread), label in tracks.labels.items():
        yield event("thread_name", process, thread, name=label)
        yield event("thread_sort_index", process, thread, sort_index=thread)
    if len(repeat_bounds(profile.info)[0]):
        yield event("thread_name", _HOST, _REPEATS, name="repeats")
        yield event("thread_sort_index", _HOST, _REPEATS, sort_index=-1)
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


def _repeats(profile: ProfileData) -> Iterator[str]:
    for number, (start, end) in enumerate(zip(*repeat_bounds(profile.info), strict=True)):
        yield (
            f'{{"ph":"X","pid":{_HOST},"tid":{_REPEATS},"ts":{start / 1000:.3f},'
            f'"dur":{(end - start) / 1000:.3f},"cat":"repeat","name":"repeat {number}",'
            f'"args":{{"repeat":{number}}}}}'
        )


def _ops(ops: Table) -> Iterator[str]:
    # Ops of an earlier profile, which captured graphs, have no time on this clock.
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
    """Names as JSON strings, by slices of rows; each category is escaped once."""

    missing = '"(unnamed)"'

    def __init__(self, names: CategoryColumn) -> None:
        self._codes = names.codes
        self._texts = [*map(self.text, names.categories), self.missing]

    @staticmethod
    def text(category: str) -> str:
        """Return the JSON of one name."""
        return json.dumps(category)

    def __getitem__(self, rows: slice) -> list[str]:
        return [self._texts[code] for code in self._codes[rows].tolist()]


class _Arguments(_Quoted):
    """Arguments of the ops as JSON; values that JSON lacks, such as NaN, become strings."""

    missing = "null"

    @staticmethod
    def text(category: str) -> str:
        """Return the JSON of one op's arguments."""
        return json.dumps(json.loads(category, parse_constant=str))


def _batches(rows: int) -> Iterator[slice]:
    return (slice(i, i + _BATCH) for i in range(0, rows, _BATCH))


def _us(times: IntArray) -> list[float]:
    # As floats, three decimals are exact for more than a month.
    microseconds: list[float] = (times / 1000).tolist()
    return microseconds


def _ids(ids: IntArray) -> list[str]:
    return ["null" if i == MISSING else str(i) for i in ids.tolist()]
