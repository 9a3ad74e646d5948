"""Quantiles and tails of Student's t, of chi-squared and of F, as in `scipy.stats`.

They call `scipy.special`, because the import of `scipy.stats` takes three times as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    FloatArray = npt.NDArray[np.float64]


def student_tail(distance: FloatArray, freedom: FloatArray) -> FloatArray:
    """Return the probability that Student's t exceeds a distance."""
    from scipy import special

    tail: FloatArray = special.stdtr(freedom, -distance)
    return tail


def student_distance(tail: FloatArray, freedom: FloatArray) -> FloatArray:
    """Return the distance that Student's t exceeds with a probability."""
    from scipy import special

    distance: FloatArray = -special.stdtrit(freedom, tail)
    return distance


def median_of_chi_squared(freedom: int) -> float:
    """Return the median of chi-squared."""
    from scipy import special

    return 2 * float(special.gammaincinv(freedom / 2, 0.5))


def ratio_of_variances(tail: float, freedom: int, freedom_below: int) -> float:
    """Return the ratio of two variances, F, that is exceeded with a probability."""
    from scipy import special

    return float(special.fdtri(freedom, freedom_below, 1 - tail))
