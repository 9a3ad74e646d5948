"""Kernels of Numba."""

import numpy as np
import pytest
from numba import cuda


@cuda.jit
def relu(x, y):
    """Write the positive part of each number."""
    i = cuda.grid(1)
    if i < x.size:
        y[i] = max(x[i], 0)


@cuda.jit
def add_one(a):
    """Add one to each number."""
    i = cuda.grid(1)
    if i < a.size:
        a[i] += 1


def array_for_add_one():
    """256 ones in device memory; skips the test if Numba cannot launch on this machine."""
    a = cuda.to_device(np.zeros(256))
    try:
        add_one[1, 256](a)
        cuda.synchronize()
    except Exception as error:
        pytest.skip(f"Numba cannot launch here: {error!r}"[:200])
    return a
