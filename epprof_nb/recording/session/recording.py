"""Recording: what the recording service gives to a session, batch by batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.core.recording_costs import NAME_OF_KIND
from epprof_nb.data.schema import THREAD_WAITS
from epprof_nb.data.table import Table

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.core.options import Options
    from epprof_nb.recording.recorder import Recorder, RecorderOutput
    from epprof_nb.recording.session.graph_node_registry import GraphNodeRegistry
    from epprof_nb.recording.session.thread_names import ThreadNames


@dataclass(slots=True)
class Batch:
    """Data recorded between two flushes: the native core's columns and each recorder's output."""

    ops: dict[str, Any]
    launches: dict[str, Any]
    outputs: list[RecorderOutput]
    flushed_ns: int
    samples: dict[str, Any] = field(default_factory=dict)
    """Samples of the host's Python code; empty if there are none."""
    waits: Table = field(default_factory=lambda: Table(THREAD_WAITS))
    """Waits of threads for each other."""
    costs: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)] * len(NAME_OF_KIND))
    """Time that recording took of the program's threads, ns, by kind."""
    op_costs: list[tuple[int, int, int, int]] = field(default_factory=list)
    """The same of statements by op and kind; see `epprof_nb._native.take_op_costs`."""


@dataclass(slots=True, eq=False)
class Subscription:
    """A request for events, from `RecordingService.open` to `RecordingService.close`.

    Callers create it before it opens, so that they can close it even if they are interrupted.
    """

    options: Options
    first_batch: int = 0
    opened_ns: int = 0
    previous_batches: list[Batch] = field(default_factory=list)
    """Batches recorded for others before it opened. Work launched in them is not part of it."""
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Recording:
    """The data of one subscription: its batches, and the earlier batches."""

    batches: list[Batch]
    previous_batches: list[Batch]
    opened_ns: int
    stopped_ns: int
    closed_ns: int
    devices: list[dict[str, Any]]
    versions: dict[str, str]
    clock: dict[str, Any]
    settings: dict[str, Any]
    notes: list[str]
    graph_nodes: GraphNodeRegistry
    thread_names: ThreadNames
    stacks: list[dict[str, Any]]
    """Python stacks that the native core has logged since the first subscription opened."""
    kernel_places: dict[str, dict[str, Any]]
    """File and line of kernels by name, if their frameworks know them."""
    recorders: list[Recorder]
    options: Options
    """The combined options of all subscriptions that were open meanwhile, but with `samples` of
    this one."""


def column(batches: list[Batch], table: str, name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return one native column of a list of batches, concatenated."""
    parts = [np.frombuffer(getattr(batch, table)[name], dtype) for batch in batches]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
