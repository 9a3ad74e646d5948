"""Statistics of groups whose values count several times."""

import numpy as np
import pytest

from epprof_nb.arrays.percentiles import GroupStatistics


@pytest.mark.parametrize("greatest", [50, 2**62])  # one integer holds group and value, or not
@pytest.mark.parametrize("share_of_one", [0, 0.9, 1])
@pytest.mark.parametrize("percent", [0, 50, 95, 100])
def test_a_value_with_a_weight_counts_as_often(greatest, percent, share_of_one):
    random = np.random.default_rng(0)
    groups, values = random.integers(0, 3, 200), random.integers(-50, 50, 200)
    values[0] = greatest
    weights = np.where(random.random(200) < share_of_one, 1, random.integers(2, 9, 200))
    found = GroupStatistics(groups, values, 4, weights)
    assert found.count[3] == found.percentile(percent)[3] == 0
    for group in range(3):
        of_group = groups == group
        expected = np.sort(np.repeat(values[of_group], weights[of_group]))
        rank = max(-(-len(expected) * percent // 100), 1)
        assert found.count[group] == len(expected)
        assert found.percentile(percent)[group] == expected[rank - 1]


def test_one_weight_changes_no_other_group():
    groups, values = np.array([1, 0, 0, 1]), np.array([7, 5, 3, 9])
    weights = np.array([1, 1, 1, 4])
    found = GroupStatistics(groups, values, 2, weights)
    assert found.percentile(50).tolist() == [3, 9]
    assert found.total.tolist() == [8, 43]


def test_weights_of_a_damaged_file_need_no_memory():
    weights = np.array([2**62, 2**62, 2**62, 2**62])  # their sum is 0 in int64
    found = GroupStatistics(np.zeros(4, np.int64), np.arange(4), 1, weights)
    assert 0 <= found.percentile(50)[0] <= 3
