"""The interface of recorders: sources of activities that the recording service starts and stops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from epprof_nb.arrays.ids import values_at
from epprof_nb.data.schema import ACTIVITIES, MEMORY, MISSING, OVERHEAD
from epprof_nb.data.table import Table, concat

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.core.options import Options
    from epprof_nb.core.python_kernel_log import CapturedGraph
    from epprof_nb.recording.memory.arena_blocks import ArenaMemory
    from epprof_nb.recording.memory.host_blocks import HostMemory
    from epprof_nb.recording.memory.torch_history import TorchMemory


@dataclass(frozen=True, slots=True)
class CellLog:
    """The log of the cell's thread: its op over time, and samples of its CPU time."""

    thread_id: int
    top_ns: IntArray
    """Times at which the op on top of the stack changed."""
    top_op: IntArray
    """The op from that time on; 0 if none was open."""
    cpu_at_ns: IntArray
    cpu_ns: IntArray
    """CPU time of the thread at ``cpu_at_ns``, in nanoseconds."""


@dataclass(slots=True)
class RecordedCalls:
    """API calls of a recorder whose launches are not in the native launch log.

    The op of a call is the external correlation id that was pushed on its thread.
    """

    calls: Table
    correlation_id: IntArray
    """Correlation ids of the calls within an op."""
    pushed_op: IntArray
    """The op id that was pushed as the external correlation id at each of these calls."""
    is_internal: BoolArray
    """Mask of the `calls` with which the profiler itself waited for the device."""
    cell_log: CellLog
    """Attributes the work of threads without ops."""

    @classmethod
    def merged(cls, parts: Sequence[RecordedCalls]) -> RecordedCalls:
        """Merge at least one part, recorded one after the other."""
        correlation_id, op, internal = _joined(parts, "correlation_id", "pushed_op", "is_internal")
        logs = [part.cell_log for part in parts]
        log = _joined(logs, "top_ns", "top_op", "cpu_at_ns", "cpu_ns")
        return cls(
            concat([part.calls for part in parts]),
            correlation_id,
            op,
            internal,
            CellLog(logs[-1].thread_id, *log),
        )


@dataclass(slots=True)
class RecordedGraphs:
    """Graphs that were captured or replayed, and the ops that captured their nodes."""

    nodes: dict[str, IntArray] = field(default_factory=dict)
    """Columns ``node``, ``original`` (0: created by capture), ``op_id`` (0: none) and ``stack_id``
    of the native core (-1: none)."""
    capture_ops: Table | None = None
    """Rows of the ops that captured these nodes, even if no op was recorded during the capture."""
    facts: Table | None = None
    """Known facts about graphs, by ``graph_id``; other columns are missing."""
    replays: tuple[tuple[int, CapturedGraph], ...] = ()
    """Replays on GPUs by the provider of Python kernels: the op of each, and its graph."""

    @classmethod
    def merged(cls, parts: Sequence[RecordedGraphs]) -> RecordedGraphs:
        """Merge parts that were recorded one after the other."""
        nodes = [part.nodes for part in parts if part.nodes]
        capture_ops = [part.capture_ops for part in parts if part.capture_ops is not None]
        facts = [part.facts for part in parts if part.facts is not None]
        return cls(
            {n: np.concatenate([part[n] for part in nodes]) for n in nodes[0]} if nodes else {},
            concat(capture_ops) if capture_ops else None,
            concat(facts) if facts else None,
            tuple(replay for part in parts for replay in part.replays),
        )


def captured_nodes(op_of_node: Mapping[int, int]) -> dict[str, IntArray]:
    """Return `RecordedGraphs.nodes` of nodes that were captured by an op."""
    if not op_of_node:
        return {}
    return {
        "node": np.array(list(op_of_node), np.int64),
        "original": np.zeros(len(op_of_node), np.int64),
        "stack_id": np.full(len(op_of_node), MISSING, np.int64),
        "op_id": np.array(list(op_of_node.values()), np.int64),
    }


@dataclass(slots=True)
class RecorderOutput:
    """Tables with absolute CLOCK_MONOTONIC times that a recorder returns, before correlation.

    ``op_id`` and ``attribution`` are missing. Correlation fills them in from the launch log by
    ``correlation_id``. A recorder sets only what it knows.
    """

    activities: Table = field(default_factory=lambda: Table(ACTIVITIES))
    memory: Table = field(default_factory=lambda: Table(MEMORY))
    overhead: Table = field(default_factory=lambda: Table(OVERHEAD))
    dropped: int = 0
    """Number of dropped activities of any kind."""
    decode_ns: int = 0
    """Time spent decoding records, on the recorder's threads or in `Recorder.drain`."""
    failure: tuple[str, str] | None = None
    """Error after which the device is lost to this process, by name and in words."""
    graphs: RecordedGraphs = field(default_factory=RecordedGraphs)
    calls: RecordedCalls | None = None
    """API calls, if the native launch log lacks them."""
    torch_memory: TorchMemory | None = None
    """Memory of PyTorch from the start of the recorders until now."""
    arena_memory: ArenaMemory | None = None
    """Memory of kernels in Python on GPUs, likewise."""
    library_pools: Sequence[Mapping[str, Any]] = ()
    """Pools of other libraries now, as in ``info["memory"]["pools"]``."""
    host_memory: HostMemory | None = None
    """Memory of the host device now; None if memory is not recorded."""

    @classmethod
    def merged(cls, outputs: Sequence[RecorderOutput]) -> RecorderOutput:
        """Merge outputs of a recorder of activities, recorded one after the other."""
        if len(outputs) == 1:
            return outputs[0]
        if not outputs:
            return cls()
        calls = [output.calls for output in outputs if output.calls is not None]
        return cls(
            concat([output.activities for output in outputs]),
            concat([output.memory for output in outputs]),
            concat([output.overhead for output in outputs]),
            sum(output.dropped for output in outputs),
            sum(output.decode_ns for output in outputs),
            next((output.failure for output in outputs if output.failure), None),
            RecordedGraphs.merged([output.graphs for output in outputs]),
            RecordedCalls.merged(calls) if calls else None,
        )


def _joined(parts: Sequence[Any], *names: str) -> list[npt.NDArray[Any]]:
    return [np.concatenate([getattr(part, name) for part in parts]) for name in names]


@dataclass(slots=True)
class IdentifiedOps:
    """Ops of activities that a recorder found after the recording, without the op stack."""

    ops: Table
    """All ops, including the ones found."""
    op_id: IntArray
    """The op of each activity."""
    is_learned: BoolArray
    """Mask of the activities whose op was found."""


@dataclass(frozen=True, slots=True)
class TimesOfCalls:
    """Times of the API calls of activities, of which most recordings need none.

    Parameters
    ----------
    times
        int64 array: the times of all API calls, in ns.
    call
        int64 array: the row of each activity's call in `times`, `MISSING` if unknown.
    """

    times: IntArray
    call: IntArray

    def __getitem__(self, rows: npt.NDArray[Any]) -> IntArray:
        """Return the times of some activities; `MISSING` if unknown."""
        return values_at(self.times, self.call[rows])


class Recorder(Protocol):
    """A source of activities or ops. The recording service calls it from one thread at a time.

    Recorders derive from this class and define only the methods that they need.
    """

    name: str

    def start(self, options: Options) -> list[str]:
        """Start recording; return notes for the user on what cannot be recorded, and why."""

    def extend(self, options: Options) -> list[str]:
        """Also record what `options` request; return notes as `start` does.

        Earlier records and the options of earlier calls are kept.
        """

    def sync(self) -> None:
        """Wait until the device work launched so far has finished, if possible."""
        return

    def drain(self, *, waited: bool = True) -> RecorderOutput:
        """Return the activities recorded since the last call.

        `waited` is true right after `sync`; otherwise the device may still be working.
        """

    def notes(self) -> list[str]:
        """Return notes for the user on the recording since `start`."""
        return []

    def stop(self) -> None:
        """Stop recording and release all resources; called once per `start`."""

    def before_fork(self) -> None:
        """Prepare for a fork, after which the child may record by itself."""
        return

    def after_fork_in_parent(self) -> None:
        """Undo `before_fork`."""
        return

    def devices(self) -> list[dict[str, Any]]:
        """Return the recorded devices: ``device_id``, ``name`` and ``kind`` (gpu or host)."""
        return []

    def state(self) -> dict[str, Any]:
        """Return the state of the devices now, as in ``Profile.info["gpu"]``; never raises."""
        return {}

    def with_details(
        self,
        ops: Table,
        category: IntArray,  # noqa: ARG002
        payload: npt.NDArray[Any],  # noqa: ARG002
        outputs: Sequence[RecorderOutput],  # noqa: ARG002
    ) -> Table:
        """Return the ops of a recording with the details this recorder has of them.

        Parameters
        ----------
        ops
            The ops.
        category, payload
            Native columns of the same rows: the number of their category, and of their details.
        outputs
            The outputs of all recorders.
        """
        return ops

    def describe(
        self,
        ops: Table,  # noqa: ARG002
        activities: Table,  # noqa: ARG002
    ) -> tuple[dict[str, Any], list[str]]:
        """Return entries of `Profile.info` about the tables, and notes for the user."""
        return {}, []

    def identify_ops(
        self,
        ops: Table,  # noqa: ARG002
        activities: Table,  # noqa: ARG002
        call_start: TimesOfCalls,  # noqa: ARG002
        call_end: TimesOfCalls,  # noqa: ARG002
        stopped_ns: int,  # noqa: ARG002
    ) -> IdentifiedOps | None:
        """Find ops of activities that the op stack does not give; None if there are none.

        Parameters
        ----------
        ops, activities
            Tables with absolute times; the activities have the op of their launch.
        call_start, call_end
            Times of the API call of each activity.
        stopped_ns
            Time of the request to end the recording. Ops that ended later may lack launches.
        """
        return None
