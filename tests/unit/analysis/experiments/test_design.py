"""Designs: orthogonal pairs, and the repeats that they take."""

import numpy as np
import pytest

from epprof_nb.analysis.experiments.design import (
    BLOCK,
    MAX_DELAYED,
    MAX_FACTORS,
    MAX_WIDTH,
    WANTED_WIDTH,
    executions_to_delay,
    fold_over,
    half_width,
    plan_rounds,
    repeats_for,
)
from epprof_nb.core.least_repeats import MIN_OF_EXPERIMENT


@pytest.mark.parametrize("factors", range(1, MAX_FACTORS + 1))
@pytest.mark.parametrize("repeats", [16, 24, 32, 40, 48, 56, 64, 400])
def test_pairs_are_opposite_and_factors_orthogonal(factors, repeats):
    levels = fold_over(factors, repeats, np.random.default_rng(repeats)).astype(int)
    assert levels.shape == (repeats, factors)
    assert set(np.unique(levels)) == {-1, 1}
    first = levels[::2]
    assert (first == -levels[1::2]).all()
    assert (first.T @ first == repeats // 2 * np.eye(factors)).all()


@pytest.mark.parametrize(("factors", "repeats"), [(1, 16), (2, 24), (6, 40), (6, 400)])
def test_both_levels_come_first_about_as_often(factors, repeats):
    """Otherwise a delay cannot be told from a drift."""
    for seed in range(50):
        levels = fold_over(factors, repeats, np.random.default_rng(seed))
        assert (np.abs(levels[::2].mean(axis=0)) <= 0.25).all()


def test_the_order_is_drawn():
    drawn = [fold_over(3, 40, np.random.default_rng(seed)).tolist() for seed in range(20)]
    assert len({str(levels) for levels in drawn}) == 20


@pytest.mark.parametrize("repeats", [0, 8, 20])
def test_a_number_of_repeats_without_a_design_is_refused(repeats):
    with pytest.raises(ValueError, match="16 repeats"):
        fold_over(2, repeats, np.random.default_rng(0))


def test_the_repeats_for_a_width_have_it():
    for scatter, delay in ((0.01, 0.03), (0.03, 0.05), (0.05, 0.05)):
        repeats = repeats_for(0.2, scatter, delay)
        assert half_width(repeats, scatter, delay) <= 0.2
        assert half_width(repeats - BLOCK, scatter, delay) > 0.2
    assert repeats_for(0.2, 0.001, 0.05) == MIN_OF_EXPERIMENT


@pytest.mark.parametrize("scatter", [0.001, 0.01, 0.03, 0.05, 0.2])
@pytest.mark.parametrize("repeats", [16, 40, 100, 400])
@pytest.mark.parametrize("candidates", [1, 3, 20])
def test_rounds_keep_their_promise(scatter, repeats, candidates):
    plan = plan_rounds(repeats, candidates, scatter, MAX_FACTORS)
    possible = half_width(repeats // BLOCK * BLOCK, scatter, MAX_DELAYED) <= MAX_WIDTH
    assert bool(plan.rounds) == possible
    if plan.rounds:
        assert plan.rounds * plan.repeats <= repeats
        assert plan.repeats % BLOCK == 0 <= plan.repeats - MIN_OF_EXPERIMENT
        assert (plan.rounds - 1) * plan.factors < candidates
        assert 1 <= plan.factors <= min(MAX_FACTORS, candidates)
        delay = MAX_DELAYED / plan.factors
        assert plan.half_width == half_width(plan.repeats, scatter, delay) <= MAX_WIDTH


def test_few_long_delays_are_preferred_to_uncertain_intervals():
    plan = plan_rounds(40, 20, 0.01, MAX_FACTORS)
    assert (plan.rounds, plan.factors) == (1, 3)
    assert plan_rounds(40, 20, 0.005, MAX_FACTORS).factors > 3
    assert plan.half_width <= WANTED_WIDTH
    assert plan_rounds(400, 20, 0.01, MAX_FACTORS).rounds > 1


def test_short_repeats_have_few_factors():
    assert plan_rounds(400, 20, 0.001, 2).factors == 2


def test_delays_are_at_least_ten_microseconds_at_most_twenty_times():
    assert executions_to_delay(1_000_000, 1e9) == 20
    assert executions_to_delay(1_000_000, 55_000) == 5
    assert executions_to_delay(7, 1e9) == 7
    assert executions_to_delay(7, 1.0) == 1
