"""steadiness: warm-up, steady and outlying iterations of the code, and their drift."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.missing_records import busy_within
from epprof_nb.analysis.base.processes import process_by_process
from epprof_nb.analysis.base.result_table import OptionalColumn, ResultTable
from epprof_nb.analysis.steps.iterations import MIN_ITERATIONS, iterations
from epprof_nb.arrays.theil_sen import theil_sen
from epprof_nb.data.names import CategoryColumn

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

PHASES = ("warm-up", "steady", "outlier")
WARM_UP, STEADY, OUTLIER = 0, 1, 2
_MIN_TO_DRIFT = 10
_CONFIDENCE = 0.99

_OUTLYING, _LEAST_EXCESS = 5.0, 0.1
"""An iteration is an outlier if it exceeds the steady median by this many standard deviations, and
by this share."""
_COMES_AGAIN, _AS_LONG = 2, 1.25
"""Number of later outliers from which the first iterations are outliers, too, and maximum ratio of
the longest of these to the median later one."""
_NORMAL = 1.4826
"""Standard deviation of a normal distribution divided by its median absolute deviation."""
_MAX_POINTS = 300
_LEAST_DRIFT = 0.01
"""Minimum change from the first to the second half of the iterations, as a share."""


@process_by_process
def steadiness_table(index: ProfileIndex) -> ResultTable:
    """Return the columns of `Profile.steadiness`."""
    found = index.cached(iterations)
    wall = found.end - found.start
    busy, is_unknown = busy_within(index, found.start, found.end)
    times = {"busy": busy, "idle": wall - busy}
    phase = _phases(wall)
    steady = phase == STEADY
    # The others are compared with the steady ones.
    no_excess = is_unknown | is_unknown[steady].any()
    return ResultTable(
        {
            "number": found.number,
            "start_ns": found.start,
            "phase": CategoryColumn(phase, PHASES),
            "wall_ns": wall,
            **{f"{name}_ns": OptionalColumn(ns, is_unknown) for name, ns in times.items()},
            "excess_wall_ns": _excess(wall, steady),
            **{
                f"excess_{name}_ns": OptionalColumn(_excess(ns, steady), no_excess)
                for name, ns in times.items()
            },
        }
    )


def _excess(times: IntArray, steady: BoolArray) -> IntArray:
    median = int(np.median(times[steady])) if steady.any() else 0
    return times - median if steady.any() else np.zeros_like(times)


def _phases(wall: IntArray) -> npt.NDArray[np.int32]:
    """Return a code of `PHASES` for each wall time, -1 for too few."""
    n = len(wall)
    if n < MIN_ITERATIONS:
        return np.full(n, -1, np.int32)
    half = wall[n // 2 :]
    median = float(np.median(half))
    deviation = _NORMAL * float(np.median(np.abs(half - median)))
    limit = median + max(_OUTLYING * deviation, _LEAST_EXCESS * median)
    phase = np.where(wall > limit, OUTLIER, STEADY).astype(np.int32)
    first = slice(0, min(int((phase == STEADY).argmax()), n // 2))
    later = wall[first.stop :][phase[first.stop :] == OUTLIER]
    # A warm-up does not come again and again.
    if len(later) < _COMES_AGAIN or wall[first].max(initial=0) > _AS_LONG * np.median(later):
        phase[first] = WARM_UP
    return phase


class Drift(NamedTuple):
    """Change of the wall time over the steady iterations, as a share of the first one's.

    ``low`` and ``high`` are the bounds of its confidence interval.
    """

    change: float
    low: float
    high: float


def drift(index: ProfileIndex) -> Drift | None:
    """Return the drift of the steady iterations; None if there is none, or if they are few."""
    table = index.cached(steadiness_table)
    wall = table["wall_ns"][table.names("phase").codes == STEADY].astype(np.float64)
    if len(wall) < _MIN_TO_DRIFT:
        return None
    halves = [float(np.median(half)) for half in np.array_split(wall, 2)]
    if abs(halves[1] - halves[0]) < _LEAST_DRIFT * halves[0]:
        return None
    points = np.array([part.mean() for part in np.array_split(wall, min(len(wall), _MAX_POINTS))])
    slope, intercept, low, high = theil_sen(points, _CONFIDENCE)
    if low <= 0 <= high or intercept <= 0:
        return None
    steps = (len(points) - 1) / intercept
    return Drift(slope * steps, low * steps, high * steps)
