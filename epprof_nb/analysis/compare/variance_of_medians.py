"""The variance of medians over repeats, and its parts.

* Within a recording: the variance of the median over its repeats, from resampling them (bootstrap).
* Between recordings of the same code, whose speed drifts. Three recordings of each side, or five of
  one, measure this variance. With fewer, a floor is added. Drift within a recording moves the
  medians of its consecutive quarters, and the medians of consecutive recordings by more. For a
  random walk, the variance between recordings is twice as large.

All values are logarithms, in arrays with one row per quantity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.compare.statistical_distributions import (
    median_of_chi_squared,
    ratio_of_variances,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]

_RESAMPLES = 1000
_BLOCKS = 4
_PRETEST = 0.02
"""Probability that noise alone counts as a drift."""
_MEASURED = 4
"""Minimum degrees of freedom to estimate the spread from the recordings instead of assuming it."""
_MANY, _PRIOR_FREEDOM = 5, 4
"""Minimum number of quantities that drift alike, and the degrees of freedom that they add."""
_ROWS = 256
"""Rows that are resampled at a time, to bound the memory."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The logarithms of the medians of one recording, their variance, and the variance of drift."""

    log_median: FloatArray
    variance: FloatArray
    drift: tuple[FloatArray, FloatArray]
    repeats: int

    @classmethod
    def of(cls, logs: FloatArray) -> Recording:
        """Compute them from logarithms with one column per repeat."""
        return cls(np.median(logs, axis=1), _variance(logs), _drift(logs), logs.shape[1])


def variance_of_difference(
    sides: Sequence[Sequence[Recording]],
    floor: FloatArray,
    freedom: float,
    *,
    recordings: tuple[int, int],
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the variance of the difference between the medians of two sides.

    Parameters
    ----------
    sides
        The recordings of both sides, or the differences of paired ones as a single side.
    floor, freedom
        See `epprof_nb.analysis.compare.significance.ratios`.
    recordings
        Number of recordings of each side.

    Returns
    -------
    variance, freedom, between
        float64 arrays, one value per quantity: the variance, its degrees of freedom, and the
        variance between recordings of the same code that is part of it.
    """
    within = sum(
        (sum(r.variance for r in side) / len(side) ** 2 for side in sides), np.zeros(len(floor))
    )
    # Welch and Satterthwaite: the degrees of freedom of a sum of estimated variances.
    parts = sum(
        (r.variance / len(side) ** 2) ** 2 / (r.repeats - 1) for side in sides for r in side
    )
    measured = _measured(sides)
    if tells_spread(sides):
        # The medians of the recordings contain all variation.
        squares = sum(np.var([r.log_median for r in side], axis=0) * len(side) for side in sides)
        spread, degrees = _moderated(squares / measured, measured, floor)
        variance = np.maximum(spread * sum(1 / len(side) for side in sides), within)
        return variance, degrees, spread / (3 - len(sides))
    is_paired = len(sides) == 1
    # The drift of the differences of pairs was averaged over the blocks; a drift that both sides
    # share continues in the next recording.
    found, freedom_found = _between(sides, floor, drift=1 / _BLOCKS if is_paired else 2.0)
    if is_paired:
        found = found / 2  # a difference has the variance of both sides
    between = np.square(floor) + found
    share = 1 / recordings[0] + 1 / recordings[1]
    variance = within + between * share
    parts += (found * share) ** 2 / freedom_found + (np.square(floor) * share) ** 2 / freedom
    # Without noise, the floor is the whole variance. If it was not estimated, the distribution is
    # normal.
    degrees = np.divide(variance**2, parts, out=np.full(len(parts), np.inf), where=parts > 0)
    return variance, degrees, between


def _measured(sides: Sequence[Sequence[object]]) -> int:
    """Return the degrees of freedom of the spread between several recordings of a side."""
    return sum(len(side) - 1 for side in sides)


def tells_spread(sides: Sequence[Sequence[object]]) -> bool:
    """Return whether there are enough recordings to estimate their spread."""
    return _measured(sides) >= _MEASURED


def _moderated(
    variance: FloatArray, freedom: int, floor: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return estimated variances, moved toward the typical one of quantities with the same floor.

    A few recordings say little about one quantity, so quantities that drift alike are pooled, as in
    Smyth's moderated t-test. The second result is the degrees of freedom of each.
    """
    moderated, degrees = variance.copy(), np.full(len(variance), float(freedom))
    for value in np.unique(floor):
        alike = floor == value
        if alike.sum() >= _MANY:
            typical = np.median(variance[alike]) * freedom / median_of_chi_squared(freedom)
            total = _PRIOR_FREEDOM * typical + freedom * variance[alike]
            moderated[alike] = total / (_PRIOR_FREEDOM + freedom)
            degrees[alike] += _PRIOR_FREEDOM
    return moderated, degrees


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


def _variance(logs: FloatArray) -> FloatArray:
    """Return the variance of the median of each row, by resampling the repeats."""
    repeats = logs.shape[1]
    drawn = np.random.default_rng(0).integers(0, repeats, (_RESAMPLES, repeats))
    parts = [np.empty(0)]
    for begin in range(0, len(logs), _ROWS):
        medians = np.median(logs[begin : begin + _ROWS, drawn], axis=-1)
        parts.append(np.square(np.std(medians, axis=-1, ddof=1)))
    return np.concatenate(parts)


def _drift(logs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the variance between medians of consecutive blocks, and the part due to noise."""
    blocks = np.array_split(logs, _BLOCKS, axis=1)
    medians = np.stack([np.median(block, axis=1) for block in blocks])
    # Steps from one repeat to the next contain the noise, but hardly any drift. For normal noise,
    # their median magnitude is 0.954 standard deviations.
    noise = (np.median(np.abs(np.diff(logs, axis=1)), axis=1) / 0.954) ** 2
    return medians.var(axis=0, ddof=1), np.pi / 2 * noise * _BLOCKS / logs.shape[1]


def _between(
    sides: Sequence[Sequence[Recording]], floor: FloatArray, *, drift: float
) -> tuple[FloatArray, int]:
    """Return the estimated variance between recordings of the same code.

    The second result is its degrees of freedom. The floor is not included. `drift` is the factor
    from the variance between blocks of a recording.
    """
    recordings = [recording for side in sides for recording in side]
    noise = np.mean([r.variance for r in recordings], axis=0)
    freedom = len(recordings) * (_BLOCKS - 1)
    # The median of the steps is as precise as the mean square of a third of them.
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

    A few values give a poor estimate for one quantity, so its excess counts only if it is
    significant. The median excess of all quantities with the same floor always counts.
    """
    excess = np.maximum(variance - noise, 0)
    is_certain = variance > ratio_of_variances(_PRETEST, freedom, freedom_of_noise) * noise
    found = np.where(is_certain, excess, 0)
    for value in np.unique(floor):
        alike = floor == value
        found[alike] = np.maximum(found[alike], max(np.median((variance - noise)[alike]), 0))
    return found
