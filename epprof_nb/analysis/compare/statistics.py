"""Statistics of a comparison: intervals of ratios of medians, and which of them differ from 1.

The sampling unit is the repeat. The logarithm of the ratio has two sources of variance, one within
each recording and one between recordings of the same code; see
`epprof_nb.analysis.compare.variance`.

Repeats that alternate meet the same drift. Their ratios are then those of pairs, one repeat of each
side, and only what varies in these counts.

All is computed per side and symmetric, so exchanging the sides inverts the ratio and its interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.compare.variance import Recording, tells_spread, variance_of_difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from epprof_nb.arrays.types import BoolArray

    FloatArray = npt.NDArray[np.float64]

CONFIDENCE = 0.95
"""Probability of finding no difference among the quantities tested together, if there is none."""

_WIDEST = 2.0
"""Greatest ratio of the end of an interval to the estimate."""


@dataclass(frozen=True, slots=True)
class Ratios:
    """Ratios of medians, new / old, of several quantities that are tested together.

    Attributes
    ----------
    before, after
        float64 arrays: median of each side; of several recordings, the geometric mean of theirs.
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
    is_measured
        Whether the recordings themselves told their spread.
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
    is_measured: bool


def ratios(
    old: Sequence[FloatArray],
    new: Sequence[FloatArray],
    floor: FloatArray,
    *,
    freedom: float = math.inf,
    paired: bool = False,
) -> Ratios:
    """Compare the medians of two sides.

    Parameters
    ----------
    old, new
        Arrays of shape ``(quantities, repeats)`` of positive numbers, one for each recording.
    floor
        Array, one value per quantity: least standard deviation of the logarithm of a median between
        recordings of the same code. Quantities of one floor are taken to drift alike.
    freedom
        Degrees of freedom of `floor`; infinite if it was not estimated.
    paired
        Whether the repeats of each recording alternated with those of the recording at the same
        place on the other side. The ratio is then the median of those of the pairs of repeats.
    """
    from scipy.stats import t as student

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
    # Without any variance, equal medians are equal, and others differ.
    certain = np.where(difference == 0, 0.0, np.inf)
    raw = 2 * student.sf(
        np.divide(np.abs(difference), error, out=certain, where=error > 0), degrees
    )
    p_value, steps = holm(raw)
    alpha = 1 - CONFIDENCE
    width = student.isf(alpha / steps / 2, degrees) * error
    return Ratios(
        before=np.exp(medians[0]),
        after=np.exp(medians[1]),
        ratio=np.exp(difference),
        low=np.exp(difference - width),
        high=np.exp(difference + width),
        p_value=p_value,
        differs=p_value < alpha,
        spread=np.sqrt(between),
        detectable=np.expm1(width),
        is_measured=tells_spread(sides),
    )


def _paired(old: FloatArray, new: FloatArray) -> FloatArray:
    """Return the differences of repeats that were run one after the other."""
    repeats = min(old.shape[1], new.shape[1])
    difference: FloatArray = new[:, :repeats] - old[:, :repeats]
    return difference


def is_too_wide(low: float, high: float) -> bool:
    """Return whether an interval of relative changes says too little to be shown.

    It does if its upper end is a time of more than four times that of its lower end: more than
    twice the estimate, which is their geometric mean.

    Examples
    --------
    >>> is_too_wide(-0.1, 0.2), is_too_wide(0.064, 503.96)
    (False, True)
    """
    return bool(1 + high > _WIDEST**2 * (1 + low))


def holm(p_values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return Holm's corrected p-values, and the factor that each was multiplied by.

    Examples
    --------
    >>> corrected, factors = holm(np.array([0.01, 0.04, 0.03]))
    >>> corrected.round(3).tolist(), factors.tolist()
    ([0.03, 0.06, 0.06], [3.0, 1.0, 2.0])
    """
    order = np.argsort(p_values)
    # Equal values have one factor, the largest, whatever their order.
    smaller = np.searchsorted(p_values[order], p_values)
    factors = (len(p_values) - smaller).astype(np.float64)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate((p_values * factors)[order]), 1)
    return corrected, factors
