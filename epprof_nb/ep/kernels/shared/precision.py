"""Types in which kernels compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from epprof_nb.ep.kernel import Array


def at_least_float32(x: Array) -> Array:
    """Return a float16 array as float32, others unchanged.

    float16 has three digits of precision, which is too little for intermediate results, and NumPy
    has no fast functions for it.
    """
    return x.astype(np.float32) if x.dtype == np.float16 else x
