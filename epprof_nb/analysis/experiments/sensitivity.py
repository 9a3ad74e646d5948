"""sensitivity: how much the wall time follows the time of each op, measured and replayed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from epprof_nb.analysis.base.missing_records import lacks_records
from epprof_nb.analysis.base.result_table import (
    OptionalColumn,
    ResultTable,
    categorical,
    objects,
    optional,
)
from epprof_nb.analysis.critical_path.idle_threads import MAX_THREADS
from epprof_nb.analysis.critical_path.what_if_bounds import BoundedReplay
from epprof_nb.analysis.experiments.design import MAX_WIDTH
from epprof_nb.analysis.experiments.measurements_in_info import Measured
from epprof_nb.analysis.experiments.ops_to_delay import (
    MIN_SHARE,
    SIDES,
    Factor,
    delayed_ops,
    rows_to_delay,
)
from epprof_nb.analysis.experiments.reasons_not_to_start import MIN_BASE, scatter_of, unusual
from epprof_nb.analysis.experiments.slopes import NO_SLOPE, Slope
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import Column
    from epprof_nb.analysis.critical_path.idle_threads import Idle
    from epprof_nb.analysis.critical_path.what_if_replay import Target
    from epprof_nb.analysis.experiments.measurements_in_info import Round
    from epprof_nb.analysis.experiments.ops_to_delay import DelayedOp, Side

_FIXED: Idle = "fixed"
_HARDLY = 1e-9
"""Factor of an op that takes no time, but is there: its calls wait as before."""
_TOLERANCE = 0.1
"""Distance of a replayed slope from the measured interval up to which the two agree."""


class Saving(NamedTuple):
    """Saving of a repeat in which an op takes no time, ns: in the replay, and its bounds."""

    ns: float
    low: float
    high: float
    limit: str | None


class Sensitivity(NamedTuple):
    """An op in an experiment.

    Attributes
    ----------
    op
        The op, per repeat.
    wall_ns
        Wall time of a repeat.
    measured, replayed
        Slope of each side, measured and replayed. The bounds of a replayed one are those of repeats
        that differ from the recorded one by as much as repeats scatter.
    saving
        What the op without any time would save; None if it is unknown.
    limit
        What takes most of the critical path now: ``"host"``, ``"device"`` or ``"delays"``.
    note
        What to know about the row; empty if there is nothing.
    """

    op: DelayedOp
    wall_ns: float
    measured: dict[Side, Slope]
    replayed: dict[Side, Slope]
    saving: Saving | None = None
    limit: str | None = None
    note: str = ""

    @property
    def agrees(self) -> bool | None:
        """Whether the replay has each slope that was measured; None if none was measured.

        An interval that is too wide measures none.
        """
        pairs = [
            (self.measured[side], self.replayed[side])
            for side in SIDES
            if self.measured[side].half_width <= MAX_WIDTH
            and not math.isnan(self.replayed[side].value)
        ]
        return all(_within(*pair) for pair in pairs) if pairs else None


def sensitivities(index: ProfileIndex) -> list[Sensitivity]:
    """Return the ops of an experiment by descending time; empty without an experiment."""
    profile = index.profile
    measured = Measured.from_info(profile.info)
    if measured is None:
        return []
    repeats = measured.recorded(profile.info)
    ops = delayed_ops(index, repeats)
    slopes: dict[Factor, Slope] = {}
    is_unusual = bool(unusual(profile.wall_ns / repeats, measured.base_ns))
    is_known = not is_unusual and not index.cached(lacks_records)
    replays = _Replays(index, ops, repeats) if is_known else None
    spread_ns = _spread_ns(measured, profile.wall_ns / repeats)
    for part in measured.rounds:
        slopes |= zip(part.factors, part.slopes(), strict=True)
    rows = []
    for op in ops:
        factors = {side: Factor(op.name, side) for side in SIDES}
        row = Sensitivity(
            op,
            profile.wall_ns / repeats,
            {side: slopes.get(factor, NO_SLOPE) for side, factor in factors.items()},
            dict.fromkeys(SIDES, NO_SLOPE),
        )
        if replays is not None:
            row, idle = replays.like(row, measured.rounds, spread_ns)
            if replays.is_known(op):
                saving = _saving(row, replays.saving(op, idle), spread_ns)
                row = row._replace(saving=saving, limit=replays.limit)
        notes = [_note(row, measured)]
        if replays is not None and row.saving is None:
            notes.insert(0, "no saving: its coroutine took turns with others")
        rows.append(row._replace(note="; ".join(filter(None, notes))))
    return rows


class _Replays:
    """Replays of a profile with other times of ops."""

    def __init__(self, index: ProfileIndex, ops: list[DelayedOp], repeats: int) -> None:
        self._index, self._repeats = index, repeats
        ops_table = index.profile.tables["ops"]
        self._names, self._thread = ops_table.names("name"), ops_table["thread_id"]
        self._rows = rows_to_delay(index)
        self._ops = {op.name: op for op in ops}
        self._found: dict[Idle, dict[Factor, Slope]] = {}
        self._replay = BoundedReplay(index, "launch")
        self.limit = self._replay.length([], contention=False)[1]

    def like(
        self, row: Sensitivity, rounds: list[Round], spread_ns: float
    ) -> tuple[Sensitivity, Idle]:
        """Return a row with the replay that has its measured slopes, and its end of idle time.

        If none has them, it is the replay in which idle time has a fixed length.
        """
        found: list[tuple[Sensitivity, Idle]] = []
        for idle in (_FIXED, *self._replay.idle_ends):
            known = self._slopes(rounds, spread_ns, idle)
            replayed = {side: known.get(Factor(row.op.name, side), NO_SLOPE) for side in SIDES}
            found.append((row._replace(replayed=replayed), idle))
            if found[-1][0].agrees is not False:
                return found[-1]
        return found[0]

    def _slopes(self, rounds: list[Round], spread_ns: float, idle: Idle) -> dict[Factor, Slope]:
        if idle not in self._found:
            self._found[idle] = {
                factor: slope
                for part in rounds
                for factor, slope in self.slopes(part, spread_ns, idle).items()
            }
        return self._found[idle]

    def slopes(self, part: Round, spread_ns: float, idle: Idle) -> dict[Factor, Slope]:
        """Return the slopes that the replay has under the conditions of a round.

        A slope is the mean of two: without the delays of the other factors, and with them. It
        changes at once where two chains are of one length, so it is replayed with a time of the op
        that is shorter and longer by `spread_ns`, too: the chains of other repeats differ by that.
        Of an op that several threads execute, the delays may be on any of them.
        """
        lengths = np.array(part.delay_ns, np.float64).max(axis=0, initial=0.0).tolist()
        delays = dict(zip(part.factors, lengths, strict=True))
        known = {
            factor: ns
            for factor, ns in delays.items()
            if ns > 0
            and (op := self._ops.get(factor.op)) is not None
            and op.time_ns(factor.side) > 0
            and self.is_known(op)
        }
        found = {}
        for factor, ns in known.items():
            others = {other: length for other, length in known.items() if other != factor}
            least = -self._ops[factor.op].time_ns(factor.side)
            threads = self._threads_of(factor)
            at = [
                sum(
                    self._length(some | {factor: more + ns}, idle, delayed)
                    - self._length(some | {factor: more}, idle, delayed)
                    for some in ({}, others)
                )
                / (2 * ns * self._repeats)
                for more in (0.0, max(-spread_ns, least), spread_ns)
                for delayed in ({}, *({factor: thread} for thread in threads))
            ]
            found[factor] = Slope(at[0], min(at), max(at))
        return found

    def _threads_of(self, factor: Factor) -> list[int]:
        """Return the threads that execute an op whose host is delayed, if they are several."""
        if factor.side == "device":
            return []
        rows = self._rows & self._names.equals(factor.op)
        threads = np.unique(self._thread[rows]).tolist()
        return threads[:MAX_THREADS] if len(threads) > 1 else []

    def _length(
        self, delays: dict[Factor, float], idle: Idle, threads: dict[Factor, int] | None = None
    ) -> int:
        """Return the length of the path with delays at ops, ns per repeat.

        As in the experiment, the host is delayed at the end of each execution; for the factors in
        `threads`, of those on one thread.
        """
        changes = []
        at_end = np.zeros(len(self._rows))
        for factor, ns in delays.items():
            if factor.side == "host":
                own = self._rows & self._names.equals(factor.op)
                if threads and factor in threads:
                    own &= self._thread == threads[factor]
                rows = np.flatnonzero(own)
                at_end[rows] += ns * self._repeats / max(len(rows), 1)
            else:
                factor_of = 1 + ns / self._ops[factor.op].time_ns(factor.side)
                changes.append((self._target(factor.op, factor.side), factor_of))
        added_ns = np.rint(at_end).astype(np.int64)
        return self._replay.length(changes, contention=False, idle=idle, added_ns=added_ns)[0]

    def _target(self, name: str, on: Side | Literal["both"]) -> Target:
        return self._replay.target_of_ops(self._rows & self._names.equals(name), on)

    def is_known(self, op: DelayedOp) -> bool:
        """Return whether the replay knows when the thread worked for an op."""
        return self._replay.is_known([(self._target(op.name, "both"), 0.0)])

    def saving(self, op: DelayedOp, idle: Idle) -> _Replayed:
        """Return what an op without any time saves per repeat, ns."""
        target = self._target(op.name, "both")
        kept, _, _ = self._replay.length([(target, _HARDLY)], contention=False, idle=idle)
        alone, limit, _ = self._replay.length([(target, 0.0)], contention=False, idle=idle)
        shared, _, _ = self._replay.length([(target, 0.0)], contention=True, idle=idle)
        before = self._replay.idle_ends.get(idle, self._replay.length_ns)
        timed, alone_ns, shared_ns = (
            max(before - length, 0) / self._repeats for length in (kept, alone, shared)
        )
        return _Replayed(timed, alone_ns, shared_ns, limit)


class _Replayed(NamedTuple):
    """Savings in the replay, ns.

    Attributes
    ----------
    timed
        Without the time of the op, but with its waits.
    alone
        Without its waits for the device, too.
    shared
        The same if other kernels lose the time in which they overlapped.
    limit
        What takes most of the path then.
    """

    timed: float
    alone: float
    shared: float
    limit: str | None


def _spread_ns(measured: Measured, wall_ns: float) -> float:
    """Return how far the recorded repeat may be from the others, ns: it is one that scatters."""
    if len(measured.base_ns) < MIN_BASE:
        return 0.0
    usual = float(np.median(measured.base_ns))
    return abs(wall_ns - usual) + 2 * scatter_of(measured.base_ns) * usual


def _saving(row: Sensitivity, replayed: _Replayed, spread_ns: float) -> Saving:
    """Return the saving of the replay within the bounds that the measured slopes set.

    The wall time is a convex function of the times of an op, so without them it falls by at most
    slope x time. It can fall further because the host no longer waits in the op, which only the
    replay knows, and because other work shared the device with it.
    """
    low = high = 0.0
    for side in SIDES:
        slope, time_ns = row.measured[side], row.op.time_ns(side)
        is_known = not math.isnan(slope.value)
        low += max(slope.low, 0.0) * time_ns if is_known else 0.0
        high += max(slope.high, 0.0) * time_ns if is_known else time_ns
    waits = max(replayed.alone - replayed.timed, 0.0)
    timed = replayed.timed if row.agrees is not False else min(replayed.timed, high)
    high = max(high, replayed.timed + spread_ns)
    return Saving(
        timed + waits,
        max(min(timed + waits - spread_ns, low + waits), 0.0),
        min(high + waits + replayed.shared - replayed.alone, row.wall_ns),
        replayed.limit,
    )


def _note(row: Sensitivity, experiment: Measured) -> str:
    notes = []
    text = unusual(row.wall_ns, experiment.base_ns)
    if text and experiment.rounds:
        notes.append(f"no saving: {text}")
    if row.op.name in experiment.uncovered:
        notes.append(f"device work not delayed: {experiment.uncovered[row.op.name]}")
    elif experiment.rounds and all(math.isnan(slope.value) for slope in row.measured.values()):
        is_short = max(map(row.op.time_ns, SIDES)) < MIN_SHARE * row.wall_ns
        why = "it takes less than 2 % of the time" if is_short else "the repeats are too few for it"
        notes.append(f"not measured: {why}")
    if row.agrees is False:
        notes += [
            f"replayed {side}: {row.replayed[side].value:.2f}"
            for side in SIDES
            if row.measured[side].half_width <= MAX_WIDTH
            and not _within(row.measured[side], row.replayed[side])
        ]
    for side in SIDES:
        if row.measured[side].half_width > MAX_WIDTH:
            notes.append(f"{side} too uncertain")
    if not experiment.rounds and experiment.refused:
        notes.append(f"not measured: {experiment.refused}")
    return "; ".join(notes)


def _within(slope: Slope, replayed: Slope) -> bool:
    """Whether a replayed slope agrees with the measured one, or one of them is unknown."""
    if math.isnan(slope.value) or math.isnan(replayed.value):
        return True
    return replayed.high >= slope.low - _TOLERANCE and replayed.low <= slope.high + _TOLERANCE


def sensitivity_table(index: ProfileIndex) -> ResultTable:
    """Return the columns of `Profile.sensitivity`."""
    rows = sensitivities(index)
    agrees = [row.agrees for row in rows]

    def numbers(values: Iterable[float]) -> npt.NDArray[np.float64]:
        return np.fromiter(values, np.float64, len(rows))

    def saving(which: Literal["ns", "low", "high"]) -> OptionalColumn:
        values = [row.saving and round(getattr(row.saving, which)) for row in rows]
        return optional(np.array([MISSING if v is None else v for v in values], np.int64))

    columns: dict[str, Column] = {
        "name": categorical([row.op.name for row in rows]),
        "device_share": numbers(row.op.device_ns / row.wall_ns for row in rows),
        "host_share": numbers(row.op.host_ns / row.wall_ns for row in rows),
    }
    for side in SIDES:
        slopes = [row.measured[side] for row in rows]
        columns[f"{side}_sensitivity"] = numbers(slope.value for slope in slopes)
        columns[f"{side}_sensitivity_low"] = numbers(slope.low for slope in slopes)
        columns[f"{side}_sensitivity_high"] = numbers(slope.high for slope in slopes)
        columns[f"{side}_replayed"] = numbers(row.replayed[side].value for row in rows)
    columns |= {
        "agrees": OptionalColumn(
            np.array([bool(value) for value in agrees], np.bool_),
            np.array([value is None for value in agrees], np.bool_),
        ),
        "saving_if_free_ns": saving("ns"),
        "saving_low_ns": saving("low"),
        "saving_high_ns": saving("high"),
        "limit": categorical([row.saving and row.saving.limit for row in rows]),
        "executions": np.array([row.op.executions for row in rows], np.int64),
        "note": objects([row.note for row in rows]),
    }
    return ResultTable(columns)
