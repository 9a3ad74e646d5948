"""The ONNX Runtime recorder: enables ONNX Runtime's profiling of runs during a profile."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from epprof_nb.recording.onnxruntime import node_usage, sessions
from epprof_nb.recording.onnxruntime.failed_runs import with_failures
from epprof_nb.recording.onnxruntime.learned_nodes import identify_nodes
from epprof_nb.recording.onnxruntime.op_rows import add_ort_columns
from epprof_nb.recording.onnxruntime.sessions_in_info import session_info, session_notes
from epprof_nb.recording.recorder import Recorder, RecorderOutput

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.core.options import Options
    from epprof_nb.data.table import Table
    from epprof_nb.recording.recorder import IdentifiedOps, TimesOfCalls


@dataclass(slots=True)
class _Output(RecorderOutput):
    node_usage: dict[str, IntArray] = field(default_factory=dict)
    """Memory and threads of nodes: ``op_id``, and columns of the table of ops."""


class OnnxRuntimeRecorder(Recorder):
    """Records the events of observed sessions. See `epprof_nb.recording.recorder.Recorder`.

    The events are ops: the observer pushes them on the op stack, and they are in the op log. The
    memory and threads of nodes have a separate log.
    """

    name = "onnxruntime"

    def start(self, options: Options) -> list[str]:
        """Start profiling runs."""
        node_usage.drain()  # discard runs that outlived the last recording
        sessions.start(options.ort_nodes)
        return []

    def extend(self, options: Options) -> list[str]:
        """Record at least as many nodes as `options` request."""
        sessions.raise_mode(options.ort_nodes)
        return []

    def drain(self, *, waited: bool = True) -> RecorderOutput:  # noqa: ARG002
        """Return the memory and threads of nodes, and no activities: the events are ops."""
        return _Output(node_usage=node_usage.drain())

    def notes(self) -> list[str]:
        """Return a note for each session that ran unobserved, with the reason and remedy."""
        return sessions.notes()

    def stop(self) -> None:
        """Stop profiling runs."""
        sessions.stop()

    @property
    def settings(self) -> dict[str, Any]:
        """Return the mode in which nodes were recorded."""
        return {"ort_nodes": sessions.mode()}

    def with_details(
        self,
        ops: Table,
        category: IntArray,
        payload: npt.NDArray[Any],
        outputs: Sequence[RecorderOutput],
    ) -> Table:
        """Return the ops with the columns of events, and the memory and threads of nodes."""
        ops = with_failures(add_ort_columns(ops, category, payload))
        usage = [output.node_usage for output in outputs if isinstance(output, _Output)]
        return node_usage.with_node_usage(ops, [part for part in usage if part])

    def describe(self, ops: Table, activities: Table) -> tuple[dict[str, Any], list[str]]:
        """Return what the profile says about the sessions."""
        entries = session_info(ops)
        return entries, session_notes(ops, activities, entries)

    def identify_ops(
        self,
        ops: Table,
        activities: Table,
        call_start: TimesOfCalls,
        call_end: TimesOfCalls,
        stopped_ns: int,
    ) -> IdentifiedOps | None:
        """Find the nodes of runs that were not recorded node by node, by their launches."""
        return identify_nodes(ops, activities, call_start, call_end, stopped_ns)
