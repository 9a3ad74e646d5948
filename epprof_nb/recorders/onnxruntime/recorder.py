"""The recorder of ONNX Runtime's events: asks for each run's profile while a profile is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb.recorders.base import RecorderOutput
from epprof_nb.recorders.onnxruntime import sessions as ort_runs

if TYPE_CHECKING:
    from epprof_nb.core.options import Options


class OnnxRuntimeRecorder:
    """Has observed sessions tell of their runs. See `epprof_nb.recorders.base.Recorder`.

    The events are ops: the observer puts them on the op stack, and they come with the op log.
    """

    name = "onnxruntime"

    def start(self, options: Options) -> list[str]:  # noqa: ARG002 - all is always recorded
        """Turn the profiling of runs on."""
        ort_runs.start()
        return []

    def sync(self) -> None:
        """Events are complete when they end: there is nothing to wait for."""

    def drain(self, *, waited: bool = True) -> RecorderOutput:  # noqa: ARG002
        """Hand over nothing: ONNX Runtime's events are ops, not activities."""
        return RecorderOutput()

    def notes(self) -> list[str]:
        """Name the sessions that ran unobserved, why, and what to do."""
        return ort_runs.notes()

    def stop(self) -> None:
        """Turn the profiling of runs off."""
        ort_runs.stop()

    def devices(self) -> list[dict[str, Any]]:
        """Describe no device: those of the providers have recorders of their own."""
        return []
