"""Orders of integers."""

import numpy as np
import pytest

from epprof_nb.arrays.stable_order import stable_order

LIMITS = np.iinfo(np.int64)


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 3), (-(2**40), 2**40), (2**47, 2**47 + 2**36), (LIMITS.min, LIMITS.max), (7, 8)],
)
@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_it_is_the_order_of_a_stable_sort(low, high, n):
    values = np.random.default_rng(n).integers(low, high, n)
    values[n // 2 :] = values[: n - n // 2]
    assert stable_order(values).tolist() == np.argsort(values, kind="stable").tolist()


def test_the_values_stay_as_they_are():
    values = np.array([LIMITS.max, LIMITS.min, LIMITS.max - 1, LIMITS.min])
    assert stable_order(values).tolist() == [1, 3, 2, 0]
    assert values[1] == LIMITS.min
