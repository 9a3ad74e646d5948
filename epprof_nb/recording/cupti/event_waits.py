"""The calls that recorded the events which synchronizations waited for.

An event can be recorded many times. A synchronization and the record of the event that it waited
for have the same number, given by the native callbacks or, beside another profiler, by CUPTI since
CUDA 12.8. Before, it is the last record of the event that precedes the synchronization, because
correlation ids ascend. CUPTI returns records in no particular order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn
from epprof_nb.recording.native_columns import ids

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.arrays.types import IntArray

EXACT, LATEST = range(2)
_SOURCES = ("exact", "latest")
_MOST_KEPT = 65_536
"""Maximum number of events whose last record is kept for synchronizations of a later drain."""


class _Records(NamedTuple):
    """Records of events, as columns of one length."""

    context: IntArray
    event: IntArray
    correlation: IntArray
    sync: IntArray
    stream: IntArray

    def take(self, rows: IntArray) -> _Records:
        return _Records(*(column[rows] for column in self))


class EventWaits:
    """Finds the record of the event that each synchronization waited for, drain by drain."""

    def __init__(self) -> None:
        self._known = _Records(*(np.empty(0, np.int64) for _ in _Records._fields))

    def columns(
        self, raw: dict[str, Any], correlation: IntArray, context: IntArray, recorded: IntArray
    ) -> dict[str, npt.NDArray[Any] | CategoryColumn]:
        """Return the columns ``event_...`` of activities.

        Parameters
        ----------
        raw
            Columns that the native core has drained.
        correlation, context
            Correlation ids and contexts of the activities.
        recorded
            Correlation ids of the calls that recorded events.
        """
        new = _Records(
            ids(raw, "event.context_id", np.int32),
            ids(raw, "event.event_id", np.uint32),
            recorded,
            ids(raw, "event.sync_id", np.uint64),
            ids(raw, "event.stream_id", np.int32),
        )
        known = _Records(*map(np.concatenate, zip(self._known, new, strict=True)))
        known = known.take(np.lexsort((known.correlation, known.event, known.context)))
        row = ids(raw, "awaited.row", np.uint32)
        event, sync = (
            ids(raw, "awaited.event_id", np.uint32),
            ids(raw, "awaited.sync_id", np.uint64),
        )
        latest = _latest(known, context[row], event, correlation[row])
        exact = _of_number(known, event, sync)
        found = np.where(exact == MISSING, latest, exact)
        source = np.where(exact == MISSING, LATEST, EXACT)
        self._known = _last_of_each(known)
        is_found = found != MISSING
        row, found, source = row[is_found], found[is_found], source[is_found]
        if not len(row):
            return {}

        def column(values: IntArray) -> IntArray:
            result = np.full(len(correlation), MISSING, np.int64)
            result[row] = values
            return result

        return {
            "event_correlation_id": column(known.correlation[found]),
            "event_context_id": column(known.context[found]),
            "event_stream_id": column(known.stream[found]),
            "event_source": CategoryColumn(column(source).astype(np.int32), _SOURCES),
        }


def _of_number(known: _Records, event: IntArray, sync: IntArray) -> IntArray:
    """Return the record with each number; `MISSING` where the version has no numbers."""
    order = np.lexsort((known.event, known.sync))
    sorted_sync = np.append(known.sync[order], -1)
    at = np.searchsorted(sorted_sync[:-1], sync)
    row = np.append(order, MISSING)[at]
    matches = (sync != 0) & (sorted_sync[at] == sync) & (np.append(known.event, -1)[row] == event)
    return np.where(matches, row, MISSING)


def _latest(known: _Records, context: IntArray, event: IntArray, correlation: IntArray) -> IntArray:
    """Return the last record of each event before a call; `MISSING` for none.

    The records are in the order of context, event and correlation id.
    """
    count = len(known.event)
    keys = np.lexsort((
        np.repeat([0, 1], [count, len(event)]),
        np.append(known.correlation, correlation),
        np.append(known.event, event),
        np.append(known.context, context),
    ))  # fmt: skip
    last = np.maximum.accumulate(np.where(keys < count, keys, MISSING)) if len(keys) else keys
    found = np.full(len(event), MISSING, np.int64)
    is_asked = keys >= count
    found[keys[is_asked] - count] = last[is_asked]
    same = (np.append(known.event, MISSING)[found] == event) & (
        np.append(known.context, MISSING)[found] == context
    )
    return np.where(same, found, MISSING)


def _last_of_each(known: _Records) -> _Records:
    """Return the last record of each event; later calls have later records."""
    is_last = np.ones(len(known.event), np.bool_)
    is_last[:-1] = np.diff(known.event) != 0
    is_last[:-1] |= np.diff(known.context) != 0
    rows = np.flatnonzero(is_last)
    if len(rows) > _MOST_KEPT:
        rows = np.sort(rows[np.argsort(known.correlation[rows])[-_MOST_KEPT:]])
    return known.take(rows)
