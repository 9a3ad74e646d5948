"""Grids of kernels whose threads take one element after another, a grid apart."""

from __future__ import annotations

THREADS = 256
"""Threads of a block."""
MAX_BLOCKS = 1 << 20


def grid_of(n: int) -> tuple[int]:
    """Return the grid for `n` elements: a thread for each, as far as `MAX_BLOCKS` allows."""
    return (min((n + THREADS - 1) // THREADS, MAX_BLOCKS),)
