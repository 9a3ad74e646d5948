"""The nearest of many values to each of some times."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.arrays.nearest import first_from, last_until


@pytest.mark.parametrize("is_sorted", [True, False])
def test_nearest_values_are_those_of_a_search_of_each_time(is_sorted):
    random = np.random.default_rng(3)
    for _ in range(50):
        values = random.integers(0, 12, 20)
        if is_sorted:
            values.sort()
        mask = random.random(20) < 0.7
        mask[0] = True
        times = np.unique(random.integers(-2, 14, 8))
        rows = np.flatnonzero(mask)
        latest = rows[values[rows] == values[rows].max()][-1]
        first, last = first_from(values, mask, times), last_until(values, mask, times)
        for time, after, before in zip(times, first, last, strict=True):
            later, earlier = rows[values[rows] >= time], rows[values[rows] <= time]
            assert after == (later[values[later].argmin()] if len(later) else latest)
            assert before == (earlier[values[earlier].argmax()] if len(earlier) else -1)
