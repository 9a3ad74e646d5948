"""The length of the critical path if some work took more or less time.

`waits`, `thread_joins` and `lanes` beside this file decide which work waits for which.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from epprof_nb.analysis.base.device_work import KERNEL
from epprof_nb.analysis.critical_path.by_line import PathLines
from epprof_nb.analysis.critical_path.chain import (
    ACTIVITY,
    API_CALL,
    HOST,
    RETURN,
    CriticalPath,
    ops_below,
)
from epprof_nb.analysis.critical_path.changed_durations import NO_TIME, Changes, HostTime, Owners
from epprof_nb.analysis.critical_path.holders import Holders
from epprof_nb.analysis.critical_path.profiler_costs import (
    few_values,
    host_left,
    nodes_left,
    own_host_ns,
    profiler_costs,
)
from epprof_nb.analysis.critical_path.unrecorded_runs import UnrecordedRuns
from epprof_nb.analysis.critical_path.what_if_names import Names
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.intervals import covered_between, union
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.cached import cached_property

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.idle_threads import Idle
    from epprof_nb.analysis.critical_path.profiler_costs import Error, ProfilerCosts
    from epprof_nb.analysis.critical_path.unrecorded_runs import Part
    from epprof_nb.arrays.types import BoolArray, IntArray

    Factors = npt.NDArray[np.float64]
    Side = Literal["both", "host", "device"]

_NONE = np.empty(0, np.int64)
_MAX_FACTORS = 250
"""Number of different factors of the host's time: the core takes 254, and some for what is gone."""
_MOST = 1e100
"""Products of factors are computed up to this one: more overflow."""


class Target(NamedTuple):
    """The work that a change applies to: pairs of an op and lines, activities, or all waits."""

    pairs: BoolArray
    activities: BoolArray
    on: Side
    waits: bool = False


class Replay:
    """The critical path of a profile with other durations.

    Parameters
    ----------
    index
        Index of the profile.
    attribution
        See `epprof_nb.Profile.by_op`.
    without_profiler
        Whether the time that recording took of the program's threads is left out, if it is known.
    """

    def __init__(
        self, index: ProfileIndex, attribution: Attribution, *, without_profiler: bool = False
    ) -> None:
        self._index = index
        self._path = path = index.cached(CriticalPath, attribution)
        self._lines = lines = index.cached(PathLines, attribution)
        self._names = Names(index, lines)
        activities = index.profile.tables["activities"]
        self._duration = np.maximum(activities["end_ns"] - activities["start_ns"], 0)
        self._unrecorded = index.cached(UnrecordedRuns)
        # What is changed together: pairs of an op and a pair of the lines.
        events, ops = path.input, np.arange(len(index.tree))
        op = np.concatenate([events.activity_op, events.call_op, ops]).astype(np.int64)
        pair = np.concatenate([lines.owners.of_activities, lines.owners.of_calls, lines.pair_of_op])
        codes, first = group_codes(pair, op)
        self._pairs, self._op, self._line_pair = len(first), op[first], pair[first]
        owned = np.where((pair == MISSING) & (op == MISSING), MISSING, codes).astype(np.int32)
        sizes = np.cumsum([len(events.activity_op), len(events.call_op)])
        of_activities, of_calls, self._of_ops = np.split(owned, sizes)
        self._owners = Owners(of_activities, of_calls, self._pairs)
        self._own_ns = own_host_ns(index, path.input.waiting_calls)
        self._holders = Holders(index, path.input.ops_on_path)
        calls = index.profile.tables["api_calls"]
        of_pairs = sum_by_group(of_calls, calls["end_ns"] - calls["start_ns"], self._pairs)
        self._host_ns = np.append(self._holders.path_ns(self._own_ns), of_pairs)
        self._costs: ProfilerCosts | None = None
        self._nodes_left = np.ones(len(self._duration))
        if without_profiler and path.length_ns:
            costs = index.cached(profiler_costs)
            if not costs.reason:
                self._costs = costs
                self._nodes_left = nodes_left(index)

    @cached_property
    def length_ns(self) -> int:
        """Length of the path before changes."""
        if self._costs is None:
            return self._path.length_ns
        return self.length([], contention=False)[0]

    @cached_property
    def longest_ns(self) -> int:
        """Time that no op, call or activity exceeds, nor the profile."""
        tables = self._index.profile.tables
        hosts = [
            int(np.max(tables[name]["end_ns"] - tables[name]["start_ns"], initial=0))
            for name in ("ops", "api_calls")
        ]
        return max(self._index.profile.wall_ns, int(self._duration.max(initial=0)), *hosts)

    def largest_product(self, changes: list[tuple[Target, float]]) -> tuple[float, list[int]]:
        """Return the largest product of factors of the same work, and the changes that make it."""
        work = [
            np.append(
                target.pairs,
                target.activities | np.append(target.pairs, False)[self._owners.of_activities],
            )
            for target, _ in changes
        ]
        product = np.ones(self._pairs + len(self._duration))
        for is_changed, (_, factor) in zip(work, changes, strict=True):
            product[is_changed] = np.minimum(product[is_changed] * factor, _MOST)
        if not len(product):
            return 1.0, []
        largest = product.argmax()
        parts = [i for i, (_, factor) in enumerate(changes) if work[i][largest] and factor != 1]
        return float(product[largest]), parts

    def target(self, name: str, on: Side) -> Target:
        """Return one side of what a name of the user stands for; ValueError if nothing has it."""
        named = self._names.work(name)
        if named.ops is not None:
            return self.target_of_ops(named.ops, on)
        pairs = np.zeros(self._pairs, np.bool_)
        if named.lines is not None:
            pairs = np.isin(self._line_pair, named.lines)
        activities = named.activities
        if activities is None:
            activities = np.zeros(len(self._index.kinds), np.bool_)
        return Target(pairs, activities, on, named.waits)

    def target_of_ops(self, ops: BoolArray, on: Side) -> Target:
        """Return one side of ops, given by a mask of the rows, and of all below them."""
        below = np.append(ops_below(self._index, ops), False)
        return Target(below[self._op], np.zeros(len(self._index.kinds), np.bool_), on)

    def length(
        self,
        changes: list[tuple[Target, float]],
        *,
        contention: bool,
        idle: Idle = "fixed",
        added_ns: IntArray = _NONE,
        part: Part = "expected",
        left_out: HostTime = NO_TIME,
        error: Error = "none",
    ) -> tuple[int, str | None, float]:
        """Return the length of the path, what takes most of it, and its share.

        With `contention`, kernels lose the removed time in which they overlapped with it, or waited
        though they were launched and their stream was free. `idle` is what ends idle time.
        `added_ns` and `left_out` are time of the host, as in `Changes`. `part` is what nodes take
        of runs that were not recorded node by node. `error` is that of the time which
        recording took.
        """
        waits = any(target.waits and factor != 1 for target, factor in changes)
        host = self._host_factors(changes)
        device, of_activity = self._device_factors(changes)
        if len(self._unrecorded.rows):
            of_runs = self._unrecorded.factors(host[self._of_ops], part)
            host[self._of_ops[self._unrecorded.rows]] = of_runs
        of_device = device[self._owners.of_activities]
        if len(self._unrecorded.rows):
            of_device = self._unrecorded.device_factors(
                of_device, device[self._of_ops], self._path.input.activity_op, part
            )
        of_activity *= of_device
        length = np.rint(self._duration * of_activity * self._nodes_left).astype(np.int64)
        freed = np.empty(0, np.int64)
        if contention:
            overlapped, freed = self._freed(of_activity)
            length -= overlapped
        of_ops, of_pairs = self._without_costs(host, error)
        # What does not run is not delayed either, and its calls wait for nothing.
        exists = (host != 0) | (device != 0)
        exists = np.append(exists[self._of_ops], exists)
        kept, code_left = few_values(
            np.append(of_ops, of_pairs)[exists], _MAX_FACTORS, self._host_ns[exists]
        )
        code = np.zeros(len(exists), np.uint8)  # the first is for what is gone
        code[exists] = 1 + code_left
        kept, delays = np.append(0.0, kept), np.append(0.0, np.ones(len(kept)))
        factors = np.stack([kept, np.ones(len(kept)), delays], axis=1)
        if idle == "last turn":
            turns = self._path.input.last_turns
            # What is in the lock takes as long for the others.
            later = np.rint(turns.added_ns * of_ops).astype(np.int64)
            added_ns, left_out = added_ns + later if len(added_ns) else later, turns.waits
        change = Changes(code, factors, length, freed, added_ns, left_out, without_waits=waits)
        total, path = self._path.input.changed_path(change, self._owners, idle)
        limit, share = self._limit(path, length, (of_ops, of_pairs), waits=waits)
        return total, limit, share

    def _without_costs(self, host: Factors, error: Error = "none") -> tuple[Factors, Factors]:
        """Return the factors of ops' time on the path, and of pairs' calls, without the profiler.

        `host` has the factor of the host's time of each pair, and of none.
        """
        left, of_pairs = np.ones(len(self._of_ops)), host
        if self._costs is not None:
            left = host_left(self._index, self._own_ns, self._costs.of_ops(error))
            of_pairs = host * np.append(np.append(left, 1.0)[self._op], 1.0)
        return self._holders.factors(host[self._of_ops] * left, self._own_ns), of_pairs

    def _host_factors(self, changes: list[tuple[Target, float]]) -> Factors:
        """Return the factor of the host's time of each pair, and of none."""
        host = np.ones(self._pairs + 1)
        for target, factor in changes:
            if target.on != "device":
                host[:-1][target.pairs] *= factor
        return host

    def _device_factors(self, changes: list[tuple[Target, float]]) -> tuple[Factors, Factors]:
        """Return the factor of a device's time of each pair, and of none; and of activities."""
        device, of_activity = np.ones(self._pairs + 1), np.ones(len(self._duration))
        for target, factor in changes:
            if target.on != "host":
                device[:-1][target.pairs] *= factor
                of_activity[target.activities] *= factor
        return device, of_activity

    def _freed(self, of_activity: Factors) -> tuple[IntArray, IntArray]:
        """Return the time that kernels lose if others are shorter: of their own, and of delays.

        A kernel that fills the device makes those of other streams wait, so that they do not
        overlap but take turns.
        """
        activities = self._index.profile.tables["activities"]
        start, end = (activities[name] for name in ("start_ns", "end_ns"))
        ready = np.minimum(self._path.input.ready, start)
        is_kernel = self._index.kinds == KERNEL
        shorter = is_kernel & (of_activity < 1)
        overlapped, waited = (np.zeros(len(start), np.int64) for _ in range(2))
        for device in np.unique(activities["device_id"][shorter]).tolist():
            on_device = activities["device_id"] == device
            cause, rows = shorter & on_device, np.flatnonzero(is_kernel & on_device)
            busy = union(start[cause], end[cause])
            removed = np.average(1 - of_activity[cause], weights=self._duration[cause] + 1e-9)
            waited[rows] = covered_between(*busy, ready[rows], start[rows]) * removed
            rows = rows[~shorter[rows]]
            overlapped[rows] = covered_between(*busy, start[rows], end[rows]) * removed
        return overlapped, waited

    def _limit(
        self,
        path: dict[str, npt.NDArray[np.int64]],
        length: IntArray,
        host: tuple[Factors, Factors],
        *,
        waits: bool,
    ) -> tuple[str | None, float]:
        """Return whether the host, a device or delays take most of a path, and their share."""
        is_left_out = (path["step"] == API_CALL) & (path["row"] >= len(self._owners.of_calls))
        step, row = path["step"][~is_left_out], path["row"][~is_left_out]
        spent = (path["end_ns"] - path["start_ns"])[~is_left_out].astype(np.float64)
        of_op, of_call, of_device = step == HOST, step == API_CALL, step == ACTIVITY
        spent[of_device] = length[row[of_device]]
        of_ops, of_pairs = host
        spent[of_op] *= np.append(of_ops, 1.0)[row[of_op]]
        spent[of_call] *= of_pairs[self._owners.of_calls[row[of_call]]]
        if waits:
            returns = of_call | (step == RETURN)
            spent[returns] *= ~self._path.input.waiting_calls[row[returns]]
        parts = {
            "host": spent[of_op | of_call].sum(),
            "device": spent[of_device].sum(),
            "delays": spent[~(of_op | of_call | of_device)].sum(),
        }
        total = sum(parts.values())
        if total <= 0:
            return None, 0.0
        largest = max(parts, key=lambda name: parts[name])
        return largest, float(parts[largest] / total)
