"""Positions of values in sorted ones."""

from __future__ import annotations

import numpy as np
import pytest

from epprof_nb.arrays.positions import positions


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("order", ["ascending", "descending", "any"])
@pytest.mark.parametrize("length", [0, 1, 7, 300])
def test_positions_are_those_of_numpy(side, order, length):
    random = np.random.default_rng(2)
    for _ in range(30):
        ascending = np.sort(random.integers(0, length + 3, length))
        values = random.integers(-2, length + 5, 50)
        if order != "any":
            values = np.sort(values)[:: 1 if order == "ascending" else -1]
        expected = np.searchsorted(ascending, values, side)
        assert positions(ascending, values, side).tolist() == expected.tolist()
