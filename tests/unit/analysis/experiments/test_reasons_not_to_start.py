"""Scatter of repeats, from the differences of successive ones."""

import numpy as np
import pytest

from epprof_nb.analysis.experiments.reasons_not_to_start import planned, scatter_bounds, scatter_of
from epprof_nb.core.errors import ExperimentError


@pytest.mark.parametrize("drift", [0, 1e5])
def test_the_scatter_is_the_standard_deviation_without_the_drift(drift):
    random = np.random.default_rng(3)
    walls = random.normal(1e9, 2e7, 2_000)
    assert scatter_of((walls + drift * np.arange(2_000)).tolist()) == pytest.approx(
        2e7 / (1e9 + drift * 1_000), rel=0.1
    )


def test_the_bounds_of_the_scatter_have_it_in_most_cases():
    random = np.random.default_rng(5)
    within = 0
    for _ in range(500):
        walls = random.normal(1e9, 2e7, 10).tolist()
        low, high = scatter_bounds(walls, scatter_of(walls))
        within += low <= 0.02 <= high
    assert 430 <= within < 500


def test_an_outlier_among_few_repeats_may_come_again():
    walls = [1e9, 1.001e9] * 5
    outlying = [*walls[:4], 1.3e9, *walls[5:]]
    usual, more = (scatter_bounds(each, scatter_of(walls)) for each in (walls, outlying))
    assert more[0] == usual[0]
    assert more[1] > 50 * usual[1]


@pytest.mark.parametrize(("in_steps", "remedy"), [(True, "--steps 20:21"), (False, "--warmup 5")])
def test_repeats_that_become_faster_are_refused_with_what_to_do(in_steps, remedy):
    walls = [2e9] * 5 + [1e9] * 5
    with pytest.raises(ExperimentError, match=rf"50 % faster .*{remedy}"):
        planned(walls, 40, 1, (0.01, 0.01), in_steps=in_steps)
