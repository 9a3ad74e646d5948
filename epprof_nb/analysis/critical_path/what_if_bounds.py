"""Savings of `Profile.what_if`, with bounds from what is not known of the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.critical_path.changed_durations import HostTime
from epprof_nb.analysis.critical_path.interleaved_ops import interleaved_ops, suspended_ops
from epprof_nb.analysis.critical_path.kernel_ops import kernel_ops
from epprof_nb.analysis.critical_path.profiler_costs import ERRORS
from epprof_nb.analysis.critical_path.unrecorded_runs import BOUNDS
from epprof_nb.analysis.critical_path.what_if_replay import Replay
from epprof_nb.arrays.intervals import union
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.cached import cached_property

if TYPE_CHECKING:
    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.idle_threads import Idle
    from epprof_nb.analysis.critical_path.what_if_replay import Factors, Target
    from epprof_nb.arrays.types import BoolArray

_EXPLAINED = 0.9
"""An end of idle time is possible if at least this part of the recorded path remains with it."""


class Savings(NamedTuple):
    """Saving of changes, ns, within bounds; what takes most of the path then, and its share.

    ``ns`` is None if it is not known. ``without_profiler`` is by how much the path is shorter than
    recorded: by the saving, and by what recording took, as far as it is known; then its bounds.
    """

    ns: int | None
    low: int
    high: int
    without_profiler: tuple[int, int, int]
    limit: str | None
    limit_share: float


class BoundedReplay(Replay):
    """A replay that knows how far it can be wrong."""

    def __init__(
        self, index: ProfileIndex, attribution: Attribution, *, without_profiler: bool = False
    ) -> None:
        super().__init__(index, attribution, without_profiler=without_profiler)
        in_kernels = index.cached(kernel_ops)
        self._suspended = suspended_ops(index) | in_kernels
        self._interleaved = interleaved_ops(index) | in_kernels

    @cached_property
    def _waits_for_unrecorded_threads(self) -> bool:
        """True if threads that have no ops ended waits: what they do is not replayed."""
        tables = self._index.profile.tables
        waits, with_ops = tables["thread_waits"], tables["ops"]["thread_id"]
        other = waits["other_thread_id"]
        is_wait = (waits["end_ns"] > waits["start_ns"]) & np.isin(waits["thread_id"], with_ops)
        return bool((is_wait & (other != MISSING) & ~np.isin(other, with_ops)).any())

    @cached_property
    def idle_ends(self) -> dict[Idle, int]:
        """Ends that idle time may have, besides a fixed time, and the length of the path then.

        If threads waited for each other's idle time, they would all be done at once.
        """
        lengths = {
            idle: self.length([], contention=False, idle=idle)[0]
            for idle in self._path.input.idle_kinds
        }
        return {
            idle: length
            for idle, length in lengths.items()
            if length >= _EXPLAINED * self.length_ns
        }

    def savings(self, changes: list[tuple[Target, float]]) -> Savings:
        """Return what changes save."""
        alone, limit, share = self.length(changes, contention=False)
        suspended = self._bounds_of_suspended(changes)
        shared, *_ = self.length(changes, contention=True)
        found = [self.length_ns - alone, self.length_ns - shared]
        for idle, before in self.idle_ends.items():
            after, *_ = self.length(changes, contention=idle != "until time", idle=idle)
            found.append(before - after)
        for part in BOUNDS if len(self._unrecorded.rows) else ():
            after, *_ = self.length(changes, contention=False, part=part)
            found.append(self.length_ns - after)
        found += suspended or ()
        if self._waits_for_unrecorded_threads:  # they may last longer by all that is saved
            found.append(min(found[0], 0))
        errors = []
        for error in ERRORS if self._costs is not None else ():
            before, *_ = self.length([], contention=False, error=error)
            after, *_ = self.length(changes, contention=False, error=error)
            errors.append((before - after, self._path.length_ns - after))
        freed = self._freed_on_host(changes)
        if len(freed.start):
            shared, *_ = self.length(changes, contention=True, left_out=freed)
            found.append(self.length_ns - shared)
        host = np.append(self._without_costs(self._host_factors(changes))[0], 1.0)
        in_turns = self._path.input.python_kernels.in_turns_ns(host, self._kernel_factors(changes))
        found.append(self.length_ns - max(alone, min(in_turns, self.length_ns)))
        is_known = self.is_known(changes)
        recording_ns = self._path.length_ns - self.length_ns
        savings = [*found, *(saving for saving, _ in errors)]
        shorter = [*(recording_ns + ns for ns in found), *(ns for _, ns in errors)]
        return Savings(
            found[0] if is_known else None,
            min(savings),
            max(savings),
            (shorter[0], min(shorter), max(shorter)),
            limit if is_known else None,
            share if is_known else float("nan"),
        )

    def _bounds_of_suspended(self, changes: list[tuple[Target, float]]) -> tuple[int, int] | None:
        """Return bounds of what the suspended ops among changes save; None without such an op.

        Other coroutines may use the time in which an op is suspended, or wait for the op.
        """
        least = most = 0
        found = False
        ops = self._index.profile.tables["ops"]
        for target, factor in changes:
            rows = np.flatnonzero(self._outermost_of(target, self._suspended))
            found |= bool(len(rows))
            start, end = union(ops["start_ns"][rows], ops["end_ns"][rows])
            removed = round((1 - factor) * int((end - start).sum()))
            least, most = least + min(removed, 0), most + max(removed, 0)
        return (least, min(most, self.length_ns)) if found else None

    def is_known(self, changes: list[tuple[Target, float]]) -> bool:
        """Return whether it is known when the changed ops used their threads.

        It is not for ops of coroutines that took turns on a thread, nor for those in kernels.
        """
        return not any(self._outermost_of(target, self._interleaved).any() for target, _ in changes)

    def _outermost_of(self, target: Target, kind: BoolArray) -> BoolArray:
        """Return the ops of a kind in a target which are in none of its ops of another kind."""
        if not kind.any():
            return kind
        rows = self._op[target.pairs]
        inside = np.zeros(len(kind), np.bool_)
        inside[rows[rows >= 0]] = True
        return inside & kind & (self._index.tree.nearest_ancestor(inside & ~kind) < 0)

    def _freed_on_host(self, changes: list[tuple[Target, float]]) -> HostTime:
        """Return when threads waited for the processor, which the changed work used."""
        host = self._host_factors(changes)[self._of_ops]
        of_threads = self._path.input.shared_processor.freed(1 - host)
        of_kernels = self._path.input.python_kernels.freed(self._kernel_factors(changes))
        return HostTime(*map(np.append, of_threads, of_kernels))

    def _kernel_factors(self, changes: list[tuple[Target, float]]) -> Factors:
        device, of_activity = self._device_factors(changes)
        return of_activity * device[self._owners.of_activities]
