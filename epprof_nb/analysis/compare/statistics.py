"""Statistics of a comparison: intervals of ratios of medians, and which of them differ from 1.

The sampling unit is the repeat. The logarithm of the ratio has two sources of variance:

* within a recording, the variance of the median over its repeats, from `scipy.stats.bootstrap`;
* between recordings of the same code, whose speed drifts. Three recordings of each side, or five of
  one, tell what it is. Fewer add a floor to what they show: the drift within a recording, which
  moves the medians of consecutive quarters, moves those of two recordings made one after the other
  by more, twice the variance for a random walk.

Repeats that alternate meet the same drift. Their ratios are then those of pairs, one repeat of each
side, and only what varies in these counts.

All is computed per side and symmetric, so exchanging the sides inverts the ratio and its interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from epprof_nb.arrays.types import BoolArray

    FloatArray = npt.NDArray[np.float64]

CONFIDENCE = 0.95
"""Probability of finding no difference among the quantities tested together, if there is none."""
_RESAMPLES = 1000
_BLOCKS = 4
_PRETEST = 0.02
"""Probability with which noise alone is taken for a drift."""
_MEASURED = 4
"""From this number of degrees of freedom on, recordings tell their spread, and none is assumed."""
_MANY, _PRIOR_FREEDOM = 5, 4
"""Least number of quantities that drift alike, and the degrees of freedom that they add."""
_ROWS = 256
"""Rows that are resampled at a time, to bound the memory."""


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
        sides = [[_Recording.of(values) for values in differences]]
        difference = np.mean([r.log_median for r in sides[0]], axis=0)
    else:
        sides = [[_Recording.of(values) for values in side] for side in logs]
        difference = medians[1] - medians[0]
    variance, degrees, between = _variance_of_difference(
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
        is_measured=_measured(sides) >= _MEASURED,
    )


@dataclass(frozen=True, slots=True)
class _Recording:
    """The logarithms of the medians of one recording, their variance, and that of their drift."""

    log_median: FloatArray
    variance: FloatArray
    drift: tuple[FloatArray, FloatArray]
    repeats: int

    @classmethod
    def of(cls, logs: FloatArray) -> _Recording:
        return cls(np.median(logs, axis=1), _variance(logs), _drift(logs), logs.shape[1])


def _variance_of_difference(
    sides: Sequence[Sequence[_Recording]],
    floor: FloatArray,
    freedom: float,
    *,
    recordings: tuple[int, int],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the variance of the difference, its degrees of freedom, and that between recordings.

    `sides` holds the recordings of both sides, or the differences of paired ones as a single side.
    """
    within = sum(
        (sum(r.variance for r in side) / len(side) ** 2 for side in sides), np.zeros(len(floor))
    )
    # Welch and Satterthwaite: the degrees of freedom of a sum of estimated variances.
    parts = sum(
        (r.variance / len(side) ** 2) ** 2 / (r.repeats - 1) for side in sides for r in side
    )
    measured = _measured(sides)
    if measured >= _MEASURED:
        # The medians of the recordings contain all that varies.
        squares = sum(np.var([r.log_median for r in side], axis=0) * len(side) for side in sides)
        spread, degrees = _moderated(squares / measured, measured, floor)
        variance = np.maximum(spread * sum(1 / len(side) for side in sides), within)
        return variance, np.full(len(floor), float(degrees)), spread / (3 - len(sides))
    is_paired = len(sides) == 1
    # A drift of what pairs differ by has been averaged over the blocks; one that both sides share
    # goes on from one recording to the next.
    found, freedom_found = _between(sides, floor, drift=1 / _BLOCKS if is_paired else 2.0)
    if is_paired:
        found = found / 2  # a difference has the variance of both sides
    between = np.square(floor) + found
    share = 1 / recordings[0] + 1 / recordings[1]
    variance = within + between * share
    parts += (found * share) ** 2 / freedom_found + (np.square(floor) * share) ** 2 / freedom
    # Without noise the floor is all of the variance. If it was not estimated, the distribution is
    # normal.
    degrees = np.divide(variance**2, parts, out=np.full(len(parts), np.inf), where=parts > 0)
    return variance, degrees, between


def _measured(sides: Sequence[Sequence[_Recording]]) -> int:
    """Return the degrees of freedom with which several recordings of a side tell their spread."""
    return sum(len(side) - 1 for side in sides)


def _moderated(variance: FloatArray, freedom: int, floor: FloatArray) -> tuple[FloatArray, int]:
    """Return estimated variances, moved toward that of most quantities of the same floor.

    A few recordings tell little about one quantity, so those that drift alike are taken together,
    as in Smyth's moderated t-test. The second result is the degrees of freedom.
    """
    from scipy.stats import chi2

    moderated = variance.copy()
    prior = 0
    for value in np.unique(floor):
        alike = floor == value
        if alike.sum() >= _MANY:
            prior = _PRIOR_FREEDOM
            typical = np.median(variance[alike]) * freedom / chi2.median(freedom)
            moderated[alike] = (prior * typical + freedom * variance[alike]) / (prior + freedom)
    return moderated, freedom + (prior if _all_many(floor) else 0)


def _all_many(floor: FloatArray) -> bool:
    return bool((np.unique(floor, return_counts=True)[1] >= _MANY).all())


def variance_between(recordings: Sequence[FloatArray]) -> FloatArray:
    """Return the variance of the logarithm of the median of each row between recordings.

    Parameters
    ----------
    recordings
        Arrays of shape ``(quantities, repeats)`` of positive numbers.
    """
    medians = [np.median(np.log(values), axis=1) for values in recordings]
    variance: FloatArray = np.var(medians, axis=0, ddof=1)
    return variance


def _paired(old: FloatArray, new: FloatArray) -> FloatArray:
    """Return the differences of repeats that were run one after the other."""
    repeats = min(old.shape[1], new.shape[1])
    difference: FloatArray = new[:, :repeats] - old[:, :repeats]
    return difference


def _variance(logs: FloatArray) -> FloatArray:
    """Return the variance of the median of each row, by resampling the repeats."""
    from scipy.stats import bootstrap

    parts = [np.empty(0)]
    for begin in range(0, len(logs), _ROWS):
        result = bootstrap(
            (logs[begin : begin + _ROWS],), np.median, axis=1, vectorized=True,
            n_resamples=_RESAMPLES, method="percentile", rng=np.random.default_rng(0),
        )  # fmt: skip
        parts.append(np.square(result.standard_error))
    return np.concatenate(parts)


def _drift(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the variance between medians of consecutive blocks, and that which noise causes."""
    blocks = np.array_split(logs, _BLOCKS, axis=1)
    medians = np.stack([np.median(block, axis=1) for block in blocks])
    # Steps from one repeat to the next contain the noise, but hardly any drift. For normal noise,
    # their median magnitude is 0.954 standard deviations.
    noise = (np.median(np.abs(np.diff(logs, axis=1)), axis=1) / 0.954) ** 2
    return medians.var(axis=0, ddof=1), np.pi / 2 * noise * _BLOCKS / logs.shape[1]


def _between(
    sides: Sequence[Sequence[_Recording]], floor: FloatArray, *, drift: float
) -> tuple[FloatArray, int]:
    """Return the estimated variance between recordings of the same code.

    The second result is its degrees of freedom. The floor is not part of it. `drift` is the factor
    from the variance between blocks of a recording.
    """
    recordings = [recording for side in sides for recording in side]
    noise = np.mean([r.variance for r in recordings], axis=0)
    freedom = len(recordings) * (_BLOCKS - 1)
    # A median of steps tells as much as a third of them would by their mean square.
    steps = sum(r.repeats - 1 for r in recordings) // 3
    moved, unmoved = (
        np.mean(values, axis=0) for values in zip(*(r.drift for r in recordings), strict=True)
    )
    found = drift * _beyond_noise(moved, unmoved, freedom, steps, floor)
    measured = _measured(sides)
    if measured:
        squares = sum(np.var([r.log_median for r in side], axis=0) * len(side) for side in sides)
        found = np.maximum(found, _beyond_noise(squares / measured, noise, measured, steps, floor))
        freedom += measured
    return found, freedom


def _beyond_noise(
    variance: FloatArray, noise: FloatArray, freedom: int, freedom_of_noise: int, floor: FloatArray
) -> FloatArray:
    """Return the part of a variance that is more than noise.

    That of one quantity is badly known from a few values, so it counts only if it is significant.
    That of most quantities always counts, for all of them.
    """
    from scipy.stats import f as fisher

    excess = np.maximum(variance - noise, 0)
    is_certain = variance > fisher.isf(_PRETEST, freedom, freedom_of_noise) * noise
    found = np.where(is_certain, excess, 0)
    for value in np.unique(floor):
        alike = floor == value
        found[alike] = np.maximum(found[alike], max(np.median((variance - noise)[alike]), 0))
    return found


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
