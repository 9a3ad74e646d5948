"""The Theil-Sen estimator, against SciPy's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from epprof_nb.arrays.theil_sen import theil_sen


@given(
    st.lists(st.floats(-1e9, 1e9) | st.integers(-3, 3), min_size=2, max_size=60),
    st.sampled_from([0.8, 0.95, 0.99]),
)
def test_line_and_interval_equal_those_of_scipy(values, confidence):
    series = np.array(values, np.float64)
    slope, intercept, low, high = stats.theilslopes(series, alpha=confidence)
    assert theil_sen(series, confidence) == (slope, intercept, low, high)
