"""Means along axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array


def mean(x: Array, axis: tuple[int, ...] | None, *, keepdims: bool = True) -> Array:
    """Return the mean along axes; NaN for no elements, without NumPy's warning."""
    axes = range(x.ndim) if axis is None else axis
    count = 1
    for a in axes:
        count *= x.shape[a]
    total = x.sum(axis=axis, keepdims=keepdims)
    if not count:
        return total * np.nan
    return total / count
