"""The recorder of the host device; see `epprof_nb.host`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.core.python_kernel_log import KERNELS
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, MEMORY, MISSING
from epprof_nb.data.table import Deferred, Table
from epprof_nb.host._copies import copy_activity
from epprof_nb.host._log import LOG, PROPERTIES, Activity, Drained
from epprof_nb.host._queue import in_worker, wait_for_all
from epprof_nb.host.device import CONTEXT_ID, HOST_DEVICE_ID, device_name
from epprof_nb.recording.python_kernels import captured_graphs
from epprof_nb.recording.recorder import RecordedGraphs, Recorder, RecorderOutput

if TYPE_CHECKING:
    from epprof_nb.core.options import Options
    from epprof_nb.core.python_kernel_log import KernelRun
    from epprof_nb.data.table import Values


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
            activities=_activities(rows),
            memory=_memory(rows),
            dropped=rows.dropped + dropped,
            graphs=RecordedGraphs(
                captured_graphs.nodes(graphs),
                captured_graphs.capture_ops(graphs),
                captured_graphs.table(graphs),
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


def _activities(drained: Drained) -> Table:
    rows = drained.activities
    _sort(rows)
    number, start, end = rows["properties"], rows["start_ns"], rows["end_ns"]
    columns: dict[str, Values] = {
        "start_ns": start,
        "end_ns": end,
        "duration_ns": end - start,
        "correlation_id": rows["correlation_id"],
        **_of_device(len(start)),
    }
    if (rows["event_correlation_id"] != MISSING).any():
        columns["event_correlation_id"] = rows["event_correlation_id"]
    for name, values in zip(PROPERTIES, zip(*drained.properties, strict=True), strict=False):
        if ACTIVITIES.column(name).kind == "name":
            column = CategoryColumn.of(values)
            if column.categories:
                columns[name] = column.take(number)
        elif any(value != MISSING for value in values):
            of_number = np.array(values, np.int64)
            columns[name] = Deferred(len(number), partial(np.take, of_number, number))
    return Table(ACTIVITIES, columns)


def _sort(columns: dict[str, npt.NDArray[Any]]) -> None:
    """Sort the rows by start time in place, from the first one that is not in its place on."""
    start = columns["start_ns"]
    is_earlier = start[1:] < start[:-1]
    if is_earlier.any():
        ascending = int(is_earlier.argmax()) + 1
        first = int(np.searchsorted(start[:ascending], start[ascending:].min(), side="right"))
        order = np.argsort(start[first:], kind="stable")
        for values in columns.values():
            values[first:] = values[first:][order]


def _memory(drained: Drained) -> Table:
    rows = drained.memory
    columns: dict[str, npt.NDArray[Any] | CategoryColumn] = {
        name: CategoryColumn.from_ids(rows[name], drained.names)
        if MEMORY.column(name).kind == "name"
        else rows[name]
        for name in rows.dtype.names or ()
    }
    return Table(MEMORY, {**columns, **_of_device(len(rows))})


def _of_device(count: int) -> dict[str, npt.NDArray[Any]]:
    ids = {"device_id": HOST_DEVICE_ID, "context_id": CONTEXT_ID}
    return {name: np.broadcast_to(np.int64(value), count) for name, value in ids.items()}
