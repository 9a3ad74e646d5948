"""Time of ops on the critical path, which is in that of the ops around them if they ran often.

A row of many executions says nothing about the time between them. So its own time is on the path as
time of the op around it, and a change of it changes the mean of that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.ancestors import nearest_ancestor
from epprof_nb.arrays.ids import sorted_distinct
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

    Factors = npt.NDArray[np.float64]


class Holders:
    """The op on the path that has the own time of each op: itself, or one around it.

    Parameters
    ----------
    index
        Index of the profile.
    on_path
        Whether the time of each op is on the path itself.
    """

    def __init__(self, index: ProfileIndex, on_path: BoolArray) -> None:
        thread, parent = index.profile.tables["ops"]["thread_id"], index.tree.parent
        above = np.where(np.append(thread, MISSING)[parent] == thread, parent, MISSING)
        holder = nearest_ancestor(above, on_path)
        self._held = np.flatnonzero((holder >= 0) & ~on_path)
        self._holder = holder[self._held]
        self._holders = sorted_distinct(self._holder)

    def path_ns(self, own_ns: IntArray) -> Factors:
        """Return the time of each op on the path, ns, from the own times of ops."""
        total = own_ns.astype(np.float64)
        total += np.bincount(self._holder, own_ns[self._held], len(own_ns))
        total[self._held] = 0
        return total

    def factors(self, factors: Factors, own_ns: IntArray) -> Factors:
        """Return the factors of ops' time on the path from those of their own times."""
        if not len(self._held):
            return factors
        total, kept = (
            values + np.bincount(self._holder, values[self._held], len(values))
            for values in (own_ns.astype(np.float64), own_ns * factors)
        )
        found, rows = factors.copy(), self._holders[total[self._holders] > 0]
        found[rows] = kept[rows] / total[rows]
        return found
