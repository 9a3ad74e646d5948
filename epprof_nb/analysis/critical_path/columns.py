"""Columns of the critical path: types, bounds of times and orders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table

Rows: TypeAlias = npt.NDArray[np.int32]
Columns: TypeAlias = tuple[npt.NDArray[Any], ...]

MAX_NS = 2**61
"""Bound of times: sums of two of them fit in 64 bits."""


def spans(table: Table) -> tuple[IntArray, IntArray]:
    """Return starts and ends within bounds: a damaged file may have times that overflow."""
    start, end = (
        times
        if times.min(initial=0) >= -MAX_NS and times.max(initial=0) <= MAX_NS
        else np.clip(times, -MAX_NS, MAX_NS)
        for times in (table["start_ns"], table["end_ns"])
    )
    return start, end if (end >= start).all() else np.maximum(start, end)


def row_order(times: IntArray) -> Rows:
    """Return the rows by ascending time; an empty array if they are in this order."""
    if (times[1:] >= times[:-1]).all():
        return np.empty(0, np.int32)
    return np.argsort(times, kind="stable").astype(np.int32)
