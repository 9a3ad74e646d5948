"""Sums by group."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.arrays.groups import extend_ranges, sum_by_group


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
@pytest.mark.parametrize(("groups", "rows"), [(1, 9), (3, 1000), (100, 30), (0, 5)])
def test_sums_are_exact(dtype, groups, rows):
    random = np.random.default_rng(1)
    codes = random.integers(-1, groups + 1, rows).astype(dtype)
    values = random.integers(-(2**60), 2**60, rows)
    expected = np.zeros(groups + 1, np.int64)
    np.add.at(expected, codes, values)
    assert sum_by_group(codes, values, groups).tolist() == expected.tolist()
    assert sum_by_group(codes[::-1], values[::-1], groups).tolist() == expected.tolist()


@pytest.mark.parametrize("wrong", [-2, 4])
def test_a_group_that_does_not_exist_is_an_error(wrong):
    with pytest.raises(ValueError, match="group"):
        sum_by_group(np.array([0, wrong]), np.array([1, 1]), 3)
    with pytest.raises(ValueError, match="length"):
        sum_by_group(np.array([0, 1, 2]), np.array([1]), 3)


def test_time_ranges_are_extended_by_the_rows_of_each_group():
    starts, ends = np.array([50, 50, 50]), np.array([60, 60, 60])
    groups = np.array([0, -1, 1, 0, 1])
    extend_ranges(
        starts, ends, groups, np.array([55, 0, 40, 30, 70]), np.array([70, 90, 45, 35, 75])
    )
    assert starts.tolist() == [30, 40, 50]
    assert ends.tolist() == [70, 75, 60]
    with pytest.raises(ValueError, match="group"):
        extend_ranges(starts, ends, np.array([3]), np.array([0]), np.array([1]))
