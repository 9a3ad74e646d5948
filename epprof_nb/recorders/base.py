"""The interface of a recorder: a source of activities that the capture service turns on and off."""

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
class Recorded:
    """What a recorder hands over: tables with absolute CLOCK_MONOTONIC times, not yet joined.

    ``op_id`` and ``attribution`` are left missing: the join fills them from the launch log by
    ``correlation_id``.
    """

    activities: Table = field(default_factory=lambda: Table(ACTIVITIES))
    memory: Table = field(default_factory=lambda: Table(MEMORY))
    overhead: Table = field(default_factory=lambda: Table(OVERHEAD))
    dropped: int = 0
    """Activities that found no room, whatever their kind."""
    graph_nodes: dict[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    """CUDA graph nodes seen: ``node``, ``original`` (0: made by a capture), ``op_id`` (0: none)."""
    api_calls: Table | None = None
    """API calls the recorder saw itself, where the launch log could not (external correlation)."""
    op_of_correlation: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None = None
    """External correlation: correlation ids and the op ids pushed around their calls."""
    decode_ns: int = 0
    """Time that decoding took, on the recorder's own threads or while handing over."""
    own_waits: tuple[tuple[int, int], ...] = ()
    """Stretches in which the profiler itself waited for the device, nanoseconds."""


class Recorder(Protocol):
    """A source of activities. The capture service calls these, one thread at a time."""

    name: str

    def start(self, options: Options) -> list[str]:
        """Turn recording on; return notes for the user (what cannot be recorded, and why)."""

    def sync(self) -> None:
        """Wait until the device work launched so far has finished, where that is allowed."""

    def drain(self, *, waited: bool = True) -> Recorded:
        """Hand over the activities recorded since the last call.

        `waited` says that `sync` came just before; else the device may be at work.
        """

    def remarks(self) -> list[str]:
        """Return notes for the user on what was seen since `start`."""

    def stop(self) -> None:
        """Turn recording off and leave nothing behind; called once for each `start`."""

    def devices(self) -> list[dict[str, Any]]:
        """Describe the devices it records: ``device_id``, ``name``, ``kind`` (cuda, host)."""
