"""Scatter of repeats, from the differences of successive ones."""

import numpy as np
import pytest

from epprof_nb.analysis.experiments.alike import scatter_of


@pytest.mark.parametrize("drift", [0, 1e5])
def test_the_scatter_is_the_standard_deviation_without_the_drift(drift):
    random = np.random.default_rng(3)
    walls = random.normal(1e9, 2e7, 2_000)
    assert scatter_of((walls + drift * np.arange(2_000)).tolist()) == pytest.approx(
        2e7 / (1e9 + drift * 1_000), rel=0.1
    )
