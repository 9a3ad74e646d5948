"""Chrome traces: from `prof.to_chrome`, and with slices of host code (viztracer, JAX).

Slices become ops, nested by thread, except slices of XLA's devices. The traces of this package have
the tables' columns in the arguments of their events.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import orjson

from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.repeats import with_repeats
from epprof_nb.data.schema import ACTIVITIES, API_CALLS, MISSING, OPS
from epprof_nb.files.readers.correlation import correlated
from epprof_nb.files.readers.finish_tables import from_zero, with_stacks
from epprof_nb.files.readers.nesting import OpStacks
from epprof_nb.files.readers.rows import Rows, Threads, integer, nanoseconds, signed, text
from epprof_nb.files.readers.xla_devices import XlaDevices

if TYPE_CHECKING:
    from epprof_nb.data.table import Table
    from epprof_nb.files.readers.json_events import JsonEvents
    from epprof_nb.files.readers.rows import Budget, Skipped
    from epprof_nb.files.readers.xla_devices import XlaTracks

_MAX_ARGS = 2_000
_SHAPE = ("grid", "block")
_UNFINISHED = "that begin a slice that does not end"
_UNWRITABLE = "' arguments, which are nested too deeply or have integers of more than 64 bits"
_LACKS = (
    "Read from a Chrome trace, which has no sources, graphs, memory and overhead tables, and not "
    "all columns of the other tables."
)
_TRACK = re.compile(r"(stream|waits of thread) (-?\d+)")
_FIRST_DEVICE = 3
"""Process id of device 0 in the traces of this package."""


def is_own(head: bytes) -> bool:
    """Return whether `prof.to_chrome` wrote the text before the first event."""
    return b'"otherData": {"epprof_nb":' in head


class _Slices:
    """The ops of a trace while its events are read."""

    def __init__(self, tracks: XlaTracks, budget: Budget, skipped: Skipped) -> None:
        self.threads = Threads()
        self.ops = Rows(OPS, ("name", "op_type", "args", "thread_id", "start_ns", "end_ns"), budget)
        self.devices = XlaDevices(tracks, self.threads, budget, skipped)
        self._budget, self._skipped = budget, skipped
        self._begun: dict[int, list[tuple[tuple[str | None, ...], int]]] = {}

    def add(self, event: dict[str, Any]) -> None:
        """Add a slice; count other events as skipped, except for metadata."""
        if not event:
            return  # XLA ends its list with an empty object
        phase, start = event.get("ph"), nanoseconds(event.get("ts"))
        if phase == "M":
            self.devices.describe(event)
            return
        if phase not in ("X", "B", "E"):
            self._skipped.add(f"of phase {str(phase)[:20]!r}")
            return
        length = nanoseconds(event.get("dur")) if phase == "X" else 0
        if start is None or length is None or length < 0:
            self._skipped.add("without a valid time and duration")
            return
        if phase == "X" and self.devices.add(event, start, start + length):
            return
        thread = self.threads(event.get("pid"), event.get("tid"))
        if phase == "E":
            self._end(thread, start)
            return
        about = text(event.get("name")), text(event.get("cat")), _args(event, self._skipped)
        if phase == "X":
            self.ops.append(*about, thread, start, start + length)
        else:
            self._budget.take(100 + sum(len(part or "") for part in about))
            self._begun.setdefault(thread, []).append((about, start))

    def _end(self, thread: int, end: int) -> None:
        if not self._begun.get(thread):
            self._skipped.add("that end a slice that has not begun")
            return
        about, start = self._begun[thread].pop()
        if start > end:
            self._skipped.add("that end a slice before it begins")
        else:
            self.ops.append(*about, thread, start, end)

    @property
    def unfinished(self) -> int:
        """Number of slices that have begun and not ended."""
        return sum(map(len, self._begun.values()))


def read(events: JsonEvents, tracks: XlaTracks, budget: Budget, skipped: Skipped) -> ProfileData:
    """Read the slices of a Chrome trace as ops, and slices of XLA's devices as activities."""
    made = _Slices(tracks, budget, skipped)
    for piece in events:
        for event in piece:
            made.add(event)
    skipped.add(_UNFINISHED, made.unfinished)
    tables, _ = from_zero({"ops": made.ops.table(), **made.devices.tables})
    notes = [*made.threads.notes(), *tracks.notes()]
    info: dict[str, Any] = {"notes": notes}
    if len(tables["activities"]):
        info["devices"] = made.devices.devices
        return ProfileData(correlated(tables, "chrome trace", notes), info)
    tables["ops"], _ = with_stacks(tables["ops"], "chrome trace")
    return ProfileData(tables, info)


def _args(event: dict[str, Any], skipped: Skipped) -> str | None:
    args = event.get("args")
    if type(args) is not dict or not args:
        return None
    written = _written(args, skipped)
    if written and len(written) > _MAX_ARGS:
        skipped.add(f"' arguments, which have more than {_MAX_ARGS:,} characters")
        return None
    return written


def _written(args: dict[str, Any], skipped: Skipped) -> str | None:
    """Return arguments as JSON; count them and return None if they cannot be written."""
    try:
        return orjson.dumps(args).decode()
    except orjson.JSONEncodeError:
        skipped.add(_UNWRITABLE)
        return None


def read_own(events: JsonEvents, budget: Budget, skipped: Skipped) -> ProfileData:
    """Read a trace written by `epprof_nb.files.exporters.chrome_trace.to_chrome`."""
    made = _OwnTables(budget, skipped)
    for piece in events:
        for event in piece:
            made.add(event)
    skipped.add(_UNFINISHED, made.unfinished)
    other = events.metadata.get("otherData")
    info = other.get("epprof_nb") if type(other) is dict else None
    info = dict(info) if type(info) is dict else {}
    if made.repeats:
        info["repeats"] = sorted(made.repeats)
    info["notes"] = [_LACKS]
    tables = {"ops": made.finished_ops(), "activities": made.finished_activities()}
    calls = made.calls.table()
    tables["api_calls"] = calls.replace(duration_ns=calls["end_ns"] - calls["start_ns"])
    tables = {name: table.in_start_order() for name, table in tables.items()}
    return ProfileData(with_repeats(tables, info), info)


class _Op(NamedTuple):
    """Columns of an op in an event of this package, except for its times."""

    op_id: int
    name: str | None
    op_type: str | None
    thread_id: int
    executions: int
    line: int | None
    args: str | None


class _OwnTables:
    """The tables of a trace of this package while its events are read."""

    def __init__(self, budget: Budget, skipped: Skipped) -> None:
        self._budget, self._skipped = budget, skipped
        self.repeats: list[list[int]] = []
        self._tracks: dict[tuple[object, object], tuple[str, int]] = {}
        self._begun: dict[str, tuple[int, _Op | None]] = {}
        self._ops = Rows(OPS, (
            "op_id", "name", "op_type", "thread_id", "count", "line", "args", "start_ns", "end_ns",
        ), budget)  # fmt: skip
        self.calls = Rows(API_CALLS, (
            "name", "thread_id", "start_ns", "end_ns", "correlation_id", "return_value",
        ), budget)  # fmt: skip
        self._activities = Rows(ACTIVITIES, (
            "kind", "name", "device_id", "stream_id", "thread_id", "start_ns", "end_ns",
            "correlation_id", "op_id", "bytes", "grid_x", "grid_y", "grid_z", "block_x", "block_y",
            "block_z",
        ), budget)  # fmt: skip

    def add(self, event: dict[str, Any]) -> None:
        """Add an event to its table; arrows and counters follow from the others."""
        phase, args = event.get("ph"), event.get("args")
        args = args if type(args) is dict else {}
        if phase == "M" and event.get("name") == "thread_name":
            match = _TRACK.match(text(args.get("name")) or "")
            if match:
                key = event.get("pid"), event.get("tid")
                self._budget.take(500)
                number = signed(match[2])
                self._tracks[_hashable(key)] = match[1], MISSING if number is None else number
        if phase not in ("X", "b", "e"):
            return
        start = nanoseconds(event.get("ts"))
        length = nanoseconds(event.get("dur")) if phase == "X" else 0
        if start is None or length is None or length < 0:
            self._skipped.add("without a valid time and duration")
        elif phase == "b":
            self._begin(str(event.get("id")), start, self._op(event, args))
        elif phase == "e":
            self._end(str(event.get("id")), start)
        else:
            self._add_slice(event, args, start, start + length)

    def _add_slice(self, event: dict[str, Any], args: dict[str, Any], start: int, end: int) -> None:
        process, category = event.get("pid"), event.get("cat")
        if type(process) is int and process >= _FIRST_DEVICE:
            track, number = self._tracks.get(
                _hashable((process, event.get("tid"))), ("stream", MISSING)
            )
            shape: list[int | None] = []
            for name in _SHAPE:
                value: Any = args.get(name)
                known = isinstance(value, list) and len(value) == 3
                shape += map(integer, value) if known else [None] * 3
            self._activities.append(
                text(category), text(event.get("name")), process - _FIRST_DEVICE,
                number if track == "stream" else None, None if track == "stream" else number,
                start, end, integer(args.get("correlation_id")), integer(args.get("op_id")),
                integer(args.get("bytes")), *shape,
            )  # fmt: skip
        elif category == "api" and "correlation_id" in args:
            self.calls.append(
                text(event.get("name")), integer(event.get("tid")) or 0, start, end,
                integer(args["correlation_id"]), integer(args.get("return_value")),
            )  # fmt: skip
        elif category == "repeat" and "repeat" in args:
            self._budget.take(200)
            self.repeats.append([start, end])
        else:
            self._add_op(self._op(event, args), start, end)

    def _begin(self, key: str, start: int, op: _Op | None) -> None:
        if key in self._begun:
            self._skipped.add(_UNFINISHED)
        texts = (part for part in op or () if isinstance(part, str))
        self._budget.take(500 + len(key) + sum(map(len, texts)))
        self._begun[key] = start, op

    def _end(self, key: str, end: int) -> None:
        if key not in self._begun:
            self._skipped.add("that end a slice that has not begun")
            return
        start, op = self._begun.pop(key)
        if end < start:
            self._skipped.add("that end a slice before it begins")
        else:
            self._add_op(op, start, end)

    def _op(self, event: dict[str, Any], args: dict[str, Any]) -> _Op | None:
        number = integer(args.get("op_id"))
        if number is None:
            return None
        of_op = args.get("args")
        return _Op(
            number, text(event.get("name")), text(event.get("cat")), integer(event.get("tid")) or 0,
            integer(args.get("count")) or 1, integer(args.get("line")),
            _written(of_op, self._skipped) if type(of_op) is dict else None,
        )  # fmt: skip

    def _add_op(self, op: _Op | None, start: int, end: int) -> None:
        if op is None:
            self._skipped.add("that are not ops, calls or activities")
        else:
            self._ops.append(*op, start, end)

    @property
    def unfinished(self) -> int:
        """Number of ops that have begun and not ended."""
        return len(self._begun)

    def finished_ops(self) -> Table:
        """Return the ops, nested by their times."""
        ops = self._ops.table()
        stacks = OpStacks(ops["thread_id"], ops["start_ns"], ops["end_ns"])
        return ops.replace(
            parent_op_id=np.append(ops["op_id"], MISSING)[stacks.parent],
            duration_ns=ops["end_ns"] - ops["start_ns"],
            status=CategoryColumn.constant("complete", len(ops)),
        )

    def finished_activities(self) -> Table:
        """Return the activities with their durations."""
        table = self._activities.table()
        return table.replace(duration_ns=table["end_ns"] - table["start_ns"])


def _hashable(key: tuple[object, object]) -> tuple[object, object]:
    return str(key[0]), str(key[1])
