"""Reasons not to start an experiment: repeats that are not alike, or too few of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.experiments.design import (
    BLOCK,
    MAX_DELAYED,
    MAX_FACTORS,
    MAX_WIDTH,
    MIN_DELAY_NS,
    Plan,
    delay_of_factor,
    half_width,
    plan_rounds,
    repeats_for,
)
from epprof_nb.analysis.experiments.slopes import without_outliers
from epprof_nb.core.errors import ExperimentError
from epprof_nb.core.least_repeats import MAX_OF_EXPERIMENT
from epprof_nb.util.format import duration, percent, plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

_MAX_DRIFT = 0.1
_MIN_EXECUTIONS = 0.9
MIN_BASE = 4
"""Least number of repeats without delays that show how much repeats vary."""
_LEAST, _MOST = 0.7, 1.9
"""Bounds of the true scatter relative to one estimated from ten repeats, each passed in 5 % of
cases: the estimate has the variance of one with six degrees of freedom."""
_UNUSUAL, _UNUSUAL_SCATTERS = 0.3, 6.0
"""Distance of a recorded repeat from usual ones, as a share of them and in units of their scatter:
recording takes time, too."""


def scatter_of(wall_ns: Sequence[float]) -> float:
    """Return the standard deviation of repeats as a share of their median, without their drift.

    It is estimated from the differences of successive repeats.
    """
    walls = np.asarray(wall_ns, np.float64)
    steps = without_outliers(np.diff(walls))
    return float(np.sqrt(np.square(steps).mean() / 2) / np.median(walls))


def scatter_bounds(wall_ns: Sequence[float], scatter: float) -> tuple[float, float]:
    """Return bounds that the scatter of more repeats usually has, from that of a few.

    Parameters
    ----------
    wall_ns
        Wall times of the repeats, as measured.
    scatter
        Their scatter without outliers and what explains it; later repeats may have both again.

    Examples
    --------
    >>> low, high = scatter_bounds([100e6, 102e6] * 5, 0.014)
    >>> round(low, 3), round(high, 3)
    (0.01, 0.027)
    """
    walls = np.asarray(wall_ns, np.float64)
    plain = float(np.sqrt(np.square(np.diff(walls)).mean() / 2) / np.median(walls))
    return _LEAST * scatter, _MOST * max(scatter, plain)


def without_waits(wall_ns: Sequence[int], waited_ns: Sequence[int]) -> list[float]:
    """Return wall times of repeats less what waits for a core explain of their scatter.

    Examples
    --------
    >>> without_waits([100, 130, 100, 150], [0, 30, 0, 50])
    [115.0, 115.0, 115.0, 115.0]
    """
    walls, waits = (np.asarray(values, np.float64) for values in (wall_ns, waited_ns))
    steps, more = np.diff(walls), np.diff(waits)
    explained = np.clip(steps @ more / np.maximum(more @ more, 1), 0, 1)
    adjusted: list[float] = (walls - explained * (waits - np.median(waits))).tolist()
    return adjusted


def unusual(recorded_ns: float, wall_ns: Sequence[int]) -> str:
    """Return how a recorded repeat differs from usual ones; empty if it is one of them.

    Parameters
    ----------
    recorded_ns
        Wall time of the recorded repeat.
    wall_ns
        Wall times of repeats with delays of length zero.

    Examples
    --------
    >>> unusual(11e6, [10_000_000, 10_100_000] * 5)
    ''
    >>> unusual(235e6, [30_800_000, 30_700_000] * 5)
    'the recorded repeat took 235 ms, a usual one takes 30.8 ms'
    """
    if len(wall_ns) < MIN_BASE:
        return ""
    usual = float(np.median(wall_ns))
    if abs(recorded_ns - usual) <= max(_UNUSUAL, _UNUSUAL_SCATTERS * scatter_of(wall_ns)) * usual:
        return ""
    return f"the recorded repeat took {duration(recorded_ns)}, a usual one takes {duration(usual)}"


def check_executions(recorded: Mapping[str, int], now: Mapping[str, int]) -> None:
    """Raise ExperimentError if an op ran much less often in a repeat than in the recorded one."""
    for name, count in now.items():
        if count < _MIN_EXECUTIONS * recorded[name]:
            raise ExperimentError(
                f"{name!r} ran {plural(recorded[name], 'time')} in the recorded repeat and "
                f"{plural(count, 'time')} in a later one. Repeats must be alike: create what the "
                "code uses up, such as iterators, inside the code."
            )


def planned(
    wall_ns: Sequence[float],
    repeats: int,
    candidates: int,
    scatters: tuple[float, float],
    *,
    in_steps: bool = False,
) -> tuple[Plan, str]:
    """Return the rounds of an experiment, and a sentence on how exact it will be.

    Parameters
    ----------
    wall_ns
        Wall times of repeats with delays of length zero, in their order.
    repeats
        Number of repeats that the user allows.
    candidates
        Number of factors that are worth measuring.
    scatters
        Bounds of how much further repeats will scatter.
    in_steps
        Whether repeats are steps of a script, which has no warm-ups.

    Raises
    ------
    ExperimentError
        If the repeats are not alike, too short or too few.
    """
    walls = np.asarray(wall_ns, np.float64)
    wall, scatter = float(np.median(walls)), scatter_of(wall_ns)
    drift = _drift_of(walls)
    if abs(drift) > _MAX_DRIFT:
        how = "slower" if drift > 0 else "faster"
        later = "record later steps (--steps 20:21)" if in_steps else "run warm-ups (--warmup 5)"
        raise ExperimentError(
            f"repeats became {percent(abs(drift))} {how} within {len(walls)} of them. Repeats must "
            f"be alike: {later}, and do not let data grow from repeat to repeat."
        )
    largest = min(int(MAX_DELAYED * wall / MIN_DELAY_NS), MAX_FACTORS)
    if not largest:
        raise ExperimentError(
            f"a repeat takes {duration(wall)}, and a delay of {duration(MIN_DELAY_NS)} would be "
            f"more than {percent(MAX_DELAYED)} of it. Put a loop around the code of the cell."
        )
    plan = plan_rounds(repeats, candidates, scatter, largest)
    if not plan.rounds:
        needed = repeats_for(MAX_WIDTH, scatter, MAX_DELAYED)
        width = half_width(repeats, scatter, MAX_DELAYED)
        raise ExperimentError(
            f"the wall time of repeats scatters by {percent(scatter)}, so that {repeats} repeats "
            f"would measure one sensitivity to ± {width:.2f}. It would take {needed} "
            f"(--experiment {needed}), or repeats that are more alike."
        )
    measurable = _Measurable(repeats, candidates, scatter, largest)
    return plan, _sentence(plan, measurable, wall, scatters)


def _drift_of(walls: npt.NDArray[np.float64]) -> float:
    """Return the change from the first half to the second, if all repeats of a half are longer."""
    half = len(walls) // 2
    first, second = walls[:half], walls[-half:]
    if second.min() < first.max() and first.min() < second.max():
        return 0.0
    return float(np.median(second) / np.median(first) - 1)


class _Measurable(NamedTuple):
    """Repeats and what they could measure: the parameters of `plan_rounds`."""

    repeats: int
    candidates: int
    scatter: float
    largest: int

    def repeats_for_all(self) -> int:
        """Return how many repeats it takes to measure all candidates; 0 if too many."""
        repeats = self.repeats
        while repeats < MAX_OF_EXPERIMENT:
            repeats = -(-(repeats + repeats // 5) // BLOCK) * BLOCK + BLOCK
            plan = plan_rounds(repeats, *self[1:])
            if plan.rounds * plan.factors >= self.candidates:
                return min(plan.rounds * plan.repeats, MAX_OF_EXPERIMENT)
        return 0


def _widths(plan: Plan, delay: float, scatters: tuple[float, float]) -> str:
    """Return the widths that intervals will usually have, in words."""
    low, high = (half_width(plan.repeats, scatter, delay) for scatter in scatters)
    if high > MAX_WIDTH:
        return f"± {low:.2f} or worse, perhaps too uncertain"
    return f"± {low:.2f} to {high:.2f}"


def _sentence(
    plan: Plan, measurable: _Measurable, wall_ns: float, scatters: tuple[float, float]
) -> str:
    asked, candidates, scatter, _ = measurable
    total, count = plan.rounds * plan.repeats, plan.rounds * plan.factors
    delay = delay_of_factor(plan.factors)
    each = repeats_for(0.2, scatter, delay)
    text = (
        f"Repeats scatter by {percent(scatter)}: "
        f"{total}{f' of the {asked}' if total < asked else ''} repeats measure "
        f"{plural(min(count, candidates), 'sensitivity', 'sensitivities')} to "
        f"{_widths(plan, delay, scatters)}, in {duration(total * wall_ns)}"
    )
    if plan.half_width > 0.2:
        text += f"; ± 0.20 would take {plan.rounds * each}"
    if count < candidates and (needed := measurable.repeats_for_all()):
        text += f"; --experiment {needed} would measure all {candidates}"
    return f"{text}."
