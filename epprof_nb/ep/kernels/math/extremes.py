"""Indices of the largest and smallest elements along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.ep.kernels.cuda import rows as cuda_rows

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array, ArrayModule


def place_of_extreme(
    xp: ArrayModule, x: Array, axis: int, *, smallest: bool = False, last: bool = False
) -> Array:
    """Return the index of the largest element along an axis.

    Parameters
    ----------
    xp
        Array module.
    x
        Contiguous array.
    axis
        Number of the axis, from 0.
    smallest
        Look for the smallest element.
    last
        Return the last of equal elements, not the first.

    Returns
    -------
    places
        int64 array without the axis.

    Notes
    -----
    ONNX Runtime compares each element with the best one so far. NaN is therefore chosen only if it
    is the first element, because all comparisons with it are false.
    """
    if x.dtype.kind == "f" and xp is not np and x.size:
        return cuda_rows.place_of_extreme(xp, x, axis, smallest=smallest, last=last)
    missing = np.isnan(x) if x.dtype.kind == "f" and xp is np else None
    if missing is not None and missing.any():
        return _without_nan(x, missing, axis, smallest=smallest, last=last)
    function = "argmin" if smallest else "argmax"
    if not last:
        return getattr(x, function)(axis=axis)
    return x.shape[axis] - 1 - getattr(xp.flip(x, axis=axis), function)(axis=axis)


def _without_nan(x: Array, missing: Array, axis: int, *, smallest: bool, last: bool) -> Array:
    known = np.where(missing, np.inf if smallest else -np.inf, x)
    best = (known.min if smallest else known.max)(axis=axis, keepdims=True)
    found = (known == best) & ~missing
    places = (
        found.shape[axis] - 1 - np.flip(found, axis).argmax(axis) if last else found.argmax(axis)
    )
    return np.where(missing.take(0, axis), 0, places)
