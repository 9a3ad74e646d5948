"""Shapes of elementwise results."""

from __future__ import annotations

from functools import lru_cache

import numpy as np


@lru_cache(maxsize=4096)
def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which arrays of some shapes broadcast.

    NumPy's function creates arrays, which takes as long as launching a kernel. Results are cached,
    because nodes request the same shapes in each run.

    Raises
    ------
    ValueError
        If the shapes do not fit.
    """
    return np.broadcast_shapes(*shapes)
