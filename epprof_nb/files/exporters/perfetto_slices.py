"""Slices of a trace in Perfetto's format: ops, API calls and activities, with args and arrows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.arrays.types import MISSING
from epprof_nb.files.exporters.perfetto_packets import BATCH, Events
from epprof_nb.files.exporters.python_stacks import StackLabels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.names import CategoryColumn
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.files.exporters.activity_tracks import ActivityTracks
    from epprof_nb.files.exporters.perfetto_packets import Trace
    from epprof_nb.files.exporters.thread_tracks import ThreadTrack

_ACTIVITY_ARGS = ("correlation_id", "op_id")
_COPY_ARGS = ("bytes",)
_SHAPE_ARGS = tuple(f"{of}_{axis}" for of in ("grid", "block") for axis in "xyz")


class Flows:
    """The arrows from API calls to their activities: one for each activity.

    Attributes
    ----------
    has_call
        bool array: whether an arrow leads to the activity; its id is its row plus `first`.
    """

    def __init__(self, profile: ProfileData, trace: Trace, first: int) -> None:
        self.first = first
        activities, calls = profile.tables["activities"], profile.tables["api_calls"]
        call = IdIndex(calls["correlation_id"]).rows(activities["correlation_id"])
        self.has_call = (call >= 0) & ~activities.names("kind").equals("synchronization")
        rows = np.flatnonzero(self.has_call)
        rows = rows[np.argsort(call[rows], kind="stable")]
        self._bounds = np.searchsorted(call[rows], np.arange(len(calls) + 1))
        self._encoded, self._width = trace.arrows("flow_ids", rows + first)

    def of_call(self, row: int) -> bytes:
        """Return the encoded arrows that start at a call."""
        begin, end = self._bounds[row : row + 2].tolist()
        return self._encoded[begin * self._width : end * self._width]


class HostSlices:
    """Ops and API calls of a profile; the columns are read once for all tracks."""

    def __init__(self, profile: ProfileData, trace: Trace, flows: Flows) -> None:
        ops, calls = profile.tables["ops"], profile.tables["api_calls"]
        self._trace, self._ops = trace, len(ops)
        self._op_args = {name: ops[name] for name in ("op_id", "line", "count")}
        self._call_args = {name: calls[name] for name in ("correlation_id", "return_value")}
        self._names = _Texts(ops.names("name"), trace, "event_names")
        self._types = _Texts(ops.names("op_type"), trace, "event_categories")
        self._called = _Texts(calls.names("name"), trace, "event_names")
        args, stacks = ops.names("args"), StackLabels(profile)
        self._arg_codes, self._call_stack = args.codes, calls["stack_id"]
        self._own_args = _Encoded(
            trace, lambda code: {} if code == MISSING else _arguments(args.categories[code])
        )
        self._stacks, self._flows = _Encoded(trace, stacks.args), flows

    def write(self, track: ThreadTrack, uuid: int) -> Iterator[int]:
        """Write the events of a track, and yield the numbers of those that were written."""
        for begin in range(0, len(track.slices), BATCH):
            at = slice(begin, begin + BATCH)
            events = self._events(track.slices[at], track.begins[at], track.times[at])
            self._trace.slices(uuid, events)
            yield len(events.times)

    def _events(self, rows: IntArray, begins: BoolArray, times: IntArray) -> Events:
        is_op = rows < self._ops
        ops, calls = rows[is_op], rows[~is_op] - self._ops

        def both(of_ops: NDArray[Any] | int, of_calls: NDArray[Any] | int) -> IntArray:
            values = np.empty(len(rows), np.int64)
            values[is_op], values[~is_op] = of_ops, of_calls
            return values

        args = {name: both(column[ops], MISSING) for name, column in self._op_args.items()}
        args |= {name: both(MISSING, column[calls]) for name, column in self._call_args.items()}
        keys = both(self._arg_codes[ops], self._call_stack[calls])
        columns = (column.tolist() for column in (rows, keys, begins))
        return Events(
            begins,
            times,
            both(self._names.numbers(ops), self._called.numbers(calls)),
            both(self._types.numbers(ops), self._trace.interned("event_categories", "api")),
            args,
            [
                self._tail(row, key) if starts else b""
                for row, key, starts in zip(*columns, strict=True)
            ],
        )

    def _tail(self, row: int, key: int) -> bytes:
        if row < self._ops:
            return self._own_args[key]
        return self._stacks[key] + self._flows.of_call(row - self._ops)


class ActivitySlices:
    """Activities of a profile by track; the columns are read and sorted once for all tracks."""

    def __init__(
        self, profile: ProfileData, tracks: ActivityTracks, trace: Trace, flows: Flows
    ) -> None:
        activities = profile.tables["activities"]
        self._trace, self._flows = trace, flows
        self._start = activities["start_ns"]
        self._end = np.maximum(activities["end_ns"], self._start)
        codes, first = group_codes(tracks.process, tracks.thread)
        order = np.lexsort((self._end, self._start, codes))
        bounds = np.searchsorted(codes[order], np.arange(1, len(first)))
        keys = zip(tracks.process[first].tolist(), tracks.thread[first].tolist(), strict=True)
        self._rows = dict(zip(keys, np.split(order, bounds), strict=False))
        self._names = _Texts(activities.names("name"), trace, "event_names")
        self._kinds = _Texts(activities.names("kind"), trace, "event_categories")
        self._is_kernel = activities.names("kind").equals("kernel")
        columns = (*_ACTIVITY_ARGS, *_SHAPE_ARGS, *_COPY_ARGS)
        self._args = {name: activities[name] for name in columns}
        self._stacks = _Encoded(trace, StackLabels(profile).args)
        self._stack = activities["stack_id"]

    def write(self, process: int, thread: int, uuid: int) -> Iterator[int]:
        """Write the events of a track, and yield the numbers of those that were written."""
        rows = self._rows[process, thread]
        for begin in range(0, len(rows), BATCH):
            events = self._events(rows[begin : begin + BATCH])
            self._trace.slices(uuid, events)
            yield len(events.times)

    def _events(self, rows: IntArray) -> Events:
        tails = [b""] * (2 * len(rows))
        arrows, width = self._trace.arrows("terminating_flow_ids", rows + self._flows.first)
        has_arrow = self._flows.has_call[rows].tolist()
        for i, stack in enumerate(self._stack[rows].tolist()):
            arrow = arrows[i * width : (i + 1) * width] if has_arrow[i] else b""
            tails[2 * i] = self._stacks[stack] + arrow
        times = np.stack([self._start[rows], self._end[rows]], axis=1).ravel()
        rows = np.repeat(rows, 2)
        is_kernel = self._is_kernel[rows]
        args = {name: column[rows] for name, column in self._args.items()}
        args |= {name: np.where(is_kernel, args[name], MISSING) for name in _SHAPE_ARGS}
        args |= {name: np.where(is_kernel, MISSING, args[name]) for name in _COPY_ARGS}
        begins = np.tile([True, False], len(rows) // 2)
        numbers = self._names.numbers(rows), self._kinds.numbers(rows)
        return Events(begins, times, *numbers, args, tails)


class _Texts:
    """Numbers of the interned names of a column by row."""

    def __init__(self, column: CategoryColumn, trace: Trace, field: str) -> None:
        self._codes, self._texts = column.codes, (*column.categories, "(unnamed)")
        self._numbers = np.zeros(len(self._texts), np.int64)
        self._trace, self._field = trace, field

    def numbers(self, rows: IntArray) -> IntArray:
        codes = self._codes[rows]
        for code in np.unique(codes[self._numbers[codes] == 0]).tolist():
            self._numbers[code] = self._trace.interned(self._field, self._texts[code])
        return self._numbers[codes]


class _Encoded(dict[int, bytes]):
    """Encoded arguments of events by a number, such as that of their stack."""

    def __init__(self, trace: Trace, args: Callable[[int], Mapping[str, str | float]]) -> None:
        self._trace, self._args = trace, args

    def __missing__(self, key: int) -> bytes:
        encoded = self[key] = self._trace.arguments(self._args(key))
        return encoded


def _arguments(text: str) -> dict[str, str | float]:
    """Return the arguments of an op; other values than scalars become JSON."""
    values = json.loads(text)
    if not isinstance(values, dict):
        return {}
    return {
        f"args.{name}": value if _is_scalar(value) else json.dumps(value)
        for name, value in values.items()
    }


def _is_scalar(value: object) -> bool:
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    return isinstance(value, str | float)
