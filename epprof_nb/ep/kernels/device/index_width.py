"""Width of the places that kernels compute: divisions of 32 bits are faster than of 64."""

from __future__ import annotations

MOST_32_BIT = (1 << 31) - (1 << 28)
"""Maximum number of elements whose places fit in 32 bits, with room for one step of a grid of
2**20 blocks of 256 threads."""
