"""Theil-Sen estimator: the slope of a series as the median of the slopes of all pairs."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


class Line(NamedTuple):
    """Slope per place in the series, value at its first place, and bounds of the slope."""

    slope: float
    intercept: float
    low: float
    high: float


def theil_sen(values: npt.NDArray[np.float64], confidence: float) -> Line:
    """Fit a line to a series, with Sen's interval of its slope.

    The result equals the result of `scipy.stats.theilslopes`, whose import takes longer than all
    analyses of a short profile.

    Parameters
    ----------
    values
        float64 array of at least two values. All pairs are held at once.
    confidence
        Probability that the interval contains the slope.

    Examples
    --------
    >>> line = theil_sen(np.array([1.0, 2.0, 3.0, 4.0, 9.0]), 0.8)
    >>> line.slope, line.intercept, line.low, line.high
    (1.0, 1.0, 1.0, 3.0)
    """
    n = len(values)
    earlier, later = np.triu_indices(n, 1)
    slopes = np.sort((values[later] - values[earlier]) / (later - earlier))
    slope = float(np.median(slopes))
    # Sen (1968), equation 2.6: the variance of Kendall's tau, where values can be equal.
    equal = np.unique(values, return_counts=True)[1].tolist()
    variance = (_spread(n) - sum(map(_spread, equal))) / 18
    half = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(variance)
    low = max(round((len(slopes) - half) / 2) - 1, 0)
    high = min(round((len(slopes) + half) / 2), len(slopes) - 1)
    intercept = float(np.median(values)) - slope * (n - 1) / 2
    return Line(slope, intercept, float(slopes[low]), float(slopes[high]))


def _spread(values: int) -> int:
    return values * (values - 1) * (2 * values + 5)
