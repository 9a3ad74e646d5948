"""Time that profiling added to a cell, in the info of its profile."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from epprof_nb import _native
from epprof_nb.recording.session.host_load import WaitReading, read_waits, waited_between

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.notebook.arguments import Request
    from epprof_nb.profiles import Profile

_MAX_WAIT = 0.01
"""Maximum device work after the code, as a share of a repeat."""
_MIN_RUN_NS = 10_000_000
"""Minimum time of runs whose waits are read: reading them takes about 0.1 ms."""


class _Mark(NamedTuple):
    reached_ns: int
    waits: WaitReading
    left_ns: int


class RunTimes:
    """Times of runs of some code, and how long each of them waited for a core."""

    def __init__(self) -> None:
        self._marks: list[_Mark] = []

    def mark(self) -> None:
        """Mark the begin of a run, or the end of the last one."""
        reached_ns = _native.now_ns()
        self._marks.append(_Mark(reached_ns, read_waits(), _native.now_ns()))

    def wall_ns(self) -> list[int]:
        """Return the wall time of each run, ns."""
        return [end.reached_ns - begin.left_ns for begin, end in pairwise(self._marks)]

    def waits_ns(self) -> list[int]:
        """Return how long each run waited for a core, ns."""
        return [
            waited_between(begin.waits, end.waits, end.reached_ns - begin.left_ns)
            for begin, end in pairwise(self._marks)
        ]

    def are_long(self) -> bool:
        """Whether there are runs, and they are long enough to read waits between further ones."""
        return min(self.wall_ns(), default=0) >= _MIN_RUN_NS


def add_time(profile: Profile, request: Request, warmups: RunTimes, repeats: RunTimes) -> None:
    """Add what profiling added to the info of a profile, or the reason why it is not known.

    It is measured by the warm-ups, which are not profiled, else estimated. `warmups` has no runs if
    their times do not match the code, and `repeats` none if their waits were not read.
    """
    from epprof_nb.analysis.added_time.estimated_time import (
        estimated_time,
        reason_without_estimate,
    )
    from epprof_nb.analysis.base.index import index_of

    index = index_of(profile)
    added: dict[str, Any] = _measured(profile, request, warmups, repeats)
    estimated = index.cached(estimated_time)
    if estimated is None:
        profile.info["added_ns"] = added or {"reason": reason_without_estimate(index)}
        return
    stated = estimated.in_info()
    if "total" in added:
        stated = {"parts": estimated.parts(added["total"]), "of_threads": estimated.of_threads}
    profile.info["added_ns"] = {**added, **stated}


def _measured(
    profile: Profile, request: Request, warmups: RunTimes, repeats: RunTimes
) -> dict[str, Any]:
    """Compare the times of the repeats with those of the warm-ups; {} with too few of them.

    The time in which they waited for cores that other processes used does not count.
    """
    import numpy as np

    from epprof_nb.analysis.added_time.measured_time import measured_time

    info = profile.info
    bounds = np.array(info.get("repeats") or (), np.int64).reshape(-1, 2)
    times = bounds[:, 1] - bounds[:, 0]
    unprofiled = np.array(warmups.wall_ns(), np.int64)
    # An error ended the last repeat early.
    if not len(unprofiled) or not len(times) == request.repeat > 1 or info.get("error"):
        return {}
    waits = _waits_for_others(profile, warmups, repeats)
    # The end of a recording takes some time, even without such work.
    work = profile.tables["activities"]["end_ns"].max(initial=0)
    is_waited_for = work - info["code_ns"] < _MAX_WAIT * times.min()
    if waits is not None and len(waits[1]) == len(times):
        unprofiled = unprofiled - waits[0]
        times = np.array(repeats.wall_ns(), np.int64) - waits[1]
    added: dict[str, Any] = {**measured_time(unprofiled.tolist(), times, info["wall_ns"])}
    if added and request.options.time_limit_s is not None:
        return {"reason": "a time limit was given"}
    if added and not is_waited_for:
        # It counts for no warm-up.
        return {"reason": "the cell ended before its work on the device"}
    return added


def _waits_for_others(
    profile: Profile, warmups: RunTimes, repeats: RunTimes
) -> tuple[IntArray, IntArray] | None:
    """Return how long other processes kept the runs waiting; None if a GPU may have worked then."""
    import numpy as np

    from epprof_nb.analysis.base.devices import used_gpu
    from epprof_nb.analysis.base.index import index_of
    from epprof_nb.analysis.base.processor_use import load_of, waits

    if used_gpu(index_of(profile)):
        return None
    waited, by_others = waits(load_of(profile.info))
    share = by_others / waited if waited else 0.0
    first, second = (
        np.rint(np.array(runs.waits_ns()) * share).astype(np.int64) for runs in (warmups, repeats)
    )
    return first, second
