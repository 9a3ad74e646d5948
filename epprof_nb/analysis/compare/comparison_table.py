"""Tables of a comparison: one row per quantity, with its interval and verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.result_table import (
    OptionalColumn,
    ResultTable,
    categorical,
    optional,
)
from epprof_nb.analysis.compare.significance import ratios, verdict_on
from epprof_nb.analysis.compare.spread_between_recordings import spread_of_short_op
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from epprof_nb.analysis.base.result_table import Column
    from epprof_nb.analysis.compare.contributions import Contributions
    from epprof_nb.analysis.compare.recording_conditions import Conditions
    from epprof_nb.analysis.compare.significance import FloatArray
    from epprof_nb.analysis.compare.spread_between_recordings import Place, Spread
    from epprof_nb.arrays.types import BoolArray, IntArray

_OP_LABELS = ("name", "old_name", "op_type", "category", "provider", "measure")


@dataclass(frozen=True, slots=True)
class Test:
    """How the quantities are tested.

    Attributes
    ----------
    is_possible
        Whether the recordings can be compared.
    of_host_times
        Whether their host times can be compared too.
    is_paired
        Whether their repeats alternated.
    is_pooled
        Whether the recordings are single runs, each of which counts as a repeat.
    spread
        The spread between recordings of the same code.
    conditions
        The conditions of the recordings.
    is_uneven
        Whether short ops of the host may differ between recordings without a change of the code.
    """

    is_possible: bool
    of_host_times: bool
    is_paired: bool
    is_pooled: bool
    spread: Spread
    conditions: Conditions
    is_uneven: bool = False

    def slowdowns(self, tests: Sequence[Quantity]) -> tuple[np.ndarray, np.ndarray]:
        """Return the bounds of the logarithms of the slowdowns of both sides."""
        bounds = self.conditions.bounds([q.measure for q in tests])
        if not self.is_uneven:
            return bounds
        old, new = (
            bound + np.array([_uneven(q, side) for q in tests])
            for bound, side in zip(bounds, ("before", "after"), strict=True)
        )
        return old, new

    def includes(self, measure: Place) -> bool:
        """Return whether times of a kind are tested."""
        return self.is_possible and (self.of_host_times or measure == "device")

    def pooled(self, recordings: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the values of the recordings, or of all of them as one."""
        if not self.is_pooled or not recordings:
            return list(recordings)
        return [np.concatenate(recordings, axis=-1)]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A time that both sides may have in each repeat.

    ``before``, ``after``, ``counts`` and ``bytes`` hold one int64 array per recording with a value
    per repeat, and are empty on a side that lacks the quantity. ``measure`` is the place of the
    measurement; ``is_complete`` is whether every repeat has a known value.
    """

    path: str
    labels: dict[str, str | None]
    measure: Place
    status: str
    before: Sequence[IntArray]
    after: Sequence[IntArray]
    counts: tuple[Sequence[IntArray], Sequence[IntArray]]
    bytes: tuple[Sequence[IntArray], Sequence[IntArray]] | None
    is_complete: bool = True

    @property
    def is_testable(self) -> bool:
        """Whether it was measured in every repeat of both sides."""
        recordings = (*self.before, *self.after)
        is_known = self.is_complete and bool(self.before and self.after)
        return is_known and all(r.all() for r in recordings)


@dataclass(frozen=True, slots=True)
class Results:
    """Times of quantities before and after, and the verdicts: arrays with one value per quantity.

    ``before`` and ``after`` are int64 arrays, `MISSING` on a side that lacks the quantity;
    ``change``, its interval and ``p_value`` are NaN if unknown.
    """

    before: IntArray
    after: IntArray
    change: FloatArray
    low: FloatArray
    high: FloatArray
    p_value: FloatArray
    verdicts: list[str]
    is_tested: BoolArray


def tested(quantities: Sequence[Quantity], test: Test) -> Results:
    """Test quantities together, as one family."""
    count = len(quantities)
    before, after = (
        np.array([median_ns(getattr(q, side)) for q in quantities], np.int64).reshape(count)
        for side in ("before", "after")
    )
    both = (before != MISSING) & (after != MISSING)
    change, low, high, p_value = (np.full(count, np.nan) for _ in range(4))
    known = both & (before > 0)
    change[known] = after[known] / before[known] - 1
    verdicts = [_without_test(q.status) for q in quantities]
    is_tested = np.array([test.includes(q.measure) and q.is_testable for q in quantities], np.bool_)
    rows: list[int] = np.flatnonzero(is_tested).tolist()
    if rows:
        tests = [quantities[i] for i in rows]
        old, new = _stack([q.before for q in tests]), _stack([q.after for q in tests])
        found = ratios(
            old,
            new,
            np.array([test.spread.of(q.measure) for q in tests]),
            freedom=test.spread.freedom,
            paired=test.is_paired,
            slowdowns=test.slowdowns(tests),
        )
        before[rows], after[rows] = np.rint(found.before), np.rint(found.after)
        change[rows], low[rows], high[rows] = found.ratio - 1, found.low - 1, found.high - 1
        p_value[rows] = found.p_value
        for i, row in enumerate(rows):
            verdicts[row] = verdict_on(found, i)
    return Results(before, after, change, low, high, p_value, verdicts, is_tested)


@dataclass(frozen=True, slots=True)
class Elapsed:
    """Elapsed times of the quantities of a table, and further times of each.

    ``contributions`` has the change of the elapsed time of a repeat due to each quantity;
    ``knows_device`` says whether the part of the device was recorded on both sides.
    ``further`` holds int64 arrays by the names of their columns.
    """

    quantities: Sequence[Quantity]
    contributions: Contributions
    further: Mapping[str, IntArray]
    knows_device: bool = True


def comparison_table(
    quantities: Sequence[Quantity],
    test: Test,
    *,
    columns: Sequence[str] = _OP_LABELS,
    elapsed: Elapsed | None = None,
) -> ResultTable:
    """Return a table of the quantities.

    Parameters
    ----------
    quantities
        The quantities.
    test
        How they are tested; if the recordings cannot be compared, no verdict is given on any.
    columns
        Names of the labels.
    elapsed
        The elapsed times of the quantities. If given, rows are sorted by descending contribution to
        the change of the elapsed time, else by descending difference in time.
    """
    found = tested(quantities, test)
    order = in_order(found, None if elapsed is None else elapsed.contributions.total)
    shown = [quantities[i] for i in order]
    table: dict[str, Column] = {"path": categorical([q.path for q in shown])}
    table |= {name: categorical([q.labels[name] for q in shown]) for name in columns}
    table["status"] = categorical([q.status for q in shown])
    if elapsed is not None:
        table["contribution_ns"] = elapsed.contributions.total[order]
        of_device = elapsed.contributions.of_device[order]
        is_unknown = np.full(len(order), not elapsed.knows_device)
        table["device_contribution_ns"] = OptionalColumn(of_device, is_unknown)
        table |= columns_of(tested(elapsed.quantities, test), order, "elapsed_")
    table |= columns_of(found, order)
    table |= counts_of(shown)
    if elapsed is not None:
        table |= {name: optional(values[order]) for name, values in elapsed.further.items()}
    if "measure" in columns:
        sizes = [q.bytes or ((), ()) for q in shown]
        table["bytes_before"] = optional([median_ns(size[0]) for size in sizes])
        table["bytes_after"] = optional([median_ns(size[1]) for size in sizes])
    return ResultTable(table)


def columns_of(found: Results, order: list[int], prefix: str = "") -> dict[str, Column]:
    """Return the columns of the results, in order."""
    return {
        f"{prefix}before_ns": optional(found.before[order]),
        f"{prefix}after_ns": optional(found.after[order]),
        f"{prefix}change": found.change[order],
        f"{prefix}change_low": found.low[order],
        f"{prefix}change_high": found.high[order],
        f"{prefix}p_value": found.p_value[order],
        f"{prefix}verdict": categorical([found.verdicts[i] for i in order]),
    }


def counts_of(shown: Sequence[Quantity]) -> dict[str, Column]:
    """Return the columns of the executions per repeat."""
    return {
        "count_before": optional([median_ns(q.counts[0]) for q in shown]),
        "count_after": optional([median_ns(q.counts[1]) for q in shown]),
    }


def _uneven(quantity: Quantity, side: str) -> float:
    """Return the bound of the logarithm of the slowdown of a short op of the host."""
    recordings: Sequence[IntArray] = getattr(quantity, side)
    executions = max(median_ns(quantity.counts[side == "after"]), 1)
    return spread_of_short_op(median_ns(recordings), executions)


def _without_test(status: str) -> str:
    return status if status in ("added", "removed") else "not tested"


def median_ns(recordings: Sequence[IntArray]) -> int:
    """Return the median over the recordings of the medians over repeats; `MISSING` for none."""
    if not recordings:
        return MISSING
    return int(np.rint(np.median([np.median(values) for values in recordings])))


def _stack(rows: Sequence[Sequence[IntArray]]) -> list[np.ndarray]:
    """Return an array of shape ``(quantities, repeats)`` for each recording."""
    return [np.stack(of_recording).astype(np.float64) for of_recording in zip(*rows, strict=True)]


def in_order(found: Results, contributions: IntArray | None = None) -> list[int]:
    """Return the rows by descending contribution, then by descending difference in time.

    Among rows without a contribution, tested rows come first.
    """
    difference = np.abs(np.maximum(found.after, 0) - np.maximum(found.before, 0))
    keys = [-difference, ~found.is_tested]
    if contributions is not None:
        keys.append(-np.abs(contributions))
    order: list[int] = np.lexsort(keys).tolist()
    return order
