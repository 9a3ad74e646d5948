"""Array types, the number that stands for a missing id, and the bound of times."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

MISSING = -1
"""A missing id, row or code. As an index it refers to the last element."""

TIME_BOUND_NS = 2**62
"""Bound of times, and of their absolute values: sums and differences of two fit into int64."""
