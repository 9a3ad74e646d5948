"""Tables of a comparison: one row per quantity, with its interval and verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.result_table import ResultTable, categorical, optional
from epprof_nb.analysis.compare.statistics import is_too_wide, ratios
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.analysis.base.result_table import Column
    from epprof_nb.analysis.compare.spread import Place, Spread
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
        Whether their host times can be, too.
    is_paired
        Whether their repeats alternated.
    is_pooled
        Whether the recordings are single runs, each of which counts as a repeat.
    spread
        The spread between recordings of the same code.
    """

    is_possible: bool
    of_host_times: bool
    is_paired: bool
    is_pooled: bool
    spread: Spread

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
    per repeat, and are empty on a side that lacks the quantity. ``measure`` says where the time was
    measured, ``is_complete`` whether the quantity is known of every repeat.
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


def comparison_table(
    quantities: Sequence[Quantity],
    test: Test,
    *,
    columns: Sequence[str] = _OP_LABELS,
) -> ResultTable:
    """Return a table of the quantities by descending difference in time.

    Parameters
    ----------
    quantities
        The quantities.
    test
        How they are tested; if the recordings cannot be compared, no verdict is given on any.
    columns
        Names of the labels.
    """
    count = len(quantities)
    before, after = (
        np.array([_median(getattr(q, side)) for q in quantities], np.int64).reshape(count)
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
        )
        before[rows], after[rows] = np.rint(found.before), np.rint(found.after)
        change[rows], low[rows], high[rows] = found.ratio - 1, found.low - 1, found.high - 1
        p_value[rows] = found.p_value
        for i, row in enumerate(rows):
            if found.differs[i]:
                verdicts[row] = "slower" if found.ratio[i] > 1 else "faster"
            elif is_too_wide(low[row], high[row]):
                verdicts[row] = "cannot tell"
            else:
                verdicts[row] = "no difference found"
    order = _order(before, after, is_tested)
    shown = [quantities[i] for i in order]
    table: dict[str, Column] = {"path": categorical([q.path for q in shown])}
    table |= {name: categorical([q.labels[name] for q in shown]) for name in columns}
    table |= {
        "status": categorical([q.status for q in shown]),
        "before_ns": optional(before[order]),
        "after_ns": optional(after[order]),
        "change": change[order],
        "change_low": low[order],
        "change_high": high[order],
        "p_value": p_value[order],
        "verdict": categorical([verdicts[i] for i in order]),
        "count_before": optional([_median(q.counts[0]) for q in shown]),
        "count_after": optional([_median(q.counts[1]) for q in shown]),
    }
    if "measure" in columns:
        sizes = [q.bytes or ((), ()) for q in shown]
        table["bytes_before"] = optional([_median(size[0]) for size in sizes])
        table["bytes_after"] = optional([_median(size[1]) for size in sizes])
    return ResultTable(table)


def _without_test(status: str) -> str:
    return status if status in ("added", "removed") else "not tested"


def _median(recordings: Sequence[IntArray]) -> int:
    """Return the median over the recordings of the medians over repeats; `MISSING` for none."""
    if not recordings:
        return MISSING
    return int(np.rint(np.median([np.median(values) for values in recordings])))


def _stack(rows: Sequence[Sequence[IntArray]]) -> list[np.ndarray]:
    """Return an array of shape ``(quantities, repeats)`` for each recording."""
    return [np.stack(of_recording).astype(np.float64) for of_recording in zip(*rows, strict=True)]


def _order(before: IntArray, after: IntArray, is_tested: BoolArray) -> list[int]:
    """Return the rows by descending difference, tested ones before others."""
    difference = np.abs(np.maximum(after, 0) - np.maximum(before, 0))
    order: list[int] = np.lexsort((-difference, ~is_tested)).tolist()
    return order
