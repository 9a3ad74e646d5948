"""Width of the indices that kernels compute: 32-bit divisions are faster than 64-bit ones."""

from __future__ import annotations

from epprof_nb.ep.kernels.cuda.grids import MAX_BLOCKS, THREADS

MOST_32_BIT = (1 << 31) - MAX_BLOCKS * THREADS
"""Maximum number of elements whose indices fit in 32 bits, with room for one step of a grid."""
