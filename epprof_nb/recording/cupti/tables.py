"""Decoded CUPTI records as tables, with names, calibrated times and missing ids."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb import _native
from epprof_nb.arrays.ids import unique_inverse
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, ACTIVITY_KINDS, API_CALLS, MEMORY, MISSING, OVERHEAD
from epprof_nb.data.table import Table
from epprof_nb.recording.clock_conversion import CLOCK_SLACK_NS
from epprof_nb.recording.cupti import layouts
from epprof_nb.recording.cupti.event_waits import EventWaits
from epprof_nb.recording.native_columns import ids, names_of, numbers
from epprof_nb.util.format import base_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.arrays.types import BoolArray
    from epprof_nb.recording.clock_conversion import Calibration

_KERNEL, _MEMCPY, _MEMSET, _SYNCHRONIZATION = (
    ACTIVITY_KINDS.index(kind) for kind in ("kernel", "memcpy", "memset", "synchronization")
)


_CALLS_OF_A_WAIT = (
    "cuCtxPushCurrent_v2",
    "cuCtxSynchronize",
    "cuCtxPopCurrent_v2",
    "cuCtxGetCurrent",
)
"""Calls with which the profiler itself waits for a context."""


@cache
def _demangled(name: str) -> str:
    return _native.demangle(name)


def _times(
    raw: dict[str, Any], name: str, calibration: Calibration | None
) -> npt.NDArray[np.int64]:
    times = numbers(raw, name, np.int64)
    return times if calibration is None else calibration.apply(times)


_PART_BITS = 40
"""Bits of a correlation id below the number of the session's part, as in the launch log."""


def correlation_ids(raw: dict[str, Any], name: str, part: int) -> npt.NDArray[np.int64]:
    """Return the correlation ids of a column in a part of the session."""
    found = ids(raw, name, np.uint32)
    return np.where(found == MISSING, found, found + (part << _PART_BITS)) if part else found


def activities(
    raw: dict[str, Any],
    calibration: Calibration | None,
    devices: dict[int, int],
    events: EventWaits | None = None,
    *,
    part: int = 0,
    waits_are_records: bool = True,
) -> Table:
    """Kernels, copies, memsets and synchronizations.

    `devices` maps contexts to devices; contexts found in the records are added to it. `events` has
    the events of earlier drains, and `part` is the number of the session's part. Without
    `waits_are_records`, synchronizations come from callbacks, so their times are on our clock.
    """
    kind = numbers(raw, "kind", np.uint8)
    start, end = (_times(raw, column, calibration) for column in ("start_ns", "end_ns"))
    if calibration is not None and not waits_are_records:
        is_wait = kind == _SYNCHRONIZATION
        for times, column in ((start, "start_ns"), (end, "end_ns")):
            times[is_wait] = numbers(raw, column, np.int64)[is_wait]
    is_transfer = (kind == _MEMCPY) | (kind == _MEMSET)
    graph = ids(raw, "graph_id", np.int32)
    node = ids(raw, "graph_node_id", np.int64)
    correlation = correlation_ids(raw, "correlation_id", part)
    columns: dict[str, npt.NDArray[Any] | CategoryColumn] = {
        "kind": CategoryColumn.from_ids(kind, ACTIVITY_KINDS),
        "name": _activity_names(raw, kind),
        "start_ns": start,
        "end_ns": end,
        "duration_ns": end - start,
        "correlation_id": correlation,
        "bytes": np.where(is_transfer, ids(raw, "bytes", np.int64), MISSING),
        "copy_kind": _names(raw, "copy_kind", layouts.MEMCPY_KINDS),
        "src_kind": _names(raw, "src_kind", layouts.MEMORY_KINDS),
        "dst_kind": _names(raw, "dst_kind", layouts.MEMORY_KINDS),
        # CUPTI numbers graphs and their nodes from 1; 0 means "not launched by a graph".
        "graph_id": np.where(graph == 0, MISSING, graph),
        "graph_node_id": np.where(node == 0, MISSING, node),
    }
    for name in (
        "stream_id", "grid_x", "grid_y", "grid_z", "block_x", "block_y",
        "block_z", "registers_per_thread", "static_shared_bytes", "dynamic_shared_bytes",
        "src_device_id", "dst_device_id",
    ):  # fmt: skip
        columns[name] = ids(raw, name, np.int32)
    context = ids(raw, "context_id", np.int32)
    columns["context_id"] = context
    columns["device_id"] = _with_devices(ids(raw, "device_id", np.int32), context, devices)
    recorded = correlation_ids(raw, "event.correlation_id", part)
    columns |= (events or EventWaits()).columns(raw, correlation, context, recorded)
    return Table(ACTIVITIES, columns)


def _with_devices(
    device: npt.NDArray[np.int64], context: npt.NDArray[np.int64], known: dict[int, int]
) -> npt.NDArray[np.int64]:
    """Fill in the device of synchronizations, for which CUPTI records only the context.

    `known` maps contexts to devices and is extended with the other records.
    """
    missing = np.flatnonzero(device == MISSING)
    for c in unique_inverse(context[missing])[0].tolist():
        if c not in known:
            with_device = np.flatnonzero((context == c) & (device != MISSING))
            if not len(with_device):
                continue
            known[c] = int(device[with_device[0]])
        device[missing[context[missing] == c]] = known[c]
    return device


def _names(raw: dict[str, Any], column: str, table: dict[int, str]) -> CategoryColumn:
    return CategoryColumn.from_ids(numbers(raw, column, np.uint8), table)


def _activity_names(raw: dict[str, Any], kind: npt.NDArray[np.uint8]) -> CategoryColumn:
    """Demangled names of kernels; the type of copies, memsets and synchronizations."""
    name_id = numbers(raw, "name_id", np.uint32)
    kernels = {int(i): _demangled(name) for i, name in names_of(name_id[kind == _KERNEL]).items()}
    memset = max(kernels, default=0) + 1  # keys of the other kinds follow the name ids
    copies, waits = memset + 256, memset + 512
    others = {memset: "memset"}
    others |= {copies + n: f"memcpy {name}" for n, name in layouts.MEMCPY_KINDS.items()}
    others |= {waits + n: name for n, name in layouts.SYNCHRONIZATION_TYPES.items()}
    keys = np.select(
        [kind == _KERNEL, kind == _MEMCPY, kind == _SYNCHRONIZATION],
        [
            name_id,
            copies + ids(raw, "copy_kind", np.uint8),
            waits + ids(raw, "sync_type", np.uint8),
        ],
        memset,
    )
    return CategoryColumn.from_ids(keys, kernels | others)


def api_calls(raw: dict[str, Any], calibration: Calibration | None, part: int = 0) -> Table:
    """API calls recorded by CUPTI (with external correlation only)."""
    start, end = (_times(raw, f"api.{c}", calibration) for c in ("start_ns", "end_ns"))
    runtime = numbers(raw, "api.runtime", np.uint8).astype(np.int64)
    key = (runtime + 1) << 32 | numbers(raw, "api.cbid", np.uint32)
    names = {
        int(k): _native.cupti_callback_name(int(k) >> 32, int(k) & 0xFFFFFFFF) or f"cbid {k}"
        for k in np.unique(key)
    }
    return Table(
        API_CALLS,
        {
            "domain": CategoryColumn.from_ids(runtime, ("driver", "runtime")),
            "name": CategoryColumn.from_ids(key, names),
            "thread_id": ids(raw, "api.thread_id", np.uint32),
            "start_ns": start,
            "end_ns": end,
            "duration_ns": end - start,
            "correlation_id": correlation_ids(raw, "api.correlation_id", part),
            "return_value": numbers(raw, "api.return_value", np.int32),
        },
    )


def is_wait_of_profiler(calls: Table, waits: Sequence[tuple[int, int]]) -> BoolArray:
    """Return a mask of the calls with which the profiler itself waited for the device.

    Parameters
    ----------
    calls
        API calls.
    waits
        Intervals in which the profiler waited, ascending, in nanoseconds.
    """
    names = calls.names("name")
    may_wait = np.logical_or.reduce([names.equals(name) for name in _CALLS_OF_A_WAIT])
    rows = np.flatnonzero(may_wait) if waits else np.empty(0, np.int64)
    begin, end = np.array(waits, np.int64).reshape(-1, 2).T
    last = np.searchsorted(begin - CLOCK_SLACK_NS, calls["start_ns"][rows], side="right") - 1
    is_within = (last >= 0) & (calls["end_ns"][rows] <= end[last] + CLOCK_SLACK_NS)
    is_wait: BoolArray = np.zeros(len(calls), np.bool_)
    is_wait[rows[is_within]] = True
    return is_wait


def memory(raw: dict[str, Any], calibration: Calibration | None, part: int = 0) -> Table:
    """Allocations and releases."""
    source = numbers(raw, "memory.source_id", np.uint32)
    libraries = {i: base_name(path) for i, path in names_of(source).items() if path}
    return Table(
        MEMORY,
        {
            "operation": CategoryColumn.from_ids(
                numbers(raw, "memory.operation", np.uint32), layouts.MEMORY_OPERATIONS
            ),
            "memory_kind": CategoryColumn.from_ids(
                numbers(raw, "memory.memory_kind", np.uint32), layouts.MEMORY_KINDS
            ),
            "address": ids(raw, "memory.address", np.uint64),
            "bytes": ids(raw, "memory.bytes", np.uint64),
            "time_ns": _times(raw, "memory.time_ns", calibration),
            "device_id": ids(raw, "memory.device_id", np.int32),
            "context_id": ids(raw, "memory.context_id", np.int32),
            "stream_id": ids(raw, "memory.stream_id", np.int32),
            "correlation_id": correlation_ids(raw, "memory.correlation_id", part),
            "library": CategoryColumn.from_ids(source, libraries),
        },
    )


def overhead(raw: dict[str, Any], calibration: Calibration | None) -> Table:
    """Overhead of CUPTI itself."""
    start, end = (_times(raw, f"overhead.{c}", calibration) for c in ("start_ns", "end_ns"))
    return Table(
        OVERHEAD,
        {
            "kind": CategoryColumn.from_ids(
                numbers(raw, "overhead.kind", np.uint32), layouts.OVERHEAD_KINDS
            ),
            "thread_id": ids(raw, "overhead.thread_id", np.uint32),
            "start_ns": start,
            "end_ns": end,
            "duration_ns": end - start,
        },
    )
