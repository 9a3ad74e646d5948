"""Traces of PyTorch's profiler (Kineto).

Operators, annotations and Python functions are ops. An activity belongs to the API call with its
correlation id, and to the op open on the calling thread at that call; so the kernels of a CUDA
graph belong to the op that launched the graph. Traces of ROCm without correlation ids are joined by
the external ids of launches and kernels.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.schema import MEMORY, MISSING, OPS, OVERHEAD
from epprof_nb.files.readers.columns import integers, texts, times
from epprof_nb.files.readers.correlation import correlated
from epprof_nb.files.readers.device_rows import activity_rows, call_rows
from epprof_nb.files.readers.finish_tables import from_zero
from epprof_nb.files.readers.kineto_collectives import COLLECTIVE, collective_of
from epprof_nb.files.readers.kineto_event_fields import NO_ARGS, event_of, parsed
from epprof_nb.files.readers.kineto_nodes import with_nodes
from epprof_nb.files.readers.python_calls import without_overlaps
from epprof_nb.files.readers.rows import MAX_SHAPES, Rows, Threads, integer, nanoseconds, text

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table
    from epprof_nb.files.readers.json_events import JsonEvents
    from epprof_nb.files.readers.kineto_event_fields import Args, Event
    from epprof_nb.files.readers.rows import Budget, Skipped

_OPS = {
    "cpu_op": ("operator", "operator"),
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
_TABLES = {
    **dict.fromkeys(_OPS, "ops"), **dict.fromkeys(_KINDS, "activities"),
    **dict.fromkeys(_DOMAINS, "calls"), "overhead": "overhead",
}  # fmt: skip
"""Category of an event to its table."""
_COPY = re.compile(r"Memcpy (\w+)(?: \((\w+) -> (\w+)\))?")
_EPOCH_NS = 10**18
"""The year 2001: no time since the start of a machine is as large."""
_NO_SHAPES = "' input shapes or types, which are invalid JSON or nested too deeply"
_MARKS = re.compile(rb'"(schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds)"')


def is_kineto(head: bytes) -> bool:
    """Return whether the text before the first event belongs to a Kineto trace."""
    return _MARKS.search(head) is not None


class _Tables:
    """The tables of a trace while its events are read."""

    def __init__(self, budget: Budget, skipped: Skipped) -> None:
        self.skipped, self.threads = skipped, Threads()
        self.ops = Rows(OPS, (
            "name", "op_type", "category", "thread_id", "input_shapes", "args",
            "sequence_number", "start_ns", "end_ns",
        ), budget)  # fmt: skip
        self.calls = call_rows(budget)
        self.activities = activity_rows(budget)
        self.memory = Rows(MEMORY, (
            "operation", "memory_kind", "address", "bytes", "time_ns", "device_id",
        ), budget)  # fmt: skip
        self.overhead = Rows(OVERHEAD, ("kind", "thread_id", "start_ns", "end_ns"), budget)
        self._budget = budget
        self._external: dict[str, list[IntArray]] = {"api_calls": [], "activities": []}
        self._add_to = {
            "ops": self._add_ops, "calls": self._add_calls, "activities": self._add_activities,
            "overhead": self._add_overhead,
        }  # fmt: skip

    def add(self, events: list[Event]) -> None:
        """Add events to the tables of their categories, or count them as skipped."""
        groups: dict[str, list[Event]] = {}
        for event in events:
            if event.ph == "X":
                of_table = _TABLES.get(event.cat)
                if of_table is None:
                    event.cat = event.cat.lower()
                    of_table = _TABLES.get(event.cat)
                if of_table is None:
                    self.skipped.add(f"of category {event.cat[:50]!r}")
                else:
                    groups.setdefault(of_table, []).append(event)
            elif event.ph != "M":
                self._add_instant(event)
        for name, group in groups.items():
            starts, has_start = times([event.ts for event in group])
            lengths, has_length = times([event.dur for event in group])
            is_valid = has_start & has_length & (lengths >= 0)
            starts, lengths = starts[is_valid], lengths[is_valid]
            if len(starts):
                valid = group if is_valid.all() else list(compress(group, is_valid))
                self._add_to[name](valid, starts, starts + lengths)
            self.skipped.add("without a valid time and duration", len(group) - len(starts))

    def _add_ops(self, events: list[Event], starts: IntArray, ends: IntArray) -> None:
        types, categories = zip(*[_OPS[event.cat] for event in events], strict=True)
        args = [event.args or NO_ARGS for event in events]
        self.ops.extend(
            texts([event.name for event in events]), types, categories, self._threads_of(events),
            self._shapes(args), self._collectives(events),
            integers([of.sequence for of in args]), starts, ends,
        )  # fmt: skip

    def _collectives(self, events: list[Event]) -> list[str | None]:
        """Return the arguments of calls that communicate between ranks."""
        return [
            collective_of(event.args or NO_ARGS) if event.name == COLLECTIVE else None
            for event in events
        ]

    def _shapes(self, args: list[Args]) -> list[str | None]:
        """Return the element types and shapes of the inputs of operators, if recorded."""
        keys = [(bytes(of.shapes), bytes(of.types), bytes(of.older_types)) for of in args]
        written: dict[tuple[bytes, ...], str | None] = {}
        for key, count in Counter(keys).items():
            written[key], is_valid = _written(*key)
            if not is_valid:
                self.skipped.add(_NO_SHAPES, count)
        return [written[key] for key in keys]

    def _add_calls(self, events: list[Event], starts: IntArray, ends: IntArray) -> None:
        args = [event.args or NO_ARGS for event in events]
        self._keep_external("api_calls", args)
        self.calls.extend(
            [_DOMAINS[event.cat] for event in events], texts([event.name for event in events]),
            self._threads_of(events), starts, ends, _correlation_ids(args),
        )  # fmt: skip

    def _add_overhead(self, events: list[Event], starts: IntArray, ends: IntArray) -> None:
        threads = np.full(len(events), MISSING, np.int64)
        self.overhead.extend(texts([event.name for event in events]), threads, starts, ends)

    def _add_activities(self, events: list[Event], starts: IntArray, ends: IntArray) -> None:
        args = [event.args or NO_ARGS for event in events]
        self._keep_external("activities", args)
        kinds, names = [_KINDS[event.cat] for event in events], texts([e.name for e in events])
        copies = zip(*map(_copy, kinds, names), strict=True)
        device = integers([of.device for of in args])
        device = np.where(device == MISSING, integers([event.pid for event in events]), device)
        # Kineto's thread of an activity is its stream; ROCm does not write it elsewhere.
        tracks = zip(args, events, strict=True)
        stream = integers([e.tid if of.stream is None else of.stream for of, e in tracks])
        graph = integers([of.graph for of in args])
        node = integers([of.graph_node for of in args])
        graph[graph == 0] = MISSING
        self.activities.extend(
            kinds, names, device, integers([of.context for of in args]),
            np.where(stream < 2**31, stream, MISSING), starts, ends,
            _correlation_ids(args),
            integers([of.bytes for of in args]), *copies,
            *_dimensions([of.grid for of in args]), *_dimensions([of.block for of in args]),
            integers([of.registers for of in args]), graph,
            np.where(graph == MISSING, MISSING, node),
        )  # fmt: skip

    def _keep_external(self, table: str, args: list[Args]) -> None:
        ids = integers([of.external for of in args])
        self._budget.take(ids.nbytes)
        self._external[table].append(ids)

    def tables(self) -> dict[str, Table]:
        """Return the tables; external ids join calls and activities without correlation ids."""
        tables = {
            "ops": self.ops.table(), "activities": self.activities.table(),
            "api_calls": self.calls.table(), "memory": self.memory.table(),
            "overhead": self.overhead.table(),
        }  # fmt: skip
        if not any((tables[name]["correlation_id"] != MISSING).any() for name in self._external):
            for name, parts in self._external.items():
                ids = np.concatenate([np.empty(0, np.int64), *parts])
                ids[ids == 0] = MISSING
                tables[name] = tables[name].replace(correlation_id=ids)
        return tables

    def _threads_of(self, events: list[Event]) -> IntArray:
        return self.threads.all([event.pid for event in events], [event.tid for event in events])

    def _add_instant(self, event: Event) -> None:
        if event.name != "[memory]" or event.ph != "i":
            self.skipped.add(f"of phase {str(event.ph)[:20]!r}")
            return
        args, time = event.args or NO_ARGS, nanoseconds(event.ts)
        size = args.size
        if time is None or type(size) is not int or not -(2**62) < size < 2**62:
            self.skipped.add("of memory without a valid time and size")
            return
        on_device = args.device_type == 1
        self.memory.append(
            "allocation" if size >= 0 else "release",
            "device" if on_device else "host",
            integer(args.address), abs(size), time,
            integer(args.device_id) if on_device else None,
        )  # fmt: skip


def read(events: JsonEvents, budget: Budget, skipped: Skipped) -> ProfileData:
    """Read the events of a Kineto trace."""
    made = _Tables(budget, skipped)
    for piece in events.lists(event_of, parsed):
        made.add(piece)
    notes = made.threads.notes()
    tables = made.tables()
    tables["ops"] = without_overlaps(tables["ops"], notes)
    tables, origin = from_zero(tables)
    tables = correlated(tables, "kineto", notes)
    tables["ops"] = with_nodes(tables["ops"])
    base = integer(events.metadata.get("baseTimeNanoseconds"))
    if base is None and origin > _EPOCH_NS:  # PyTorch up to 2.2 has no base
        base = 0
    info: dict[str, Any] = {"devices": _devices(events.metadata), "notes": notes}
    if base is not None and abs(base + origin) < 2**62:
        info["started_at_epoch_ns"] = base + origin
    return ProfileData(tables, info)


def _correlation_ids(args: list[Args]) -> IntArray:
    """Return the correlation ids, which Kineto writes as 0 if unknown."""
    ids = integers([of.correlation for of in args])
    ids[ids == 0] = MISSING
    return ids


def _written(*texts: bytes) -> tuple[str | None, bool]:
    """Return element types and shapes as JSON, and whether all of the texts could be read."""
    (shapes, types, older_types), is_valid = zip(*map(_loads, texts), strict=True)
    if not shapes:
        return None, all(is_valid)
    try:
        found = orjson.dumps({"types": types or older_types, "shapes": shapes}).decode()
    except orjson.JSONEncodeError:  # nested too deeply
        return None, False
    return found if len(found) <= MAX_SHAPES else None, all(is_valid)


def _loads(text: bytes) -> tuple[Any, bool]:
    """Parse a value, and return whether it is valid JSON."""
    try:
        return orjson.loads(text) if text else None, True
    except orjson.JSONDecodeError:
        return None, False


def _copy(kind: str, name: str | None) -> tuple[str | None, str | None, str | None]:
    """Return the kind of a copy, and the kinds of the memory read and written."""
    if kind != "memcpy" or not name or not (match := _COPY.match(name)):
        return None, None, None
    copied, source, destination = match.groups()
    return copied, source and source.lower(), destination and destination.lower()


def _dimensions(values: list[Any]) -> list[IntArray]:
    triples = [v if type(v) is list and len(v) == 3 else (None, None, None) for v in values]
    return [integers(list(column)) for column in zip(*triples, strict=True)]


def _devices(metadata: dict[str, Any]) -> list[dict[str, Any]]:
    found = metadata.get("deviceProperties")
    devices = [d for d in found if type(d) is dict] if type(found) is list else []
    return [
        {"device_id": integer(d.get("id")), "name": text(d.get("name")), "kind": "gpu"}
        for d in devices[:1_024]
        if integer(d.get("id")) is not None
    ]
