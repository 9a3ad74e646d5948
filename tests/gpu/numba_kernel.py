"""A kernel of Numba."""

from numba import cuda


@cuda.jit
def relu(x, y):
    """Write the positive part of each number."""
    i = cuda.grid(1)
    if i < x.size:
        y[i] = max(x[i], 0)
