"""Recording of the host device: API calls go to the native log, activities to a buffer."""

# ruff: noqa: SLF001 (the device's modules share the internals of its few classes)

from __future__ import annotations

import os
import struct
import threading
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from epprof_nb import _native
from epprof_nb.core.recording_costs import LAUNCHES
from epprof_nb.data.schema import MISSING
from epprof_nb.host.device import CONTEXT_ID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

LAUNCH_KERNEL = _native.intern("hostLaunchKernel")
MEMCPY_ASYNC = _native.intern("hostMemcpyAsync")
MEMSET_ASYNC = _native.intern("hostMemsetAsync")
STREAM_WAIT_EVENT = _native.intern("hostStreamWaitEvent")
STREAM_SYNCHRONIZE = _native.intern("hostStreamSynchronize")
EVENT_SYNCHRONIZE = _native.intern("hostEventSynchronize")
DEVICE_SYNCHRONIZE = _native.intern("hostDeviceSynchronize")
EVENT_RECORD = _native.intern("hostEventRecord")
MALLOC = _native.intern("hostMalloc")
FREE = _native.intern("hostFree")

NOT_LAUNCHED = (MISSING, MISSING, MISSING)
"""Grid and block of activities that are not kernels."""

PROPERTIES = (
    "kind", "name", "stream_id", "bytes", "copy_kind", "src_kind", "dst_kind",
    "grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z", "graph_id", "graph_node_id",
    "event_stream_id", "event_context_id", "event_source",
)  # fmt: skip
"""Columns in which many activities are equal. The log has the number of each one's values."""

MEMORY_ROW = np.dtype([
    (name, np.int64)
    for name in ("operation", "memory_kind", "address", "bytes", "time_ns", "correlation_id")
])  # fmt: skip
# A packed row takes a sixth of the memory of a tuple and converts to columns without a loop.
_pack_memory = struct.Struct(f"={len(MEMORY_ROW.names or ())}q").pack


class RecordedEvent(NamedTuple):
    """The call that recorded an event, and its stream."""

    correlation_id: int
    stream_id: int


class Activity(NamedTuple):
    """Properties of an activity at its launch; its times are added when it has run."""

    kind: str
    name: str
    correlation_id: int
    stream_id: int = MISSING
    bytes: int = MISSING
    copy_kind: str | None = None
    src_kind: str | None = None
    dst_kind: str | None = None
    grid: Sequence[int] = NOT_LAUNCHED
    block: Sequence[int] = NOT_LAUNCHED
    graph_id: int = MISSING
    graph_node_id: int = MISSING
    event: RecordedEvent | None = None


class Call:
    """Context manager that records an API call; its value is the correlation id, never 0."""

    __slots__ = ("_correlation_id", "_cost_begin", "_name_id", "_start_ns")

    def __init__(self, name_id: int, cost_begin: int) -> None:
        self._cost_begin = cost_begin
        self._name_id = name_id
        self._correlation_id = _native.next_correlation()

    def __enter__(self) -> int:
        self._start_ns = _native.now_ns()
        if self._cost_begin:
            _native.cost_end(LAUNCHES, self._cost_begin)
        return self._correlation_id

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        begin = self._cost_begin and _native.cost_resume(self._cost_begin)
        # One line for all launches, because it is in their stacks.
        _native.launch(self._name_id, self._start_ns, _native.now_ns(), self._correlation_id)
        if begin:
            _native.cost_end(LAUNCHES, begin)


class _NoCall:
    """Context manager for an API call that is not recorded; its value is 0."""

    __slots__ = ()

    def __enter__(self) -> int:
        return 0

    def __exit__(self, *_: object) -> None:
        pass


_NO_CALL = _NoCall()


class Drained(NamedTuple):
    """Columns and rows taken from the log, and what their numbers stand for."""

    activities: dict[str, npt.NDArray[Any]]
    """Columns of one length; ``properties`` is the number of their tuple in `properties`."""
    properties: list[tuple[Any, ...]]
    """Values of the columns `PROPERTIES`."""
    memory: npt.NDArray[Any]
    names: tuple[str, ...]
    """Names of the columns of `memory`."""
    dropped: int


class Log:
    """Bounded buffer of the host device's activities, written by any thread."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        # Reentrant, because the finalizer of an array may run during any allocation made here.
        self._lock = threading.RLock()
        self._on = self._memory = self._api = False
        self._records_left = 0
        self._empty()

    def _empty(self) -> None:
        # Columns need no conversion, and a tuple per row would take six times the memory.
        self._activities = {
            "properties": array("i"), "start_ns": array("q"), "end_ns": array("q"),
            "correlation_id": array("q"), "event_correlation_id": array("q"),
        }  # fmt: skip
        self._append = tuple(column.append for column in self._activities.values())
        self._properties: dict[tuple[Any, ...], int] = {}
        self._allocations = bytearray()
        self._names: dict[str, int] = {}
        self._dropped = 0

    def start(self, max_records: int, *, memory: bool, api: bool) -> None:
        """Start recording at most `max_records` rows until `stop`."""
        with self._lock:
            self._empty()
            self._records_left = max_records
            self._memory = memory
            self._api = api
            self._on = True

    def extend(self, max_records: int, *, memory: bool, api: bool) -> None:
        """Record more from now on, without losing a row or an activity that is running."""
        with self._lock:
            self._records_left = max(self._records_left, max_records)
            self._memory |= memory
            self._api |= api

    def stop(self) -> None:
        """Stop recording and discard rows that were not drained."""
        with self._lock:
            self._on = False
            self._empty()

    def drain(self) -> Drained:
        """Take the rows written since the last call."""
        with self._lock:
            taken = Drained(
                {
                    name: np.frombuffer(values, values.typecode)
                    for name, values in self._activities.items()
                },
                list(self._properties),
                np.frombuffer(self._allocations, MEMORY_ROW),
                tuple(self._names),
                self._dropped,
            )
            self._empty()
        return taken

    def call(self, name_id: int) -> Call | _NoCall:
        """Begin an API call that launches work or waits."""
        return Call(name_id, _native.cost_begin(LAUNCHES)) if self._on else _NO_CALL

    def minor_call(self, name_id: int) -> Call | _NoCall:
        """Begin an API call that is recorded only with the detail ``api``."""
        return Call(name_id, 0) if self._on and self._api else _NO_CALL

    def memory_call(self, name_id: int) -> Call | _NoCall:
        """Begin an API call that allocates or releases memory."""
        return Call(name_id, 0) if self._on and (self._api or self._memory) else _NO_CALL

    def add(self, activity: Activity, start_ns: int, end_ns: int) -> None:
        """Record that `activity` ran from `start_ns` to `end_ns` (CLOCK_MONOTONIC)."""
        cost_begin = _native.cost_begin(LAUNCHES)
        with self._lock:
            if not self._admit_record():
                return
            event = activity.event
            properties = (
                activity.kind, activity.name, activity.stream_id, activity.bytes,
                activity.copy_kind, activity.src_kind, activity.dst_kind,
                *activity.grid, *activity.block, activity.graph_id, activity.graph_node_id,
                *((MISSING, MISSING, None) if event is None
                  else (event.stream_id, CONTEXT_ID, "exact")),
            )  # fmt: skip
            number, start, end, correlation, event_correlation = self._append
            number(self._properties.setdefault(properties, len(self._properties)))
            start(start_ns)
            end(end_ns)
            correlation(activity.correlation_id)
            event_correlation(MISSING if event is None else event.correlation_id)
        if cost_begin:
            _native.cost_end(LAUNCHES, cost_begin)

    def add_memory(self, operation: str, address: int, nbytes: int, correlation_id: int) -> None:
        """Record an allocation or release at the current time, if memory is recorded."""
        with self._lock:
            if self._memory and self._admit_record():
                self._allocations += _pack_memory(
                    self._code(operation), self._code("device"), address, nbytes,
                    _native.now_ns(), correlation_id,
                )  # fmt: skip

    def _admit_record(self) -> bool:
        if not self._on:
            return False
        if self._records_left > 0:
            self._records_left -= 1
            return True
        self._dropped += 1
        return False

    def _code(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))


LOG = Log()
# A forked child does not record the session of its parent, and its copy of the lock may be held.
os.register_at_fork(after_in_child=LOG._clear)
