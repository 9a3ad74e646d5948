"""The interface of recorders: sources of activities that the capture service starts and stops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from epprof_nb.data.schema import ACTIVITIES, MEMORY, OVERHEAD
from epprof_nb.data.table import Table, concat

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from epprof_nb.core.kernel_log import CapturedGraph
    from epprof_nb.core.options import Options


@dataclass(frozen=True, slots=True)
class CellLog:
    """The log of the cell's thread: its op over time, and samples of its CPU time."""

    thread_id: int
    top_ns: npt.NDArray[np.int64]
    """Times at which the op on top of the stack changed."""
    top_op: npt.NDArray[np.int64]
    """The op from that time on; 0 if none was open."""
    cpu_at_ns: npt.NDArray[np.int64]
    cpu_ns: npt.NDArray[np.int64]
    """CPU time that the thread had used at ``cpu_at_ns``, in nanoseconds."""


@dataclass(slots=True)
class RecorderOutput:
    """Tables with absolute CLOCK_MONOTONIC times that a recorder returns, before correlation.

    ``op_id`` and ``attribution`` are missing. Correlation fills them in from the launch log by
    ``correlation_id``.
    """

    activities: Table = field(default_factory=lambda: Table(ACTIVITIES))
    memory: Table = field(default_factory=lambda: Table(MEMORY))
    overhead: Table = field(default_factory=lambda: Table(OVERHEAD))
    dropped: int = 0
    """Number of dropped activities of any kind."""
    graph_nodes: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    """CUDA graph nodes: ``node``, ``original`` (0: created by capture), ``op_id`` (0: none)."""
    capture_ops: Table | None = None
    """Rows of the ops that captured these nodes, also if no op was recorded then."""
    graphs: Table | None = None
    """Known facts about graphs, by ``graph_id``; other columns are missing."""
    replays: tuple[tuple[int, CapturedGraph], ...] = ()
    """Replays on CUDA devices by the provider of Python kernels: the op of each, and its graph."""
    api_calls: Table | None = None
    """API calls recorded with external correlation, where the launch log is not available."""
    external_correlation: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None = None
    """Correlation ids and the op ids pushed as CUPTI's external correlation ids."""
    cell_log: CellLog | None = None
    """Recorded with external correlation, to attribute the work of threads without ops."""
    decode_ns: int = 0
    """Time spent decoding records, on the recorder's threads or in `Recorder.drain`."""
    failure: tuple[str, str] | None = None
    """CUDA error after which the device is lost to this process, by name and in words."""
    profiler_sync_intervals: tuple[tuple[int, int], ...] = ()
    """Intervals in which the profiler itself waited for the device, in nanoseconds."""
    node_usage: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    """Memory and threads of ONNX Runtime nodes: ``op_id``, and columns of the table of ops."""


def merge_outputs(outputs: Sequence[RecorderOutput]) -> RecorderOutput:
    """Merge outputs that were recorded one after the other."""
    if len(outputs) == 1:
        return outputs[0]
    if not outputs:
        return RecorderOutput()
    calls = [output.api_calls for output in outputs if output.api_calls is not None]
    pairs = [o.external_correlation for o in outputs if o.external_correlation is not None]
    logs = [output.cell_log for output in outputs if output.cell_log is not None]
    capture_ops = [output.capture_ops for output in outputs if output.capture_ops is not None]
    graphs = [output.graphs for output in outputs if output.graphs is not None]
    return RecorderOutput(
        activities=concat([output.activities for output in outputs]),
        memory=concat([output.memory for output in outputs]),
        overhead=concat([output.overhead for output in outputs]),
        dropped=sum(output.dropped for output in outputs),
        graph_nodes=_merge_columns([o.graph_nodes for o in outputs if o.graph_nodes]),
        capture_ops=concat(capture_ops) if capture_ops else None,
        graphs=concat(graphs) if graphs else None,
        replays=tuple(replay for output in outputs for replay in output.replays),
        api_calls=concat(calls) if calls else None,
        external_correlation=(
            np.concatenate([pair[0] for pair in pairs]),
            np.concatenate([pair[1] for pair in pairs]),
        )
        if pairs
        else None,
        cell_log=_merge_cell_logs(logs) if logs else None,
        decode_ns=sum(output.decode_ns for output in outputs),
        failure=next((output.failure for output in outputs if output.failure), None),
        profiler_sync_intervals=tuple(i for o in outputs for i in o.profiler_sync_intervals),
        node_usage=_merge_columns([o.node_usage for o in outputs if o.node_usage]),
    )


def _merge_columns(
    parts: Sequence[dict[str, npt.NDArray[np.int64]]],
) -> dict[str, npt.NDArray[np.int64]]:
    return {n: np.concatenate([part[n] for part in parts]) for n in parts[0]} if parts else {}


def _merge_cell_logs(logs: Sequence[CellLog]) -> CellLog:
    return CellLog(
        logs[-1].thread_id,
        *(
            np.concatenate([getattr(log, name) for log in logs])
            for name in ("top_ns", "top_op", "cpu_at_ns", "cpu_ns")
        ),
    )


class Recorder(Protocol):
    """A source of activities. The capture service calls it from one thread at a time."""

    name: str

    def start(self, options: Options) -> list[str]:
        """Start recording; return notes for the user on what cannot be recorded, and why."""

    def extend(self, options: Options) -> list[str]:
        """Record what `options` ask for, too; return notes as `start` does.

        What was recorded before, and the options of earlier calls, stay.
        """

    def sync(self) -> None:
        """Wait until the device work launched so far has finished, if waiting is possible."""

    def drain(self, *, waited: bool = True) -> RecorderOutput:
        """Return the activities recorded since the last call.

        `waited` is true right after `sync`; otherwise the device may still be working.
        """

    def notes(self) -> list[str]:
        """Return notes for the user on the recording since `start`."""

    def stop(self) -> None:
        """Stop recording and release all resources; called once per `start`."""

    def devices(self) -> list[dict[str, Any]]:
        """Return the recorded devices: ``device_id``, ``name`` and ``kind`` (cuda or host)."""
