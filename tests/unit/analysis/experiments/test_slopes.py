"""Slopes: right on average, and with intervals that hold."""

import math

import numpy as np
import pytest

from epprof_nb.analysis.experiments.design import fold_over
from epprof_nb.analysis.experiments.slopes import slopes, without_outliers

WALL, DELAY = 10_000_000, 200_000
TRUE = np.array([1.0, 0.0, 0.5, 0.0, 1.0, 0.3])


def simulated(seed, repeats, true, scatter, *, drift=0, outliers=0):
    """Levels, measured delays and wall times of an experiment with these slopes."""
    random = np.random.default_rng(seed)
    levels = fold_over(len(true), repeats, random)
    delays = np.where(levels > 0, DELAY, 1_000) + random.integers(0, 2_000, levels.shape)
    noise = random.normal(0, scatter * WALL, repeats)
    noise[random.permutation(repeats)[:outliers]] += WALL
    walls = WALL + drift * np.arange(repeats) + noise + delays @ true
    return levels, delays, walls.astype(np.int64)


@pytest.mark.parametrize("repeats", [16, 24, 40])
@pytest.mark.parametrize("factors", [1, 2])
def test_without_scatter_the_slopes_are_exact(repeats, factors):
    found = slopes(*simulated(0, repeats, TRUE[:factors], 0))
    assert [slope.value for slope in found] == pytest.approx(TRUE[:factors], abs=0.02)


def test_a_steady_drift_of_a_third_cancels():
    found = slopes(*simulated(0, 40, TRUE[:3], 0, drift=WALL // 120))
    assert [slope.value for slope in found] == pytest.approx(TRUE[:3], abs=0.15)


@pytest.mark.parametrize(("repeats", "factors"), [(16, 2), (40, 3), (80, 6)])
def test_95_percent_of_the_intervals_have_the_truth(repeats, factors):
    true, missed, values = TRUE[:factors], 0, []
    for seed in range(300):
        found = slopes(*simulated(seed, repeats, true, 0.01))
        missed += sum(
            not slope.low <= value <= slope.high for slope, value in zip(found, true, strict=True)
        )
        values.append([slope.value for slope in found])
    # A standard error of the share is below 0.009.
    assert missed / (300 * factors) <= 0.05 + 3 * 0.009
    assert np.mean(values, axis=0) == pytest.approx(true, abs=0.05)


def test_delays_of_length_zero_are_rarely_taken_for_longer_ones():
    """The design and the analysis of an experiment in which nothing is delayed."""
    apart = []
    for seed in range(200):
        levels, delays, walls = simulated(seed, 40, np.zeros(3), 0.02)
        apart += [not slope.low <= 0 <= slope.high for slope in slopes(levels, delays, walls)]
    assert np.mean(apart) <= 0.05 + 3 * 0.009


def test_twenty_percent_within_44_repeats_at_a_scatter_of_one_percent():
    widths = []
    for seed in range(40):
        levels, delays, walls = simulated(seed, 40, TRUE[:3], 0.01)
        # Three factors share the tenth of the wall time.
        longer = delays * (0.1 * WALL / 3 / DELAY)
        walls = walls + (longer - delays) @ TRUE[:3]
        widths += [slope.half_width for slope in slopes(levels, longer, walls)]
    assert np.median(widths) <= 0.22


def test_repeats_that_the_system_suspended_do_not_widen_the_intervals():
    calm, disturbed = (
        np.median([s.half_width for seed in range(20)
                   for s in slopes(*simulated(seed, 80, TRUE[:3], 0.01, outliers=n))])
        for n in (0, 4)
    )  # fmt: skip
    assert disturbed < 2.5 * calm
    assert without_outliers(np.array([1.0, -1, 1, -1, 50])).tolist() == [1, -1, 1, -1, 6]


@pytest.mark.parametrize("on_path", [1, 0])
def test_waits_for_a_core_are_no_effect_of_delays(on_path):
    """Threads of a busy machine wait, and longer after a delay, which used the processor."""
    true, values, widths, missed = TRUE[:3], [], [[], []], 0
    for seed in range(100):
        levels, delays, walls = simulated(seed, 80, true, 0.005)
        random = np.random.default_rng(seed)
        waits = random.exponential(0.05 * WALL, len(walls)) + 0.5 * delays.sum(axis=1)
        walls = walls + (on_path * waits).astype(np.int64)
        found = slopes(levels, delays, walls, waits.astype(np.int64))
        values.append([slope.value for slope in found])
        missed += sum(not s.low <= v <= s.high for s, v in zip(found, true, strict=True))
        for widths_of, some in zip(widths, (found, slopes(levels, delays, walls)), strict=True):
            widths_of += [slope.half_width for slope in some]
    assert np.mean(values, axis=0) == pytest.approx(true, abs=0.05)
    assert missed / 300 <= 0.05 + 3 * 0.013
    assert np.median(widths[0]) < (0.4 if on_path else 1.2) * np.median(widths[1])


def test_a_delay_that_was_longer_than_ordered_counts_with_its_length():
    """A spin that was calibrated on an idle device took 2.7 times less than ordered."""
    levels, delays, walls = simulated(0, 40, np.array([1.0]), 0)
    walls = walls - (delays @ np.array([1.0])) + (delays // 3) @ np.array([1.0])
    assert slopes(levels, delays // 3, walls.astype(np.int64))[0].value == pytest.approx(
        1, abs=0.05
    )


def test_delays_that_did_not_happen_have_no_slope():
    levels, delays, walls = simulated(0, 40, np.array([1.0]), 0.01)
    assert math.isnan(slopes(levels, np.zeros_like(delays), walls)[0].value)


@pytest.mark.parametrize("repeats", [0, 1, 2, 3, 5, 17])
def test_an_experiment_that_was_interrupted_has_wide_intervals_or_none(repeats):
    levels, delays, walls = simulated(0, 40, TRUE[:3], 0.01)
    found = slopes(levels[:repeats], delays[:repeats], walls[:repeats])
    assert len(found) == 3
    assert all(math.isnan(s.value) or not s.half_width < 0.1 for s in found)
