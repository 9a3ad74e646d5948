"""Selected events of all tables in time order, to seek through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.views.queries.event_fields import PREFIXES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData


class EventOrder:
    """Events of several tables sorted by start.

    Events that start together are sorted by table, in the order of `rows`. The tables are not
    merged: each look-up is a binary search, whatever the number of events.

    Parameters
    ----------
    profile
        The profile.
    rows
        Table rows by prefix (``op``, ``api``, ``act``).

    Attributes
    ----------
    count
        Number of events.
    """

    def __init__(self, profile: ProfileData, rows: Mapping[str, IntArray]) -> None:
        self._rows: dict[str, IntArray] = {}
        self._starts: dict[str, IntArray] = {}
        for prefix, rows_of in rows.items():
            start = profile.tables[PREFIXES[prefix]]["start_ns"][rows_of]
            is_sorted = not np.any(start[1:] < start[:-1])
            order = slice(None) if is_sorted else np.argsort(start, kind="stable")
            self._rows[prefix], self._starts[prefix] = rows_of[order], start[order]
        self.count = sum(len(start) for start in self._starts.values())

    def index_at(self, time_ns: float) -> int:
        """Return the index of the first event that starts at or after `time_ns`.

        If there is none, the index wraps around to the first event.
        """
        before = sum(int(np.searchsorted(s, time_ns, side="left")) for s in self._starts.values())
        return before if before < self.count else 0

    def at(self, index: int) -> tuple[str, int]:
        """Return the prefix and the row of an event.

        Raises
        ------
        IndexError
            If the index is out of range.
        """
        if not 0 <= index < self.count:
            raise IndexError(f"index {index} is out of range: there are {self.count} events")
        low = min(int(s[0]) for s in self._starts.values() if len(s))
        high = max(int(s[-1]) for s in self._starts.values() if len(s))
        # Find the earliest time by which more than `index` events have started.
        while low < high:
            middle = (low + high) // 2
            if self._started_by(middle) > index:
                high = middle
            else:
                low = middle + 1
        offset = index - self._started_by(low - 1)
        for prefix, starts in self._starts.items():
            first, end = np.searchsorted(starts, (low, low + 1))
            if offset < end - first:
                return prefix, int(self._rows[prefix][first + offset])
            offset -= int(end - first)
        raise IndexError(index)

    def _started_by(self, time_ns: int) -> int:
        return sum(int(np.searchsorted(s, time_ns, side="right")) for s in self._starts.values())
