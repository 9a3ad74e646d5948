"""Functions that NumPy lacks, against Python's mathematics."""

from __future__ import annotations

import math

import numpy as np
import pytest

from epprof_nb.ep.kernels.shared.special import erf


@pytest.mark.parametrize(
    ("kind", "relative"), [(np.float64, 1e-13), (np.float32, 3e-7), (np.float16, 1e-3)]
)
def test_the_error_function_is_precise_from_tiny_to_large(kind, relative):
    tiny = 10.0 ** np.linspace(-30 if kind != np.float16 else -3, 0, 500)
    x = np.concatenate([np.linspace(-7, 7, 20_001), tiny, -tiny]).astype(kind)
    expected = np.array([math.erf(v) for v in x.astype(np.float64)])
    got = erf(np, x)
    assert got.dtype == kind
    np.testing.assert_allclose(
        got.astype(np.float64), expected, rtol=relative, atol=1e-15 if kind == np.float64 else 0
    )


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
def test_the_error_function_of_special_values(kind):
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan], kind)
    with np.errstate(all="ignore"):
        got = erf(np, x)
    np.testing.assert_array_equal(got, np.array([0, -0.0, 1, -1, np.nan], kind))
    np.testing.assert_array_equal(np.signbit(got[:2]), [False, True])
