"""Time that profiling added to the wall time, measured by runs that were not profiled."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from epprof_nb.arrays.types import IntArray

    FloatArray = npt.NDArray[np.float64]

_MIN_RUNS, _MIN_FREEDOM = 2, 4
"""Minimum number of runs of a kind, and of all of them beyond one of each kind."""
_MIN_OF_MEDIAN = 7
"""Minimum number of runs of a kind whose median is used: of few runs, most may be delayed."""
_MAX_ERROR, _MAX_POINTS = 0.15, 0.01
"""Maximum standard error of the share: half of its largest error, relative or absolute."""
_OF_DEVIATION, _OF_MEDIAN = 1.4826, 1.2533
"""Standard deviation / median deviation, and errors of median / mean, of normal values."""
VARY = "the runs vary too much"
FASTER = "the repeats were faster than the warm-ups"


def measured_time(
    unprofiled_ns: Sequence[int], profiled_ns: IntArray, wall_ns: int
) -> dict[str, int | str]:
    """Return what profiling added to all profiled runs of some code; {} with too few runs.

    The means of the times decide; if the runs vary too much for these, the medians, which a few
    runs that other processes delayed do not change.

    Parameters
    ----------
    unprofiled_ns
        Times of runs of the same code, in order. The first does not count: it warms caches up.
    profiled_ns
        int64 array: times of the profiled runs, ns.
    wall_ns
        Wall time of the profile.

    Returns
    -------
    added
        ``total`` and its standard ``error``, ns, or the ``reason`` why they are unknown.

    Examples
    --------
    >>> measured_time([9000, 1000, 1001, 999], np.array([1100, 1101, 1099]), 3300)
    {'total': 300, 'error': 2}
    >>> measured_time([9000, 1000, 5000, 999], np.array([1100, 3000, 1099]), 5199)
    {'reason': 'the runs vary too much'}
    """
    unprofiled = np.array(unprofiled_ns[1:], np.float64)
    profiled = np.asarray(profiled_ns, np.float64)
    freedom = len(unprofiled) + len(profiled) - 2
    if min(len(unprofiled), len(profiled)) < _MIN_RUNS or freedom < _MIN_FREEDOM:
        return {}
    if min(unprofiled.min(), profiled.min()) <= 0:
        return {"reason": VARY}
    ratio, error = _ratio_of_means(unprofiled, profiled)
    if not _is_small(error, ratio) and min(len(unprofiled), len(profiled)) >= _MIN_OF_MEDIAN:
        ratio, error = _ratio_of_medians(unprofiled, profiled)
    if not _is_small(error, ratio):
        return {"reason": VARY}
    # Code that became faster in spite of the profiler was still warming up before.
    if ratio < 1 - 2 * error:
        return {"reason": FASTER}
    return {
        "total": max(round(wall_ns * (1 - 1 / ratio)), 0),
        "error": round(wall_ns * error / ratio**2),
    }


def _is_small(error: float, ratio: float) -> bool:
    return error <= max(_MAX_POINTS, _MAX_ERROR * abs(ratio - 1))


def _ratio_of_means(unprofiled: FloatArray, profiled: FloatArray) -> tuple[float, float]:
    """Return the ratio of the means and its standard error, of runs that vary alike."""
    ratio = float(profiled.mean() / unprofiled.mean())
    deviations = np.concatenate([times / times.mean() - 1 for times in (unprofiled, profiled)])
    variance = (deviations**2).sum() / (len(deviations) - 2)
    return ratio, ratio * float(np.sqrt(variance * (1 / len(unprofiled) + 1 / len(profiled))))


def _ratio_of_medians(unprofiled: FloatArray, profiled: FloatArray) -> tuple[float, float]:
    """Return the ratio of the medians and its standard error."""
    ratio = float(np.median(profiled) / np.median(unprofiled))
    return ratio, ratio * math.hypot(*map(_error_of_median, (unprofiled, profiled)))


def _error_of_median(times: FloatArray) -> float:
    """Return the standard error of a median, as a share of it.

    The middle run has no deviation, and one or two are next to it, so the median deviation of few
    runs is too small.
    """
    count = len(times)
    deviation = float(np.median(np.abs(times / np.median(times) - 1)))
    return _OF_MEDIAN * _OF_DEVIATION * deviation * count / (count - 2) / math.sqrt(count)
