"""Activations on a CUDA device, which take one launch each. Needs CuPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

cp = pytest.importorskip("cupy", reason="CuPy is not installed")

from epprof_nb.ep.kernels.math import activation  # noqa: E402

TOLERANCES = {"float32": (2e-6, 1e-6), "float64": (1e-12, 1e-13)}


@pytest.mark.parametrize("dtype", TOLERANCES)
def test_results_are_those_of_numpy(dtype):
    values = np.random.default_rng(0).standard_normal(1000) * 4
    x = np.concatenate([values, [0, np.inf, np.nan, 1e30, -1e30]]).astype(dtype)
    wide = x.astype(np.float64)
    erf = np.vectorize(math.erf)
    with np.errstate(all="ignore"):
        inner = (wide**2 * 0.044715 + 1) * wide * math.sqrt(2 / math.pi)
        wanted = {
            activation.sigmoid: 1 / (1 + np.exp(-wide)),
            activation.gelu: 0.5 * (erf(wide * math.sqrt(0.5)) + 1) * wide,
            activation.gelu_tanh: 0.5 * (np.tanh(inner) + 1) * wide,
        }
    rtol, atol = TOLERANCES[dtype]
    for function, result in wanted.items():
        got = function(cp, cp.asarray(x))
        assert got.dtype == dtype
        np.testing.assert_allclose(cp.asnumpy(got), result, rtol=rtol, atol=atol)
