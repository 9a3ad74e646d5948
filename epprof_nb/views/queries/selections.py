"""What the viewer asks about selections, each found once and kept while it stands."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.views.queries.event_order import Walk
from epprof_nb.views.queries.related import event
from epprof_nb.views.queries.selection import Selected, of_rows, select
from epprof_nb.views.timeline.lod import positions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.views.queries.selection import Ints
    from epprof_nb.views.view_model import ViewModel

_KEPT = 10_000
"""Selected events of a table that stay by themselves where one rectangle stands for several."""


class Standing:
    """A selection, and the way through its events."""

    def __init__(self, prepared: ViewModel, selected: Selected) -> None:
        self._prepared = prepared
        self.selected = selected

    @cached_property
    def walk(self) -> Walk:
        """The events that were asked for, in the order of time."""
        return Walk(self._prepared.profile, self.selected.rows)

    @cached_property
    def lit(self) -> dict[str, Ints]:
        """Positions of all that lights up; see `epprof_nb.views.timeline.lod.positions`."""
        places = self._prepared.layout.places()
        marked = self.selected.lit
        return {prefix: positions(places[prefix].series, mask) for prefix, mask in marked.items()}

    @cached_property
    def kept(self) -> dict[str, Ints]:
        """Positions of the events that were asked for; of very many the longest."""
        places = self._prepared.layout.places()
        kept: dict[str, Ints] = {}
        for prefix, rows in self.selected.rows.items():
            series = places[prefix].series
            mask = np.zeros(len(series.start), np.bool_)
            mask[rows] = True
            at = positions(series, mask)
            if len(at) > _KEPT:
                length = series.ends(at) - series.starts(at)
                at = np.sort(at[np.argpartition(-length, _KEPT)[:_KEPT]])
            kept[prefix] = at
        return kept


class Selections:
    """The selections of one view.

    Parameters
    ----------
    prepared
        The profile.
    given
        Rows that Python chose, ``{what: "rows"}`` to the viewer: table to rows, ascending.
    """

    def __init__(self, prepared: ViewModel, given: Mapping[str, Ints] | None = None) -> None:
        self._prepared = prepared
        self._given = dict(given or {})
        self._last: tuple[str, Standing] | None = None

    @property
    def given(self) -> Standing | None:
        """The rows that Python chose, and what belongs to them; None without any."""
        return self.of({"what": "rows"}) if self._given else None

    def give(self, rows: Mapping[str, Ints]) -> None:
        """Let ``{what: "rows"}`` mean other rows."""
        self._given, self._last = dict(rows), None

    def of(self, wanted: Mapping[str, Any]) -> Standing:
        """Return what `wanted` (see `select`) means; ValueError where it means nothing."""
        key = json.dumps(dict(wanted), sort_keys=True)
        if self._last is None or self._last[0] != key:
            found = (
                of_rows(self._prepared, self._given, launches=True)
                if wanted.get("what") == "rows"
                else select(self._prepared, wanted)
            )
            self._last = key, Standing(self._prepared, found)
        return self._last[1]

    def step(
        self, wanted: Mapping[str, Any], *, number: int | None = None, at_ns: float | None = None
    ) -> dict[str, Any]:
        """Tell how many events a selection has, where they lie, and one of them.

        Parameters
        ----------
        wanted
            See `epprof_nb.views.queries.selection.select`; also ``{what: "rows"}``.
        number
            Which event, from 0 in the order of time; beyond the ends it goes round.
        at_ns
            Where `number` is None: the first event from this time on; None for no event.

        Returns
        -------
        told
            ``count``; ``start`` and ``end`` (ns, None without an event); ``number`` and ``event``
            (see `epprof_nb.views.queries.related.event`; both None where none was asked for).
        """
        standing = self.of(wanted)
        walk, extent = standing.walk, standing.selected.extent
        told: dict[str, Any] = {
            "count": walk.count,
            "start": extent and extent[0],
            "end": extent and extent[1],
            "number": None,
            "event": None,
        }
        if walk.count and (number is not None or at_ns is not None):
            at = walk.number_at(at_ns or 0) if number is None else number % walk.count
            prefix, row = walk.nth(at)
            told |= {"number": at, "event": event(self._prepared, prefix, row)}
        return told
