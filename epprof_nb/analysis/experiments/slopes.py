"""Slopes of the wall time over the delays of an experiment, with randomization intervals.

The order within each pair of repeats was drawn at random. If the wall time grew by some slope per
delay and by nothing else, the rest of each pair's difference would as likely have had the other
sign. The interval has the slopes for which the measured difference is not among the 5 % most
extreme of those with other signs. It assumes no distribution of the scatter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from epprof_nb.analysis.experiments.design import Levels
    from epprof_nb.arrays.types import IntArray

    Floats = npt.NDArray[np.float64]

_DRAWS = 4_000
_CONFIDENCE = 0.95
_OUTLYING = 6.0
"""Limit of differences in medians of their absolute values; four normal standard deviations."""
_ROUNDS = 5
_MORE_PAIRS = 3
"""Pairs that it takes beyond one per factor, to know how much they scatter."""
_EXACT = 11
"""Up to this number of pairs, all signs are tried."""


class Slope(NamedTuple):
    """A slope: nanoseconds of wall time per nanosecond of delay; NaN if it was not measured."""

    value: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of the interval."""
        return (self.high - self.low) / 2


NO_SLOPE = Slope(*[float("nan")] * 3)


def slopes(
    levels: Levels, delay_ns: IntArray, wall_ns: IntArray, waited_ns: IntArray | None = None
) -> list[Slope]:
    """Return the slope of each factor with its 95 % interval.

    Parameters
    ----------
    levels
        Repeats x factors, as `fold_over` returns; a last repeat without its pair is left out.
    delay_ns
        Repeats x factors: the length that each delay really had.
    wall_ns, waited_ns
        Wall time of each repeat, and for how long threads waited for a core in it, if known.

    Notes
    -----
    The delay that was ordered says when a repeat was delayed, and the measured one by how much. So
    a delay that is long because the machine was slow does not look like a slow op.

    On a busy machine, a thread that has used the processor waits for it more later. What these
    waits explain of the wall time is neither an effect of the delays nor scatter.
    """
    pairs, factors = len(wall_ns) // 2, levels.shape[1]
    if pairs < factors + _MORE_PAIRS:
        return [NO_SLOPE] * factors
    end = 2 * pairs
    of_pair = levels[:end:2].astype(np.float64)
    wall, delay, waited = (
        np.asarray(values[:end:2], np.float64) - np.asarray(values[1:end:2], np.float64)
        for values in (wall_ns, delay_ns, np.zeros(end) if waited_ns is None else waited_ns)
    )
    more = np.ones((pairs, 1))  # a steady drift
    if np.ptp(waited) > 0:
        more = np.column_stack([more, waited / np.std(waited)])
    of_pair = np.hstack([of_pair, more])
    wall = _robust(of_pair, np.hstack([delay, more]), wall)
    signs = _signs(pairs)
    return [_slope(of_pair, delay[:, i], wall, i, signs) for i in range(factors)]


def without_outliers(differences: Floats) -> Floats:
    """Return differences of wall times, those beyond four standard deviations brought in."""
    limit = _OUTLYING * float(np.median(np.abs(differences)))
    brought_in: Floats = np.clip(differences, -limit, limit)
    return brought_in


def _robust(levels: Floats, delay: Floats, wall: Floats) -> Floats:
    """Return differences of wall times without what no delay explains and is far out.

    The system can suspend a repeat for longer than all delays together.
    """
    kept = wall
    for _ in range(_ROUNDS):
        found = np.linalg.lstsq(levels.T @ delay, levels.T @ kept, rcond=None)[0]
        explained = delay @ found
        kept = explained + without_outliers(wall - explained)
    return kept


def _signs(pairs: int) -> Floats:
    """Return signs of the pairs, draws x pairs; those that were measured are not among them."""
    if pairs <= _EXACT:
        bits = np.arange(1, 2 ** (pairs - 1))[:, None] >> np.arange(pairs) & 1
        return np.where(bits, -1.0, 1.0)
    drawn = np.random.default_rng(0).integers(0, 2, (_DRAWS, pairs))
    return np.where(drawn, -1.0, 1.0)


def _slope(levels: Floats, delay: Floats, wall: Floats, at: int, signs: Floats) -> Slope:
    others = np.delete(levels, at, axis=1)
    level, delay, wall = (_without(others, values) for values in (levels[:, at], delay, wall))
    measured, per_ns = level @ wall, level @ delay
    if per_ns <= 0:  # the delays did not happen
        return NO_SLOPE
    # What the other factors explain is not scatter, so the rest scatters less.
    more = np.sqrt(len(wall) / (len(wall) - others.shape[1]))
    drawn, drawn_per_ns = (more * (signs @ (level * values)) for values in (wall, delay))
    # For a slope b, the measured rest is `measured - b per_ns`, and a drawn one
    # `drawn - b drawn_per_ns`. The drawn one is as large for b between these ends.
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack(
            [
                (measured - drawn) / (per_ns - drawn_per_ns),
                (measured + drawn) / (per_ns + drawn_per_ns),
            ]
        )
    bounded = np.abs(drawn_per_ns) < per_ns
    low = np.where(bounded, ends.min(axis=0), -np.inf)
    high = np.where(bounded, ends.max(axis=0), np.inf)
    return Slope(
        float(measured / per_ns),
        float(np.quantile(low, 1 - _CONFIDENCE, method="lower")),
        float(np.quantile(high, _CONFIDENCE, method="higher")),
    )


def _without(others: Floats, values: Floats) -> Floats:
    """Return values without what the other factors explain."""
    if not others.shape[1]:
        return values
    explained = np.linalg.lstsq(others, values, rcond=None)[0]
    rest: Floats = values - others @ explained
    return rest
