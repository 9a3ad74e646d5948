"""Time that profiling added, estimated from what recording took of the program's threads.

The length of the critical path without this time of the host says what it cost: nobody waits for
launches that are queued.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epprof_nb.analysis.base.devices import used_gpu
from epprof_nb.analysis.base.waiting_frames import FOR_PROCESSES, OF_EVENT_LOOPS, waiting_samples
from epprof_nb.analysis.critical_path.chain import CriticalPath
from epprof_nb.analysis.critical_path.holders import Holders
from epprof_nb.analysis.critical_path.profiler_costs import (
    grouped,
    host_left,
    nodes_left,
    own_host_ns,
    profiler_costs,
)
from epprof_nb.arrays.intervals import union
from epprof_nb.arrays.types import MISSING
from epprof_nb.core.recording_costs import NAMES, STATEMENTS

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.profiler_costs import Costs

_MAX_EVENTS, _MAX_EVENTS_OF_HOST = 200_000, 1_000_000
"""Maximum number of ops and API calls: the critical path of more takes long, and without a GPU, the
sums of more (0.2 s per million)."""
MAX_PART = 0.97
"""Maximum part of the wall time: a larger estimate would leave the code itself no time. So at most
"at least 687 %" is stated (`added_time`)."""
_STEPS = 200
"""Number of different factors of host time: the critical path takes at most 255."""


class EstimatedTime(NamedTuple):
    """Estimate of what profiling added, ns.

    ``of_threads`` is what recording took of the program's threads by `NAMES`, also where nobody
    waited for it; ``of_op`` by op.
    """

    total_ns: int
    of_threads: dict[str, int]
    of_op: Costs

    def parts(self, total_ns: int) -> dict[str, int]:
        """Return the part of a total that each kind of recording has."""
        whole = sum(self.of_threads.values())
        return {name: round(total_ns * ns / whole) for name, ns in self.of_threads.items()}

    def in_info(self) -> dict[str, Any]:
        """Return it as the info of a profile states it, as ``added_ns``."""
        parts = self.parts(self.total_ns)
        return {
            "total": self.total_ns, "estimated": True, "parts": parts,
            "of_threads": self.of_threads,
        }  # fmt: skip


def estimated_time(index: ProfileIndex) -> EstimatedTime | None:
    """Return an estimate of what profiling added; None if it is not known."""
    if reason_without_estimate(index):
        return None
    ops, found = index.profile.tables["ops"], index.cached(profiler_costs)
    of_op = found.of_ops()
    if used_gpu(index):
        added_ns = _saved_on_path(index, of_op)
    else:  # the threads of the host device take the interpreter from the thread of the cell
        of_cell = ops["thread_id"] == index.profile.info.get("thread_id", MISSING)
        # One thread at a time runs Python.
        of_others = found.stretch * found.by_kind[STATEMENTS].sum(where=~of_cell)
        of_others *= _awake_part(index) if of_others else 0.0
        added_ns = round(float(of_op.sum(where=of_cell) + of_others))
    added_ns = min(added_ns, round(MAX_PART * index.profile.wall_ns))
    of_threads = {NAMES[kind]: round(float(ns.sum())) for kind, ns in found.by_kind.items()}
    return EstimatedTime(added_ns, {name: ns for name, ns in of_threads.items() if ns}, of_op)


def reason_without_estimate(index: ProfileIndex) -> str:
    """Return why it is not known what profiling added; empty if it is."""
    events = len(index.profile.tables["ops"]) + len(index.profile.tables["api_calls"])
    most = _MAX_EVENTS if used_gpu(index) else _MAX_EVENTS_OF_HOST
    if events > most:
        return f"the profile has more than {most:,} ops and calls"
    return index.cached(profiler_costs).reason


def _awake_part(index: ProfileIndex) -> float:
    """Return the part of the wall time in which other threads could delay the thread of the cell.

    While it sleeps, or waits for a time, a process or a file, it does not wait for what they take
    longer. Samples tell the last two.
    """
    tables, thread = index.profile.tables, index.profile.info.get("thread_id")
    waits, samples = tables["thread_waits"], tables["host_samples"]
    is_alone = (waits["thread_id"] == thread) & (waits["other_thread_id"] == MISSING)
    is_outside = (samples["thread_id"] == thread) & waiting_samples(
        index, OF_EVENT_LOOPS | FOR_PROCESSES
    )
    sampled = samples["start_ns"][is_outside]
    start, end = union(
        np.append(waits["start_ns"][is_alone], sampled - samples["interval_ns"][is_outside]),
        np.append(waits["end_ns"][is_alone], sampled),
    )
    return max(1 - float((end - start).sum()) / max(index.profile.wall_ns, 1), 0.0)


def _saved_on_path(index: ProfileIndex, costs: Costs) -> int:
    """Return how much shorter the critical path is without the costs of ops, and those of nodes."""
    path = index.cached(CriticalPath, "launch")
    if not path.length_ns:
        return 0
    own = own_host_ns(index, path.input.waiting_calls)
    left = Holders(index, path.input.ops_on_path).factors(host_left(index, own, costs), own)
    left = np.maximum(grouped(left, _STEPS), 1e-9)  # an op with 0 would not exist
    return max(path.length_ns - path.input.length_with(left, nodes_left(index)), 0)
