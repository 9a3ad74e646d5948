"""Selected events one after another in the order of time, over all tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from epprof_nb.views.queries.event_fields import PREFIXES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.data.profile_data import ProfileData

Ints = npt.NDArray[np.int64]


class Walk:
    """Rows of several tables, numbered from 0 in the order of their starts.

    Of events that start together, those of the table named first come first. However many there
    are, one is found by a few searches in what is sorted already.

    Parameters
    ----------
    profile
        The profile.
    rows
        Table (``op``, ``api`` or ``act``) to its rows.

    Attributes
    ----------
    count
        How many there are.
    """

    def __init__(self, profile: ProfileData, rows: Mapping[str, Ints]) -> None:
        self._rows: dict[str, Ints] = {}
        self._starts: dict[str, Ints] = {}
        for prefix, mine in rows.items():
            start = profile.tables[PREFIXES[prefix]]["start_ns"][mine]
            ordered = not np.any(start[1:] < start[:-1])
            order = slice(None) if ordered else np.argsort(start, kind="stable")
            self._rows[prefix], self._starts[prefix] = mine[order], start[order]
        self.count = sum(len(start) for start in self._starts.values())

    def number_at(self, time_ns: float) -> int:
        """Return the number of the first event that starts at `time_ns` or later.

        The first one of all where none does: whoever walks on goes round.
        """
        before = sum(int(np.searchsorted(s, time_ns, side="left")) for s in self._starts.values())
        return before if before < self.count else 0

    def nth(self, number: int) -> tuple[str, int]:
        """Return the table and row of an event; IndexError where there is none."""
        if not 0 <= number < self.count:
            raise IndexError(f"there are {self.count} events, none is number {number}")
        low = min(int(s[0]) for s in self._starts.values() if len(s))
        high = max(int(s[-1]) for s in self._starts.values() if len(s))
        # The smallest time up to which more than `number` events have started.
        while low < high:
            middle = (low + high) // 2
            if self._until(middle) > number:
                high = middle
            else:
                low = middle + 1
        left = number - self._until(low - 1)
        for prefix, starts in self._starts.items():
            first, end = np.searchsorted(starts, (low, low + 1))
            if left < end - first:
                return prefix, int(self._rows[prefix][first + left])
            left -= int(end - first)
        raise IndexError(number)

    def _until(self, time_ns: int) -> int:
        return sum(int(np.searchsorted(s, time_ns, side="right")) for s in self._starts.values())
