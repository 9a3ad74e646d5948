"""The selection of a view: its events, their positions, and seeking through them."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.views.queries.event_order import EventOrder
from epprof_nb.views.queries.related import locate_event
from epprof_nb.views.queries.selected_events import SelectedEvents, select_events, select_rows
from epprof_nb.views.timeline.level_of_detail import positions_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.views.view_model import ViewModel

_MAX_PINNED = 10_000
"""Maximum number of selected events per table that are not merged with others."""


class ActiveSelection:
    """A selection and the results derived from it, each computed once."""

    def __init__(self, view_model: ViewModel, selected: SelectedEvents) -> None:
        self._view_model = view_model
        self.selected = selected

    @cached_property
    def order(self) -> EventOrder:
        """The selected events in time order."""
        return EventOrder(self._view_model.profile, self.selected.rows)

    @cached_property
    def highlighted(self) -> dict[str, IntArray]:
        """Positions of the highlighted events, as `level_of_detail.positions_of` describes them."""
        layouts = self._view_model.layout.by_prefix()
        masks = self.selected.highlighted
        return {prefix: positions_of(layouts[prefix].event_rows, masks[prefix]) for prefix in masks}

    @cached_property
    def pinned(self) -> dict[str, IntArray]:
        """Positions of the selected events, which are not merged: the longest ones of very many."""
        layouts = self._view_model.layout.by_prefix()
        pinned: dict[str, IntArray] = {}
        for prefix, rows in self.selected.rows.items():
            event_rows = layouts[prefix].event_rows
            mask = np.zeros(len(event_rows.start), np.bool_)
            mask[rows] = True
            at = positions_of(event_rows, mask)
            if len(at) > _MAX_PINNED:
                length = event_rows.ends(at) - event_rows.starts(at)
                at = np.sort(at[np.argpartition(-length, _MAX_PINNED)[:_MAX_PINNED]])
            pinned[prefix] = at
        return pinned

    def seek(self, *, number: int | None = None, at_ns: float | None = None) -> dict[str, Any]:
        """Return the number of selected events, their time range, and one of them.

        Parameters
        ----------
        number
            Index of the event in time order. It wraps around at the ends.
        at_ns
            If `number` is None, the time at or after which the event starts. If both are None, no
            event is returned.

        Returns
        -------
        response
            ``count``; ``start`` and ``end`` (ns, None without events); ``number`` and ``event``
            (see `epprof_nb.views.queries.related.locate_event`).
        """
        order, extent = self.order, self.selected.extent
        response: dict[str, Any] = {
            "count": order.count,
            "start": extent and extent[0],
            "end": extent and extent[1],
            "number": None,
            "event": None,
        }
        if order.count and (number is not None or at_ns is not None):
            index = order.index_at(at_ns or 0) if number is None else number % order.count
            prefix, row = order.at(index)
            response |= {"number": index, "event": locate_event(self._view_model, prefix, row)}
        return response


class Selections:
    """Resolves the selections of one view and caches the latest.

    Parameters
    ----------
    view_model
        The profile.

    Attributes
    ----------
    view_model
        The profile.
    """

    def __init__(self, view_model: ViewModel) -> None:
        self.view_model = view_model
        self._rows: dict[str, IntArray] = {}
        self._latest: tuple[str, ActiveSelection] | None = None

    @property
    def initial(self) -> ActiveSelection | None:
        """The selection of the rows set from Python; None if there are none."""
        return self.of({"what": "rows"}) if self._rows else None

    def set_rows(self, rows: Mapping[str, IntArray]) -> None:
        """Set the rows, ascending, by prefix, that the query ``{what: "rows"}`` selects."""
        self._rows, self._latest = dict(rows), None

    def of(self, query: Mapping[str, Any]) -> ActiveSelection:
        """Return the selection of a query.

        Parameters
        ----------
        query
            See `epprof_nb.views.queries.selected_events.select_events`; also ``{what: "rows"}``.

        Raises
        ------
        ValueError
            If the query is invalid.
        """
        key = json.dumps(dict(query), sort_keys=True)
        if self._latest is None or self._latest[0] != key:
            selected = (
                select_rows(self.view_model, self._rows, launches=True)
                if query.get("what") == "rows"
                else select_events(self.view_model, query)
            )
            self._latest = key, ActiveSelection(self.view_model, selected)
        return self._latest[1]
