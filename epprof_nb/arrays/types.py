"""Array types, and the number that stands for a missing id."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

MISSING = -1
"""A missing id, row or code. As an index it refers to the last element."""
