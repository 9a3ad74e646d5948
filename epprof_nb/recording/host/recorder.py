"""The recorder of the host device; see `epprof_nb.host`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.chunks import chunks
from epprof_nb.core.python_kernel_log import KERNELS
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, MEMORY, MISSING, TableSchema
from epprof_nb.data.table import Table
from epprof_nb.host._copies import copy_activity
from epprof_nb.host._log import LOG, Activity
from epprof_nb.host._queue import in_worker, wait_for_all
from epprof_nb.host.device import CONTEXT_ID, HOST_DEVICE_ID, device_name
from epprof_nb.recording.host import ep_graphs
from epprof_nb.recording.recorder import RecordedGraphs, Recorder, RecorderOutput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.core.options import Options
    from epprof_nb.core.python_kernel_log import KernelRun


_PART = 1 << 12
"""Rows whose columns are copied together."""


class HostRecorder(Recorder):
    """Records the activities of the host device. See `epprof_nb.recording.recorder.Recorder`."""

    name = "host"

    def start(self, options: Options) -> list[str]:
        """Start recording. All options are supported, so there are no notes."""
        LOG.start(options.max_records, memory=options.records("memory"), api=options.records("api"))
        KERNELS.start(options.max_records)
        return []

    def extend(self, options: Options) -> list[str]:
        """Also record what `options` request, without interruption."""
        LOG.extend(
            options.max_records, memory=options.records("memory"), api=options.records("api")
        )
        return []

    def sync(self) -> None:
        """Wait for the work launched so far. The user's next call raises its errors.

        Does not wait when called inside a kernel, which would wait for itself.
        """
        if not in_worker():
            wait_for_all()

    def drain(self, *, waited: bool = True) -> RecorderOutput:  # noqa: ARG002
        """Return the activities and allocations recorded since the last call."""
        kernels, dropped = KERNELS.take()
        for run in kernels:
            LOG.add(_activity(run), run.start_ns, run.end_ns)
        rows = LOG.drain()
        graphs = KERNELS.graphs()
        return RecorderOutput(
            activities=_table(ACTIVITIES, (rows.short, rows.activities), rows.names),
            memory=_table(MEMORY, (rows.memory,), rows.names),
            dropped=rows.dropped + dropped,
            graphs=RecordedGraphs(
                ep_graphs.nodes(graphs),
                ep_graphs.capture_ops(graphs),
                ep_graphs.table(graphs),
                KERNELS.take_replays(),
            ),
        )

    def stop(self) -> None:
        """Stop recording and discard rows that were not drained."""
        KERNELS.start(0)
        KERNELS.take_replays()
        LOG.stop()

    def devices(self) -> list[dict[str, Any]]:
        """Return the host device."""
        return [{"device_id": HOST_DEVICE_ID, "name": device_name(), "kind": "host"}]


def _activity(run: KernelRun) -> Activity:
    if run.copy_kind is None:
        activity = Activity(run.kind, run.name, run.correlation_id, run.stream_id)
    else:
        activity = copy_activity(
            run.name, run.correlation_id, run.stream_id,
            nbytes=run.bytes, copy_kind=run.copy_kind, host_kind="pageable",
        )  # fmt: skip
    return activity._replace(graph_id=run.graph_id, graph_node_id=run.graph_node_id)


def _table(schema: TableSchema, parts: Sequence[npt.NDArray[Any]], names: tuple[str, ...]) -> Table:
    found = _columns(parts)
    columns: dict[str, npt.NDArray[Any] | CategoryColumn] = {
        name: CategoryColumn.from_ids(values, names)
        if schema.column(name).kind == "name"
        else values
        for name, values in found.items()
    }
    count = sum(map(len, parts))
    columns["device_id"] = np.full(count, HOST_DEVICE_ID)
    columns["context_id"] = np.full(count, CONTEXT_ID)
    if "start_ns" in found:
        columns["duration_ns"] = found["end_ns"] - found["start_ns"]
    return Table(schema, columns)


def _columns(parts: Sequence[npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Return the columns of rows of several types, by start time if they have one.

    A type may lack some columns. Columns in which no row has a value are left out.
    """
    count = sum(map(len, parts))
    columns: dict[str, npt.NDArray[Any]] = {}
    begin = 0
    for rows in parts:
        names = rows.dtype.names or ()
        # A part of the rows stays in the processor's cache while its columns are copied.
        for chunk in chunks(len(rows), _PART):
            part, at = rows[chunk], slice(begin + chunk.start, begin + chunk.stop)
            for name in names:
                if name not in columns and (part[name] != MISSING).any():
                    columns[name] = np.empty(count, np.int64)
                    columns[name][: at.start] = MISSING
                if name in columns:
                    columns[name][at] = part[name]
        end = begin + len(rows)
        for name in columns.keys() - set(names):
            columns[name][begin:end] = MISSING
        begin = end
    if "start_ns" in columns:
        _sort(columns)
    return columns


def _sort(columns: dict[str, npt.NDArray[Any]]) -> None:
    """Sort the rows by start time in place, from the first one that is not in its place on."""
    start = columns["start_ns"]
    if (start[1:] >= start[:-1]).all():
        return
    least_after = np.minimum.accumulate(start[::-1])[::-1][1:]
    first = int(np.argmax(start[:-1] > least_after))
    order = np.argsort(start[first:], kind="stable")
    for values in columns.values():
        values[first:] = values[first:][order]
