"""Chrome trace JSON, which Perfetto and ``chrome://tracing`` open.

A thread of the host is a track with its ops and API calls; another track has the repeats of the
code. Each device is a process with its counters and one track per stream; in the trace of a job,
each process has the tracks of its devices. An arrow leads from an API call to each of its
activities.
"""

from __future__ import annotations

import json
import os
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from epprof_nb.analysis.base.devices import device_names
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.repeats import repeat_bounds, repeat_names
from epprof_nb.files.exporters.activity_tracks import DEVICES, ActivityTracks
from epprof_nb.files.exporters.device_counters import device_counters
from epprof_nb.files.exporters.json_rows import (
    Piece,
    Texts,
    batches,
    combinations,
    integers,
    join_rows,
    microseconds,
)
from epprof_nb.files.exporters.python_stacks import StackLabels
from epprof_nb.files.exporters.thread_tracks import host_threads, is_nested, is_shown
from epprof_nb.files.exporters.trace_file import trace_file
from epprof_nb.files.exporters.trace_processes import placed_profiles
from epprof_nb.util.thread_pool import ThreadPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.data.table import Table
    from epprof_nb.files.exporters.trace_processes import TraceProcess

Batch: TypeAlias = "tuple[int, Callable[[], memoryview]]"
"""A number of events, and the function that makes their JSON."""
_HOST = 1
"""Process id of the host; 0 has a special meaning in viewers."""
_REPEATS = 2**22 + 1
"""Thread id of the track of the repeats, larger than Linux gives to any thread."""
_INFO = ("started_at_epoch_ns", "wall_ns", "devices", "versions")
"""Entries of the profile's info that a trace includes."""
_MAX_THREADS = 4
_COMPRESSED = ("", ".gz")
"""Suffixes of names whose files are compressed."""


class _Place(NamedTuple):
    """The process that has a profile's host tracks, and what makes its ids differ from others'.

    ``first_id`` is added to the ids of arrows and frames; ``mark`` is part of the ids of ops.
    """

    pid: int = _HOST
    name: str = "host"
    first_id: int = 0
    mark: str = ""
    order: int | None = None


def to_chrome(profile: ProfileData, path: str | os.PathLike[str]) -> None:
    """Write a profile as Chrome trace JSON, atomically and without building it in memory.

    Parameters
    ----------
    profile
        The profile. Ops with a ``count`` over 1 and suspended ops do not nest as slices must, so
        they are written as asynchronous slices.
    path
        The file; an existing file is replaced. It is compressed with gzip, which Perfetto and
        ``chrome://tracing`` read, if its name ends in ``.gz`` or has no suffix, and plain JSON if
        it has another suffix. Times are microseconds since the profile's start, with three
        decimals.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    tracks = ActivityTracks(profile)
    tables, stacks = profile.tables, StackLabels(profile)
    # Each activity has an arrow with two ends.
    lines = len(repeat_bounds(profile.info)[0])
    lines += len(tables["ops"]) + len(tables["api_calls"]) + 3 * len(tables["activities"])
    with trace_file(path, lines, " events", compressed=_COMPRESSED) as (stream, bar):
        stream.write(f'{{"displayTimeUnit": "ns", "otherData": {_other(profile)}, '.encode())
        stream.write(b'"traceEvents": [\n')
        # The head is never empty: it has the name of the host's process.
        stream.write(",\n".join(_head(profile, tracks, _Place())).encode())
        for events, text in _made_in_order(_events(profile, tracks, stacks, _Place())):
            stream.write(text)
            bar.update(events)
        frames = json.dumps(dict(_stack_frames(stacks, 0)))
        stream.write(f'\n], "stackFrames": {frames}}}\n'.encode())


def job_to_chrome(processes: Sequence[TraceProcess], path: str | os.PathLike[str]) -> None:
    """Write a job as Chrome trace JSON, with one process per process of the job.

    Parameters
    ----------
    processes
        The processes; their profiles are loaded one after another.
    path
        The file, as for `to_chrome`. Times are microseconds on the job's clock.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    with trace_file(path, len(processes), " processes", compressed=_COMPRESSED) as (stream, bar):
        # Without the mark of a profile: the trace has several.
        stream.write(b'{"displayTimeUnit": "ns", "traceEvents": [\n')
        frames: dict[str, dict[str, str]] = {}
        first_id, comma = 0, ""
        for number, (process, pid, profile) in enumerate(placed_profiles(processes)):
            place = _Place(pid, process.name, first_id, f"{number} ", number)
            tracks = ActivityTracks(profile).within(pid, profile.info)
            stacks = StackLabels(profile)
            stream.write((comma + ",\n".join(_head(profile, tracks, place))).encode())
            for _, text in _made_in_order(_events(profile, tracks, stacks, place)):
                stream.write(text)
            frames.update(_stack_frames(stacks, first_id))
            first_id += max(len(profile.tables["activities"]), len(stacks.parent))
            comma = ",\n"
            bar.update()
        stream.write(f'\n], "stackFrames": {json.dumps(frames)}}}\n'.encode())


def _other(profile: ProfileData) -> str:
    """Return the mark that `epprof_nb.files.readers.chrome_trace` looks for, and the info."""
    info = {key: profile.info[key] for key in _INFO if key in profile.info}
    return json.dumps({"epprof_nb": info}, default=str)


def _stack_frames(stacks: StackLabels, first: int) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the frames of all stacks by id; ``sf`` of an event is the innermost one."""
    for row, (label, parent) in enumerate(
        zip(stacks.frames[:-1], stacks.parent.tolist(), strict=True), first
    ):
        frame = {"name": str(label)}
        yield str(row), frame if parent == MISSING else frame | {"parent": str(parent + first)}


def _made_in_order(batches: Iterable[Batch]) -> Iterator[tuple[int, memoryview]]:
    """Make the JSON of the batches in threads, a few batches ahead.

    NumPy and Arrow release the GIL, so this uses several cores.
    """
    workers = min(os.cpu_count() or 1, _MAX_THREADS)
    pending: deque[tuple[int, Future[memoryview]]] = deque()
    with ThreadPool(workers) as pool:
        for count, make in batches:
            pending.append((count, pool.submit(make)))
            if len(pending) > workers:
                events, made = pending.popleft()
                yield events, made.result()
        for events, made in pending:
            yield events, made.result()


def _head(profile: ProfileData, tracks: ActivityTracks, place: _Place) -> Iterator[str]:
    yield from _track_names(profile, tracks, place)
    for counter in device_counters(profile):
        pid, prefix = tracks.process_of(counter.device_id)
        name = json.dumps(prefix + counter.name)
        head = f'{{"ph":"C","pid":{pid},"tid":0,"name":{name}'
        for time, value in zip(counter.times.tolist(), counter.values.tolist(), strict=True):
            yield f'{head},"ts":{time / 1000:.3f},"args":{json.dumps({counter.unit: value})}}}'


def _events(
    profile: ProfileData, tracks: ActivityTracks, stacks: StackLabels, place: _Place
) -> Iterator[Batch]:
    """Yield batches of events, each event with the comma that separates it from the one before."""
    yield from _repeats(profile, place)
    yield from _ops(profile.tables["ops"], place)
    yield from _calls(profile.tables["api_calls"], place)
    yield from _activities(profile.tables["activities"], tracks, stacks, place)
    yield from _arrows(profile, tracks, place)


def _track_names(profile: ProfileData, tracks: ActivityTracks, place: _Place) -> Iterator[str]:
    def event(what: str, process: int, thread: int, **args: str | int) -> str:
        return json.dumps({"ph": "M", "pid": process, "tid": thread, "name": what, "args": args})

    yield event("process_name", place.pid, 0, name=place.name)
    if place.order is not None:
        yield event("process_sort_index", place.pid, 0, sort_index=place.order)
    names = device_names(profile.info)
    for process in sorted({process for process, _ in tracks.labels} - {place.pid}):
        device_id = process - DEVICES
        name = f"device {device_id}: {names.get(device_id, 'unknown')}"
        yield event("process_name", process, 0, name=name)
    for (process, thread), label in tracks.labels.items():
        yield event("thread_name", process, thread, name=label)
        yield event("thread_sort_index", process, thread, sort_index=thread)
    if len(repeat_bounds(profile.info)[0]):
        unit = repeat_names(profile.info).unit
        yield event("thread_name", place.pid, _REPEATS, name=f"{unit}s")
        yield event("thread_sort_index", place.pid, _REPEATS, sort_index=-1)
    for rank, (thread, name) in enumerate(host_threads(profile).items()):
        yield event("thread_name", place.pid, thread, name=name)
        yield event("thread_sort_index", place.pid, thread, sort_index=rank)


def _repeats(profile: ProfileData, place: _Place) -> Iterator[Batch]:
    start, end = repeat_bounds(profile.info)
    unit, first = repeat_names(profile.info)
    for at in batches(np.ones(len(start), bool), 0):
        yield len(at), partial(_repeat_slices, place, unit, start[at], end[at], at + first)


def _repeat_slices(
    place: _Place, unit: str, start: IntArray, end: IntArray, number: IntArray
) -> memoryview:
    repeat = integers(number)
    return join_rows(
        ',\n{"ph":"X","ts":', *microseconds(start, ',"dur":'),
        *microseconds(end - start, f',"pid":{place.pid},"tid":{_REPEATS},"cat":"{unit}",'),
        f'"name":"{unit} ', repeat, f'","args":{{"{unit}":', repeat, "}}",
    )  # fmt: skip


def _ops(ops: Table, place: _Place) -> Iterator[Batch]:
    shown, nested = is_shown(ops), is_nested(ops)
    title = Texts(_op_title, ops.names("op_type"), ops.names("name"))
    args = Texts(_op_args, ops.names("args"))
    longest = title.longest + args.longest
    for at in batches(shown & nested, longest):
        yield len(at), partial(_slices, place, ops, title, args, at)
    for at in batches(shown & ~nested, 2 * longest):
        yield 2 * len(at), partial(_asynchronous_slices, place, ops, title, args, at)


def _slices(place: _Place, ops: Table, title: Texts, args: Texts, at: IntArray) -> memoryview:
    start, end = ops["start_ns"][at], ops["end_ns"][at]
    return join_rows(
        ',\n{"ph":"X","ts":', *microseconds(start, ',"dur":'),
        *microseconds(np.maximum(end - start, 0), f',"pid":{place.pid},"tid":'),
        integers(ops["thread_id"][at]), title[at],
        *_op_details(ops, args, at, integers(ops["op_id"][at])),
    )  # fmt: skip


def _asynchronous_slices(
    place: _Place, ops: Table, title: Texts, args: Texts, at: IntArray
) -> memoryview:
    start, op_id = ops["start_ns"][at], integers(ops["op_id"][at])
    named = f',"id":"op {place.mark}'
    pair = [op_id, f'","pid":{place.pid},"tid":', integers(ops["thread_id"][at]), title[at]]
    return join_rows(
        ',\n{"ph":"b","ts":', *microseconds(start, named), *pair,
        *_op_details(ops, args, at, op_id),
        ',\n{"ph":"e","ts":', *microseconds(np.maximum(ops["end_ns"][at], start), named),
        *pair, "}",
    )  # fmt: skip


def _op_details(ops: Table, args: Texts, at: IntArray, op_id: Piece) -> list[Piece]:
    return [
        ',"args":{"op_id":', op_id, ',"line":', integers(ops["line"][at], optional=True),
        ',"count":', integers(ops["count"][at]), args[at],
    ]  # fmt: skip


def _op_title(op_type: str | None, name: str | None) -> str:
    return f',"cat":{_quoted(op_type)},"name":{_quoted(name)}'


def _op_args(args: str | None) -> str:
    """Return the end of an op's event; values that JSON lacks, such as NaN, become strings."""
    valid = "null" if args is None else json.dumps(json.loads(args, parse_constant=str))
    return f',"args":{valid}}}}}'


def _calls(calls: Table, place: _Place) -> Iterator[Batch]:
    name = Texts(lambda name: f'{_quoted(name)},"args":{{"correlation_id":', calls.names("name"))
    for at in batches(len(calls), name.longest):
        yield len(at), partial(_call_slices, place, calls, name, at)


def _call_slices(place: _Place, calls: Table, name: Texts, at: IntArray) -> memoryview:
    start, end = calls["start_ns"][at], calls["end_ns"][at]
    return join_rows(
        combinations(_head_of("X", place.pid), calls["thread_id"][at]),
        *microseconds(start, ',"dur":'),
        *microseconds(np.maximum(end - start, 0), ',"cat":"api","name":'),
        name[at],
        integers(calls["correlation_id"][at], optional=True),
        combinations(
            partial(_call_result, place), calls["return_value"][at], calls["stack_id"][at]
        ),
    )


def _call_result(place: _Place, value: int, stack: int) -> str:
    result = "" if value == MISSING else f',"return_value":{value}'
    return f"{result}}}{_frame(place, stack)}}}"


def _frame(place: _Place, stack: int) -> str:
    return "" if stack == MISSING else f',"sf":"{stack + place.first_id}"'


def _activities(
    activities: Table, tracks: ActivityTracks, stacks: StackLabels, place: _Place
) -> Iterator[Batch]:
    title = Texts(_activity_title, activities.names("kind"), activities.names("name"))
    is_kernel = activities.names("kind").equals("kernel")
    for at in batches(len(activities), title.longest):
        made = partial(_activity_slices, place, activities, tracks, stacks, title, is_kernel, at)
        yield len(at), made


def _activity_slices(  # noqa: PLR0917 - columns of one call
    place: _Place,
    activities: Table,
    tracks: ActivityTracks,
    stacks: StackLabels,
    title: Texts,
    is_kernel: BoolArray,
    at: IntArray,
) -> memoryview:
    stack = activities["stack_id"][at]

    def launched_at(of_row: int) -> str:
        label = stacks.launched_at[of_row]
        return "" if label is None else f',"launched_at":{json.dumps(label)}'

    start, end = activities["start_ns"][at], activities["end_ns"][at]
    size = np.where(is_kernel[at], 0, activities["bytes"][at])
    shape = [activities[f"{of}_{axis}"][at] for of in ("grid", "block") for axis in "xyz"]
    return join_rows(
        combinations(_head_of("X"), tracks.process[at], tracks.thread[at]),
        *microseconds(start, ',"dur":'),
        *microseconds(np.maximum(end - start, 0), ',"cat":'),
        title[at],
        integers(activities["correlation_id"][at], optional=True),
        ',"op_id":',
        integers(activities["op_id"][at], optional=True),
        combinations(launched_at, stack),
        combinations(_activity_detail, is_kernel[at].astype(np.int8), size, *shape),
        combinations(lambda of_row: f"{_frame(place, of_row)}}}", stack),
    )


def _activity_title(kind: str | None, name: str | None) -> str:
    return f'{_quoted(kind)},"name":{_quoted(name)},"args":{{"correlation_id":'


def _activity_detail(is_kernel: int, size: int, *shape: int) -> str:
    """Return the end of an activity's event: the shape of a kernel's launch, or the bytes."""
    if not is_kernel:
        return f',"bytes":{_optional(size)}}}'
    x, y, z, block_x, block_y, block_z = map(_optional, shape)
    return f',"grid":[{x},{y},{z}],"block":[{block_x},{block_y},{block_z}]}}'


def _arrows(profile: ProfileData, tracks: ActivityTracks, place: _Place) -> Iterator[Batch]:
    activities, calls = profile.tables["activities"], profile.tables["api_calls"]
    call = IdIndex(calls["correlation_id"]).rows(activities["correlation_id"])
    launched = (call >= 0) & ~activities.names("kind").equals("synchronization")
    for at in batches(launched, 0):
        yield 2 * len(at), partial(_arrow_ends, place, activities, calls, tracks, call, at)


def _arrow_ends(  # noqa: PLR0917 - columns of one call
    place: _Place,
    activities: Table,
    calls: Table,
    tracks: ActivityTracks,
    call: IntArray,
    at: IntArray,
) -> memoryview:
    source, number = call[at], integers(at + place.first_id)
    both = ',"cat":"launch","name":"launch"}'
    return join_rows(
        combinations(_head_of("s", place.pid), calls["thread_id"][source]),
        *microseconds(calls["start_ns"][source], ',"id":'),
        number,
        both,
        combinations(_head_of('f","bp":"e'), tracks.process[at], tracks.thread[at]),
        *microseconds(activities["start_ns"][at], ',"id":'),
        number,
        both,
    )


def _head_of(phase: str, *process: int) -> Callable[..., str]:
    """Return a function from the process, unless given here, and the thread to an event's head."""

    def head(*track: int) -> str:
        pid, tid = (*process, *track)
        return f',\n{{"ph":"{phase}","pid":{pid},"tid":{tid},"ts":'

    return head


def _quoted(name: str | None) -> str:
    return json.dumps("(unnamed)" if name is None else name)


def _optional(value: int) -> str:
    return "null" if value == MISSING else str(value)
