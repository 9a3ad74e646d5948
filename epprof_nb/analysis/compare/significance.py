"""Significance of the changes of a comparison: intervals of ratios of medians, and verdicts.

The sampling unit is the repeat. The logarithm of the ratio has two sources of variance, one within
each recording and one between recordings of the same code; see
`epprof_nb.analysis.compare.variance_of_medians`.

Repeats that alternate have the same drift. Each ratio then compares a pair, one repeat of each
side, and only the variation between pairs counts.

All computations treat both sides alike, so exchanging the sides inverts the ratio and its interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from epprof_nb.analysis.compare.statistical_distributions import student_distance, student_tail
from epprof_nb.analysis.compare.variance_of_medians import (
    Recording,
    tells_spread,
    variance_of_difference,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from epprof_nb.arrays.types import BoolArray

    FloatArray = npt.NDArray[np.float64]

Verdict: TypeAlias = Literal["faster", "slower", "no difference found", "cannot tell"]

CHANGED: tuple[Verdict, ...] = ("faster", "slower")
"""Verdicts that name a difference."""

CONFIDENCE = 0.95
"""Probability of finding no difference among the quantities tested together, if there is none."""

_CANNOT_TELL = 4.0
"""Ratio of the upper to the lower end above which an interval is too wide to tell."""


@dataclass(frozen=True, slots=True)
class Ratios:
    """Ratios of medians, new / old, of several quantities that are tested together.

    Attributes
    ----------
    before, after
        float64 arrays: median of each side; for several recordings, the geometric mean of their
        medians. For pairs, ``after`` is ``before`` times the ratio.
    ratio, low, high
        float64 arrays: the ratio and its interval. The intervals of all rows contain the true
        ratios with the probability of the family.
    p_value
        float64 array: after Holm's correction.
    differs
        bool array: whether the ratio differs from 1.
    spread
        float64 array: standard deviation of the logarithm between recordings of the same code.
    detectable
        float64 array: smallest relative difference that would have been found.
    is_explained
        bool array: whether the ratio would differ from 1, if the conditions of the recordings did
        not explain it.
    is_measured
        Whether the spread was estimated from the recordings themselves.
    """

    before: FloatArray
    after: FloatArray
    ratio: FloatArray
    low: FloatArray
    high: FloatArray
    p_value: FloatArray
    differs: BoolArray
    spread: FloatArray
    detectable: FloatArray
    is_explained: BoolArray
    is_measured: bool


def ratios(
    old: Sequence[FloatArray],
    new: Sequence[FloatArray],
    floor: FloatArray,
    *,
    freedom: float = math.inf,
    paired: bool = False,
    slowdowns: tuple[FloatArray, FloatArray] | None = None,
) -> Ratios:
    """Compare the medians of two sides.

    Parameters
    ----------
    old, new
        Arrays of shape ``(quantities, repeats)`` of positive numbers, one for each recording.
    floor
        Array, one value per quantity: least standard deviation of the logarithm of a median between
        recordings of the same code. Quantities with the same floor are assumed to drift alike.
    freedom
        Degrees of freedom of `floor`; infinite if it was not estimated.
    paired
        Whether the repeats of each recording alternated with the repeats of the recording at the
        same place on the other side. The ratio is then the median of the ratios of pairs of
        repeats.
    slowdowns
        Arrays, one value per quantity: bound of the logarithm of the slowdown of the old side by
        the conditions of its recordings, and of the new side. None if there was none.
    """
    logs = [[np.log(values) for values in side] for side in (old, new)]
    medians = [np.mean([np.median(of, axis=1) for of in side], axis=0) for side in logs]
    if paired:
        differences = [_paired(*pair) for pair in zip(*logs, strict=True)]
        sides = [[Recording.of(values) for values in differences]]
        difference = np.mean([r.log_median for r in sides[0]], axis=0)
    else:
        sides = [[Recording.of(values) for values in side] for side in logs]
        difference = medians[1] - medians[0]
    variance, degrees, between = variance_of_difference(
        sides, floor, freedom, recordings=(len(old), len(new))
    )
    error = np.sqrt(variance)
    # Without any variance, unequal medians differ.
    certain = np.where(difference == 0, 0.0, np.inf)
    slower_old, slower_new = slowdowns or (np.zeros(len(floor)), np.zeros(len(floor)))

    def p_values(distance: FloatArray) -> tuple[FloatArray, FloatArray]:
        sure = np.where(distance == 0, 0.0, certain)
        return holm(
            2 * student_tail(np.divide(distance, error, out=sure, where=error > 0), degrees)
        )

    # A side that was slowed down is slower, so the slowdown explains one direction only.
    p_value, steps = p_values(
        np.maximum(np.maximum(difference - slower_new, -slower_old - difference), 0)
    )
    alpha = 1 - CONFIDENCE
    differs = p_value < alpha
    width = student_distance(alpha / steps / 2, degrees) * error
    return Ratios(
        before=np.exp(medians[0]),
        # For pairs, it differs from `before` by the ratio.
        after=np.exp(medians[0] + difference),
        ratio=np.exp(difference),
        low=np.exp(difference - width - slower_new),
        high=np.exp(difference + width + slower_old),
        p_value=p_value,
        differs=differs,
        spread=np.sqrt(between),
        detectable=np.expm1(width + np.maximum(slower_old, slower_new)),
        is_explained=~differs & (p_values(np.abs(difference))[0] < alpha),
        is_measured=tells_spread(sides),
    )


def _paired(old: FloatArray, new: FloatArray) -> FloatArray:
    """Return the differences of repeats that were run one after the other."""
    repeats = min(old.shape[1], new.shape[1])
    difference: FloatArray = new[:, :repeats] - old[:, :repeats]
    return difference


def verdict_on(found: Ratios, row: int = 0) -> Verdict:
    """Return the verdict on a quantity: whether its change is significant, and its direction."""
    if found.differs[row]:
        return "slower" if found.ratio[row] > 1 else "faster"
    if found.is_explained[row] or is_too_wide(found.low[row] - 1, found.high[row] - 1):
        return "cannot tell"
    return "no difference found"


def is_too_wide(low: float, high: float) -> bool:
    """Return whether an interval of relative changes is too wide to be shown.

    It is if the time at its upper end is more than four times the time at its lower end, so more
    than twice the estimate, which is their geometric mean.

    Examples
    --------
    >>> is_too_wide(-0.1, 0.2), is_too_wide(0.064, 503.96)
    (False, True)
    """
    return bool(1 + high > _CANNOT_TELL * (1 + low))


def holm(p_values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Holm's corrected p-values, and the factor of each.

    Examples
    --------
    >>> corrected, factors = holm(np.array([0.01, 0.04, 0.03]))
    >>> corrected.round(3).tolist(), factors.tolist()
    ([0.03, 0.06, 0.06], [3.0, 1.0, 2.0])
    """
    order = np.argsort(p_values)
    # Equal values share the largest factor.
    smaller = np.searchsorted(p_values[order], p_values)
    factors = (len(p_values) - smaller).astype(np.float64)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate((p_values * factors)[order]), 1)
    return corrected, factors
