"""Traces of PyTorch's profiler (Kineto).

Operators, annotations and Python functions are ops. An activity belongs to the API call with its
correlation id, and to the op open on the calling thread at that call; so the kernels of a CUDA
graph belong to the op that launched the graph.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import orjson

from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.schema import ACTIVITIES, API_CALLS, MEMORY, OPS, OVERHEAD
from epprof_nb.readers.correlation import correlated
from epprof_nb.readers.finishing import from_zero
from epprof_nb.readers.rows import Rows, Threads, integer, nanoseconds, text

if TYPE_CHECKING:
    from epprof_nb.readers.json_events import JsonEvents
    from epprof_nb.readers.rows import Budget, Skipped

_OPS = {
    "cpu_op": ("operator", "torch"),
    "user_annotation": ("range", "user"),
    "python_function": ("function", "python"),
}
"""Category of an event to type and category of the op."""
_KINDS = {
    "kernel": "kernel",
    "gpu_memcpy": "memcpy",
    "gpu_memset": "memset",
    "cuda_sync": "synchronization",
}
_DOMAINS = {"cuda_runtime": "runtime", "cuda_driver": "driver"}
_CATEGORIES = frozenset({*_OPS, *_KINDS, *_DOMAINS, "overhead"})
_COPY = re.compile(r"Memcpy (\w+)(?: \((\w+) -> (\w+)\))?")
_MAX_SHAPES = 2_000
_MARKS = re.compile(rb'"(schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds)"')


def is_kineto(head: bytes) -> bool:
    """Tell whether the text before the first event is that of a Kineto trace."""
    return _MARKS.search(head) is not None


class _Tables:
    """The tables of a trace while its events are read."""

    def __init__(self, budget: Budget, skipped: Skipped) -> None:
        self.skipped, self.threads = skipped, Threads()
        self.ops = Rows(OPS, (
            "name", "op_type", "category", "thread_id", "input_shapes", "start_ns", "end_ns",
        ), budget)  # fmt: skip
        self.calls = Rows(API_CALLS, (
            "domain", "name", "thread_id", "start_ns", "end_ns", "correlation_id",
        ), budget)  # fmt: skip
        self.activities = Rows(ACTIVITIES, (
            "kind", "name", "device_id", "context_id", "stream_id", "start_ns", "end_ns",
            "correlation_id", "bytes", "copy_kind", "src_kind", "dst_kind", "grid_x", "grid_y",
            "grid_z", "block_x", "block_y", "block_z", "registers_per_thread", "graph_id",
            "graph_node_id",
        ), budget)  # fmt: skip
        self.memory = Rows(MEMORY, (
            "operation", "memory_kind", "address", "bytes", "time_ns", "device_id",
        ), budget)  # fmt: skip
        self.overhead = Rows(OVERHEAD, ("kind", "thread_id", "start_ns", "end_ns"), budget)

    def add(self, event: dict[str, Any]) -> None:
        """Add an event to the table of its category, or count it as skipped."""
        get = event.get
        phase, category = get("ph"), get("cat")
        if phase != "X":
            if phase != "M":
                self._add_instant(event, phase)
            return
        if type(category) is not str or category not in _CATEGORIES:
            category = category.lower() if type(category) is str else ""
            if category not in _CATEGORIES:
                self.skipped.add(f"of category {category[:50]!r}")
                return
        start, length = nanoseconds(get("ts")), nanoseconds(get("dur"))
        if start is None or length is None or length < 0:
            self.skipped.add("without a valid time and duration")
            return
        name, end = text(get("name")), start + length
        args = get("args")
        if type(args) is not dict:
            args = {}
        of_op = _OPS.get(category)
        if of_op is not None:
            op_type, of_category = of_op
            thread = self.threads(get("pid"), get("tid"))
            self.ops.append(name, op_type, of_category, thread, _shapes(args), start, end)
        elif category in _DOMAINS:
            thread = self.threads(get("pid"), get("tid"))
            correlation = integer(args.get("correlation"))
            self.calls.append(_DOMAINS[category], name, thread, start, end, correlation)
        elif category == "overhead":
            self.overhead.append(name, None, start, end)
        else:
            self._add_activity(_KINDS[category], name, (start, end), event)

    def _add_activity(
        self, kind: str, name: str | None, times: tuple[int, int], event: dict[str, Any]
    ) -> None:
        args = _args(event)
        copy: tuple[str | None, ...] = (None, None, None)
        if kind == "memcpy" and name and (match := _COPY.match(name)):
            copy = tuple(t if i == 0 else t and t.lower() for i, t in enumerate(match.groups()))
        device = integer(args.get("device"))
        stream = integer(args.get("stream"))
        graph = integer(args.get("graph id")) or None
        self.activities.append(
            kind, name,
            integer(event.get("pid")) if device is None else device,
            integer(args.get("context")),
            stream if stream is None or stream < 2**31 else None,
            *times,
            # Kineto writes 0 for an activity whose launch it does not know.
            integer(args.get("correlation")) or None,
            integer(args.get("bytes")),
            *copy, *_dimensions(args.get("grid")), *_dimensions(args.get("block")),
            integer(args.get("registers per thread")),
            graph,
            integer(args.get("graph node id")) if graph else None,
        )  # fmt: skip

    def _add_instant(self, event: dict[str, Any], phase: object) -> None:
        if event.get("name") != "[memory]" or phase != "i":
            self.skipped.add(f"of phase {str(phase)[:20]!r}")
            return
        args, time = _args(event), nanoseconds(event.get("ts"))
        size = args.get("Bytes")
        if time is None or type(size) is not int or not -(2**62) < size < 2**62:
            self.skipped.add("of memory without a valid time and size")
            return
        on_device = args.get("Device Type") == 1
        self.memory.append(
            "allocation" if size >= 0 else "release",
            "device" if on_device else "host",
            integer(args.get("Addr")), abs(size), time,
            integer(args.get("Device Id")) if on_device else None,
        )  # fmt: skip


def read(events: JsonEvents, budget: Budget, skipped: Skipped) -> ProfileData:
    """Read the events of a Kineto trace."""
    made = _Tables(budget, skipped)
    for piece in events:
        for event in piece:
            made.add(event)
    tables = {
        "ops": made.ops.table(), "activities": made.activities.table(),
        "api_calls": made.calls.table(), "memory": made.memory.table(),
        "overhead": made.overhead.table(),
    }  # fmt: skip
    tables, origin = from_zero(tables)
    notes = made.threads.notes()
    tables = correlated(tables, "kineto", notes)
    base = integer(events.metadata.get("baseTimeNanoseconds"))
    info: dict[str, Any] = {"devices": _devices(events.metadata), "notes": notes}
    if base is not None and abs(base + origin) < 2**62:
        info["started_at_epoch_ns"] = base + origin
    return ProfileData(tables, info)


def _args(event: dict[str, Any]) -> dict[str, Any]:
    args = event.get("args")
    return args if isinstance(args, dict) else {}


def _shapes(args: dict[str, Any]) -> str | None:
    """Return the element types and shapes of an operator's inputs as JSON, if recorded."""
    shapes = args.get("Input Dims")
    if not shapes:
        return None
    types = args.get("Input type") or args.get("Input Type")
    try:
        written = orjson.dumps({"types": types, "shapes": shapes}).decode()
    except (TypeError, orjson.JSONEncodeError):
        return None
    return written if len(written) <= _MAX_SHAPES else None


def _dimensions(value: object) -> tuple[int | None, int | None, int | None]:
    if type(value) is list and len(value) == 3:
        x, y, z = map(integer, value)
        return x, y, z
    return None, None, None


def _devices(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    found = metadata.get("deviceProperties")
    devices = [d for d in found if type(d) is dict] if type(found) is list else []
    return [
        {"device_id": integer(d.get("id")), "name": text(d.get("name")), "kind": "cuda"}
        for d in devices[:1_024]
        if integer(d.get("id")) is not None
    ]
