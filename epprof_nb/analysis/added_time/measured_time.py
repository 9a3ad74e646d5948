"""Time that profiling added to the wall time, measured by runs that were not profiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.arrays.types import IntArray

_MIN_RUNS, _MIN_FREEDOM = 2, 4
"""Minimum number of runs of a kind, and of all of them beyond one of each kind."""
_MAX_ERROR, _MAX_POINTS = 0.15, 0.01
"""Maximum standard error of the share: half of its largest error, relative or absolute."""


def measured_time(
    unprofiled_ns: Sequence[int], profiled_ns: IntArray, wall_ns: int
) -> dict[str, int]:
    """Return what profiling added to all profiled runs of some code; {} if that is unknown.

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
        ``total`` and its standard ``error``, ns.

    Examples
    --------
    >>> measured_time([9000, 1000, 1001, 999], np.array([1100, 1101, 1099]), 3300)
    {'total': 300, 'error': 2}
    """
    unprofiled = np.array(unprofiled_ns[1:], np.float64)
    profiled = np.asarray(profiled_ns, np.float64)
    freedom = len(unprofiled) + len(profiled) - 2
    if min(len(unprofiled), len(profiled)) < _MIN_RUNS or freedom < _MIN_FREEDOM:
        return {}
    if min(unprofiled.min(), profiled.min()) <= 0:
        return {}
    ratio = profiled.mean() / unprofiled.mean()
    deviations = np.concatenate([times / times.mean() - 1 for times in (unprofiled, profiled)])
    variance = (deviations**2).sum() / freedom
    error = ratio * np.sqrt(variance * (1 / len(unprofiled) + 1 / len(profiled)))
    # Code that became faster in spite of the profiler was still warming up before.
    if error > max(_MAX_POINTS, _MAX_ERROR * abs(ratio - 1)) or ratio < 1 - 2 * error:
        return {}
    return {
        "total": max(round(wall_ns * (1 - 1 / ratio)), 0),
        "error": round(wall_ns * error / ratio**2),
    }
