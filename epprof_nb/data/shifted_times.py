"""Tables whose times count from another begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.data.schema import MISSING_DELTA

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table

_TIMES = ("time_ns", "allocated_ns", "freed_ns")
"""Columns with single moments."""


def shifted(table: Table, begin: int, length: int) -> Table:
    """Return a table whose times count from `begin`, and are cut at 0 and `length`.

    Moments that are outside, such as when a block was allocated, become missing.
    """
    changed: dict[str, IntArray] = {}
    names = table.schema.names
    if "end_ns" in names:
        start = np.clip(table["start_ns"] - begin, 0, length)
        end = np.clip(table["end_ns"] - begin, 0, length)
        changed = {"start_ns": start, "end_ns": end}
        # A row of several executions was not open all the time.
        changed["duration_ns"] = np.minimum(table["duration_ns"], end - start)
        if "suspended_ns" in names:
            left = end - start - changed["duration_ns"]
            changed["suspended_ns"] = np.minimum(table["suspended_ns"], left)
    elif "start_ns" in names:
        changed["start_ns"] = table["start_ns"] - begin
    for name in _TIMES:
        if name in names:
            time = table[name]
            moved = time - begin
            if name != "time_ns":
                is_outside = (time == MISSING_DELTA) | (moved < 0) | (moved >= length)
                moved = np.where(is_outside, MISSING_DELTA, moved)
            changed[name] = moved
    return table.replace(**changed)
