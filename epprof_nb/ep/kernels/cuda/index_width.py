"""Width of the indices that kernels compute: 32-bit divisions are faster than 64-bit ones."""

from __future__ import annotations

MOST_32_BIT = (1 << 31) - (1 << 28)
"""Maximum number of elements whose indices fit in 32 bits, with room for one step of a grid of
2**20 blocks of 256 threads."""
