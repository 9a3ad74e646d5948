"""The interface of recorders: sources of activities that the capture service starts and stops."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from epprof_nb.data.schema import ACTIVITIES, MEMORY, OVERHEAD
from epprof_nb.data.table import Table

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from epprof_nb.core.options import Options


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
    api_calls: Table | None = None
    """API calls recorded with external correlation, where the launch log is not available."""
    external_correlation: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None = None
    """Correlation ids and the op ids pushed as CUPTI's external correlation ids."""
    decode_ns: int = 0
    """Time spent decoding records, on the recorder's threads or in `Recorder.drain`."""
    profiler_sync_intervals: tuple[tuple[int, int], ...] = ()
    """Intervals in which the profiler itself waited for the device, in nanoseconds."""


class Recorder(Protocol):
    """A source of activities. The capture service calls it from one thread at a time."""

    name: str

    def start(self, options: Options) -> list[str]:
        """Start recording; return notes for the user on what cannot be recorded, and why."""

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
