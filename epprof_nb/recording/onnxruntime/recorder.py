"""The ONNX Runtime recorder: enables ONNX Runtime's profiling of runs during a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb.recording.onnxruntime import node_usage, sessions
from epprof_nb.recording.recorder import RecorderOutput

if TYPE_CHECKING:
    from epprof_nb.core.options import Options


class OnnxRuntimeRecorder:
    """Records the events of observed sessions. See `epprof_nb.recording.recorder.Recorder`.

    The events are ops: the observer pushes them on the op stack, and they are in the op log. What
    nodes took of memory and threads has a log of its own.
    """

    name = "onnxruntime"

    def start(self, options: Options) -> list[str]:
        """Start profiling runs."""
        node_usage.drain()  # of runs that outlived the last recording
        sessions.start(options.ort_nodes)
        return []

    def extend(self, options: Options) -> list[str]:
        """Record at least as many nodes as `options` ask for."""
        sessions.raise_mode(options.ort_nodes)
        return []

    def sync(self) -> None:
        """Do nothing: host events need no waiting."""

    def drain(self, *, waited: bool = True) -> RecorderOutput:  # noqa: ARG002
        """Return the memory and threads of nodes, and no activities: the events are ops."""
        return RecorderOutput(node_usage=node_usage.drain())

    def notes(self) -> list[str]:
        """Return a note for each session that ran unobserved, with the reason and remedy."""
        return sessions.notes()

    def stop(self) -> None:
        """Stop profiling runs."""
        sessions.stop()

    def devices(self) -> list[dict[str, Any]]:
        """Return no devices: those of the providers have their own recorders."""
        return []
