"""A kernel of cupyx.jit, which reads its source from this file."""

from cupyx import jit


@jit.rawkernel()
def relu(x, y, n):
    """Write the positive part of each of `n` numbers."""
    i = jit.grid(1)
    if i < n:
        y[i // 4, i % 4] = max(x[i // 4, i % 4], 0.0)
