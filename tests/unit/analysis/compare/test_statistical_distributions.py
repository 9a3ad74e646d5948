"""Distributions and resampling of the comparison, against `scipy.stats`."""

import numpy as np
import scipy  # its module of statistics is imported at its first use
from hypothesis import given
from hypothesis import strategies as st

from epprof_nb.analysis.compare.statistical_distributions import (
    median_of_chi_squared,
    ratio_of_variances,
    student_distance,
    student_tail,
)
from epprof_nb.analysis.compare.variance_of_medians import Recording

FREEDOM = st.floats(1, 1e6) | st.just(np.inf)
TAIL = st.floats(1e-9, 0.5)


@given(FREEDOM, TAIL, st.floats(0, 1e6) | st.just(np.inf))
def test_student_equals_that_of_scipy(freedom, tail, distance):
    assert student_tail(distance, freedom) == scipy.stats.t.sf(distance, freedom)
    assert student_distance(tail, freedom) == scipy.stats.t.isf(tail, freedom)


@given(TAIL, st.integers(1, 500), st.integers(1, 500))
def test_chi_squared_and_f_equal_those_of_scipy(tail, freedom, freedom_below):
    assert median_of_chi_squared(freedom) == scipy.stats.chi2.median(freedom)
    assert ratio_of_variances(tail, freedom, freedom_below) == scipy.stats.f.isf(
        tail, freedom, freedom_below
    )


def test_the_variance_of_a_median_equals_that_of_scipys_bootstrap():
    logs = np.random.default_rng(3).normal(size=(300, 17))
    resampled = scipy.stats.bootstrap(
        (logs[:256],), np.median, axis=1, vectorized=True, n_resamples=1000, method="percentile",
        rng=np.random.default_rng(0),
    )  # fmt: skip
    assert (Recording.of(logs).variance[:256] == np.square(resampled.standard_error)).all()
