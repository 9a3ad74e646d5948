"""Which rows of a table lie in a stretch of time, without looking at all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from epprof_nb.table import Table

Ints = npt.NDArray[np.int64]


class Moments:
    """The rows of a table by time.

    Parameters
    ----------
    table
        A table with ``start_ns`` and ``end_ns``; sorted by start it costs one column more, in
        any other order two.
    """

    __slots__ = ("_order", "_reach", "_table")

    def __init__(self, table: Table) -> None:
        self._table = table
        start = table["start_ns"]
        ordered = not np.any(start[1:] < start[:-1])
        self._order: Ints | None = None if ordered else np.argsort(start, kind="stable")
        end = np.maximum(table["end_ns"], start)
        # Latest end so far: ascending, so the first row that reaches a time can be searched for.
        self._reach: Ints = np.maximum.accumulate(end if ordered else end[self._order])

    def rows(self, start_ns: int, end_ns: int) -> Ints:
        """Return the rows that have a part in [start_ns, end_ns), in the order of their starts.

        An event without length counts where it stands.
        """
        start, end = self._table["start_ns"], self._table["end_ns"]
        low = int(np.searchsorted(self._reach, start_ns, side="left"))
        if self._order is None:
            high = int(np.searchsorted(start, end_ns, side="left"))
            found = np.arange(low, max(high, low))
            begins, ends = start[low:high], end[low:high]
        else:
            high = int(np.searchsorted(start, end_ns, side="left", sorter=self._order))
            found = self._order[low:high]
            begins, ends = start[found], end[found]
        inside = (ends > start_ns) | (begins >= start_ns)
        return found if inside.all() else found[inside]
