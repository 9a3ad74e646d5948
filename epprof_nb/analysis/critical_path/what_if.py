"""what_if: the length of the critical path if some work took more or less time.

`waits`, `thread_joins` and `lanes` beside this file decide which work waits for which.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from fnmatch import fnmatchcase
from numbers import Real
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from epprof_nb.analysis.base.device_work import KERNEL, MEMCPY
from epprof_nb.analysis.base.missing_records import lacks_records
from epprof_nb.analysis.base.op_tree import NO_OP, UNNAMED
from epprof_nb.analysis.base.result_table import (
    OptionalColumn,
    ResultTable,
    categorical,
    objects,
    optional,
)
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.base.unknown_device_times import has_waits, is_trace
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
from epprof_nb.analysis.critical_path.interleaved_ops import interleaved_ops, suspended_ops
from epprof_nb.analysis.critical_path.kernel_ops import kernel_ops
from epprof_nb.analysis.critical_path.unrecorded_runs import BOUNDS, UnrecordedRuns
from epprof_nb.analysis.frameworks.training_phases import MODULE_TYPES, is_framework_op, is_of_type
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.intervals import covered_between, union
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.op_args import arguments
from epprof_nb.util.cached import cached_property
from epprof_nb.util.format import shorten

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.idle_threads import Idle
    from epprof_nb.analysis.critical_path.unrecorded_runs import Part
    from epprof_nb.arrays.types import BoolArray, IntArray

    Factors = npt.NDArray[np.float64]
    Side = Literal["both", "host", "device"]

WAITS, COPIES = "waits", "copies"
_NONE = np.empty(0, np.int64)
_LINE = re.compile(r"(?:(?P<file>.+?)[\s:,]+)?line\s+(?P<line>\d+)")
_PATTERN = re.compile(r"[*?]|\[.+\]")
_ALL = "all of them"
_SHOWN = 60
"""Number of characters of an unknown name in a message."""
_HOST, _DEVICE, _DELAY = range(3)
_EXPLAINED = 0.9
"""An end of idle time is possible if at least this part of the recorded path remains with it."""
_LARGEST = 1e6
"""Largest factor: times of a profile multiplied by it fit in 64 bits for 100 days."""


class Target(NamedTuple):
    """The work that a change applies to: pairs of an op and lines, activities, or all waits."""

    pairs: BoolArray
    activities: BoolArray
    on: Side
    waits: bool = False


class Savings(NamedTuple):
    """Saving of changes, ns, within bounds; what takes most of the path then, and its share.

    ``ns`` is None if it is not known.
    """

    ns: int | None
    low: int
    high: int
    limit: str | None
    limit_share: float


class WhatIf:
    """The critical path of a profile with other durations.

    Parameters
    ----------
    index
        Index of the profile.
    on
        Side of what `target` returns.
    attribution
        See `epprof_nb.Profile.by_op`.
    """

    def __init__(self, index: ProfileIndex, on: Side, attribution: Attribution) -> None:
        self._index, self._on, self._attribution = index, on, attribution
        self._path = path = index.cached(CriticalPath, attribution)
        self._lines = lines = index.cached(PathLines, attribution)
        activities = index.profile.tables["activities"]
        in_kernels = index.cached(kernel_ops)
        self._suspended = suspended_ops(index) | in_kernels
        self._interleaved = interleaved_ops(index) | in_kernels
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

    @property
    def length_ns(self) -> int:
        """Length of the path as it was recorded."""
        return self._path.length_ns

    def target(self, name: str) -> Target:
        """Return what a name of the user stands for; ValueError if nothing has it."""
        kinds = self._index.kinds
        pairs = np.zeros(self._pairs, np.bool_)
        activities = np.zeros(len(kinds), np.bool_)
        ops = self._named_ops(name or UNNAMED)
        if ops.any():
            return self.target_of_ops(ops, self._on)
        if name in (WAITS, COPIES):
            self._check_recorded(name)
        if name == WAITS:
            return Target(pairs, activities, self._on, waits=True)
        if name == COPIES:
            return Target(pairs, kinds == MEMCPY, self._on)
        chosen = self._lines_named(name)
        if len(chosen):
            of_lines = self._lines.pairs_of(chosen)
            if not len(of_lines):
                raise ValueError(
                    f"{name!r} is known only from samples of the host, so nothing says when it "
                    f"ran.{self._callers(chosen)} epprof_nb.op around its code gives it a name."
                )
            return Target(np.isin(self._line_pair, of_lines), activities, self._on)
        names = self._index.profile.tables["activities"].names("name")
        activities = _matching(names.categories, name)[names.codes]
        if activities.any():
            return Target(pairs, activities, self._on)
        modules = self._modules_of_class(name)
        if modules.any():
            return self.target_of_ops(modules, self._on)
        raise ValueError(self._unknown(name))

    def _check_recorded(self, name: str) -> None:
        if not is_trace(self._index.profile.info):
            return
        kind = "API calls" if name == WAITS else "device work"
        if not (has_waits(self._index) if name == WAITS else self._index.is_device_work.any()):
            raise ValueError(
                f"the trace has no {kind}, so nothing says what its {name} cost. Name ops or lines "
                "instead, or record the code with epprof_nb.profile."
            )

    def target_of_ops(self, ops: BoolArray, on: Side) -> Target:
        """Return one side of ops, given by a mask of the rows, and of all below them."""
        below = np.append(ops_below(self._index, ops), False)
        return Target(below[self._op], np.zeros(len(self._index.kinds), np.bool_), on)

    def _named_ops(self, name: str) -> BoolArray:
        ops = self._index.profile.tables["ops"]
        found = np.zeros(len(ops), np.bool_)
        for column in ("name", "op_type"):
            names = ops.names(column)
            found |= _matching(names.categories, name)[names.codes]
        return found

    def _modules_of_class(self, name: str) -> BoolArray:
        """Return the calls of modules of a class, and their backward passes."""
        ops, calls = self._index.profile.tables["ops"], is_of_type(self._index, *MODULE_TYPES)
        (classes,) = arguments(ops.names("args"), np.flatnonzero(calls), ["class"])
        calls[calls] = _matching(tuple(map(str, classes.distinct)), name)[classes.codes]
        paths = ops.names("name").codes
        return is_framework_op(self._index) & np.isin(paths, paths[calls])

    def _lines_named(self, name: str) -> IntArray:
        found = _LINE.fullmatch(name.strip())
        if found is None:
            return np.empty(0, np.int64)
        lines, file = self._lines.lines, found["file"]
        chosen = np.flatnonzero(lines.number == int(found["line"]))
        if file is None:
            return chosen
        return np.array([i for i in chosen.tolist() if _is_file(lines.file[i], file)], np.int64)

    def _callers(self, chosen: IntArray) -> str:
        """Return what to name instead of lines that only stacks have: the statements around."""
        lines, parent = self._lines.lines, self._index.cached(StackLines).parent
        stacks, found = np.flatnonzero(np.isin(lines.of_stack, chosen)), set[int]()
        while len(stacks):
            around = lines.of_stack[stacks]
            found.update(around[(around >= 0) & (lines.statement[around] >= 0)].tolist())
            stacks = np.unique(parent[stacks])
            stacks = stacks[stacks >= 0]
        names = [f"'{lines.file[i]} line {lines.number[i]}'" for i in sorted(found)[:3]]
        return f" Name the statement that calls it: {' or '.join(names)}." if names else ""

    def _unknown(self, name: str) -> str:
        """Return that nothing has a name, and what does."""
        text = f"nothing in the profile is called {shorten(name, _SHOWN)!r}."
        if name == NO_OP:
            return (
                f"{NO_OP!r} is the time in which no op was open. Name a line, or put epprof_nb.op "
                "around the code."
            )
        if _LINE.fullmatch(name.strip()):
            text = (
                f"nothing was recorded at {shorten(name, _SHOWN)!r}: no statement, call or sample. "
                "It may be a short line of a function, or not have run. epprof_nb.op around its "
                "code gives it a name."
            )
        return text + self._hint(name)

    def _hint(self, name: str) -> str:
        tables = self._index.profile.tables
        known = {
            *tables["ops"].names("name").categories,
            *tables["activities"].names("name").categories,
        }
        close = difflib.get_close_matches(name, sorted(known)[:10_000], n=3)
        hint = f" Similar names: {', '.join(map(repr, close))}." if close else ""
        if self._unrecorded.has_unknown:
            hint += (
                " No run of an ONNX Runtime session was recorded node by node: ort_nodes='every' "
                "records the nodes of each run."
            )
        return (
            f"{hint} Name an op, a type of ops, a class of modules, a kernel, a line as 'line 3' "
            f"or 'train.py line 3', {WAITS!r} or {COPIES!r}. Patterns have *, ? and [ab]."
        )

    def length(
        self,
        changes: list[tuple[Target, float]],
        *,
        contention: bool,
        idle: Idle = "fixed",
        added_ns: IntArray = _NONE,
        part: Part = "expected",
        left_out: HostTime = NO_TIME,
    ) -> tuple[int, str | None, float]:
        """Return the length of the path, what takes most of it, and its share.

        With `contention`, kernels lose the removed time in which they overlapped with it, or waited
        though they were launched and their stream was free. `idle` is what ends idle time.
        `added_ns` and `left_out` are time of the host, as in `Changes`. `part` is what nodes take
        of runs that were not recorded node by node.
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
        length = np.rint(self._duration * of_activity).astype(np.int64)
        freed = np.empty(0, np.int64)
        if contention:
            overlapped, freed = self._freed(of_activity)
            length -= overlapped
        # What does not run is not delayed either, and its calls wait for nothing.
        kept, of_pair = np.unique(
            np.where((host == 0) & (device == 0), MISSING, host), return_inverse=True
        )
        if len(kept) > 254:
            raise ValueError("too many different factors apply to one op; name fewer changes.")
        code = of_pair.astype(np.uint8)
        exists = np.where(kept == MISSING, 0.0, 1.0)
        factors = np.stack([np.maximum(kept, 0), np.ones(len(kept)), exists], axis=1)
        of_ops = np.append(code[self._of_ops], code)
        if idle == "last turn":
            turns = self._path.input.last_turns
            # What is in the lock takes as long for the others.
            later = np.rint(turns.added_ns * host[self._of_ops]).astype(np.int64)
            added_ns, left_out = added_ns + later if len(added_ns) else later, turns.waits
        change = Changes(of_ops, factors, length, freed, added_ns, left_out, without_waits=waits)
        total, path = self._path.input.changed_path(change, self._owners, idle)
        limit, share = self._limit(path, length, host, waits=waits)
        return total, limit, share

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
        freed = self._freed_on_host(changes)
        if len(freed.start):
            shared, *_ = self.length(changes, contention=True, left_out=freed)
            found.append(self.length_ns - shared)
        host = np.append(self._host_factors(changes)[self._of_ops], 1.0)
        in_turns = self._path.input.python_kernels.in_turns_ns(host, self._kernel_factors(changes))
        found.append(self.length_ns - max(alone, min(in_turns, self.length_ns)))
        is_known = self.is_known(changes)
        return Savings(
            found[0] if is_known else None,
            min(found),
            max(found),
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
        host: Factors,
        *,
        waits: bool,
    ) -> tuple[str | None, float]:
        """Return whether the host, a device or delays take most of a path, and their share."""
        is_left_out = (path["step"] == API_CALL) & (path["row"] >= len(self._owners.of_calls))
        step, row = path["step"][~is_left_out], path["row"][~is_left_out]
        spent = (path["end_ns"] - path["start_ns"])[~is_left_out].astype(np.float64)
        of_op, of_call, of_device = step == HOST, step == API_CALL, step == ACTIVITY
        spent[of_device] = length[row[of_device]]
        spent[of_op] *= host[np.append(self._of_ops, MISSING)[row[of_op]]]
        spent[of_call] *= host[self._owners.of_calls[row[of_call]]]
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


def what_if_table(
    index: ProfileIndex, changes: Mapping[str, float], on: Side, attribution: Attribution
) -> ResultTable:
    """Return the columns of `Profile.what_if`."""
    replay = WhatIf(index, on, attribution)
    targets = [(replay.target(name), factor) for name, factor in changes.items()]
    if any(target.waits and factor not in (0, 1) for target, factor in targets):
        raise ValueError("waits can only be removed: their factor is 0")
    names, groups = [*changes], [[change] for change in targets]
    if len(targets) > 1:
        names, groups = [*names, _ALL], [*groups, targets]
    factors = [*changes.values(), *[float("nan")] * (len(groups) - len(targets))]
    if index.cached(lacks_records):  # the critical path is unknown
        names, groups, factors = [], [], []
    found = [replay.savings(group) for group in groups]
    low, high = (
        np.array([getattr(row, part) for row in found], np.int64) for part in ("low", "high")
    )
    saving = np.array([row.ns or 0 for row in found], np.int64)
    is_unknown = np.array([row.ns is None for row in found], np.bool_)
    wall = index.profile.wall_ns
    return ResultTable(
        {
            "changed": objects(names),
            "factor": np.array(factors, np.float64),
            "wall_ns": OptionalColumn(wall - saving, is_unknown),
            "wall_low_ns": optional(wall - high),
            "wall_high_ns": optional(wall - low),
            "saving_ns": OptionalColumn(saving, is_unknown),
            "saving_low_ns": low,
            "saving_high_ns": high,
            "limit": categorical([row.limit for row in found]),
            "limit_share": np.array([row.limit_share for row in found], np.float64),
        }
    )


def checked_changes(changes: Mapping[str, float], on: str) -> dict[str, float]:
    """Return the changes as floats; ValueError or TypeError says what is wrong with them."""
    if on not in ("both", "host", "device"):
        raise ValueError(f"on must be 'both', 'host' or 'device', not {on!r}")
    if not isinstance(changes, Mapping):
        raise TypeError(
            "changes must be a mapping of names to factors, as {'attention': 0.5}, not "
            f"{type(changes).__name__}"
        )
    if not changes:
        raise ValueError(
            "changes is empty. Name what should take a different time: {'attention': 0.5}"
        )
    checked = dict[str, float]()
    for name, factor in changes.items():
        if not isinstance(name, str):
            raise TypeError(f"a name must be text, not {name!r}: {{'attention': 0.5}}")
        if isinstance(factor, bool) or not isinstance(factor, (Real, Decimal)):
            raise TypeError(f"the factor of {name!r} must be a number, not {factor!r}")
        try:
            value = float(factor)
        except (OverflowError, ValueError):  # too large, or a signaling NaN
            value = math.inf
        if not 0 <= value <= _LARGEST:
            raise ValueError(
                f"the factor of {name!r} must be from 0 (takes no time) to {_LARGEST:g}, "
                f"not {value:g}; 1 changes nothing, 2 takes twice the time"
            )
        checked[name] = value
    return checked


def _matching(names: tuple[str, ...], wanted: str) -> BoolArray:
    """Return which names match, and False for a missing one as the last value.

    Names may have brackets themselves, as those of cells and of C++ operators, so that a pattern
    stands for them, too.
    """
    found = [name == wanted for name in names]
    if not any(found) and ("*" in wanted or _PATTERN.search(wanted)):
        literal = wanted.replace("[", "[[]")
        found = [fnmatchcase(name, literal) or fnmatchcase(name, wanted) for name in names]
    return np.array([*found, False], np.bool_)


def _is_file(path: str, wanted: str) -> bool:
    return path == wanted or path.replace("\\", "/").endswith("/" + wanted)
