"""Selection state of a live view, set in the viewer or from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from epprof_nb.arrays.intervals import LATEST
from epprof_nb.views.queries.frame_rows import rows_of_frame

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.views.queries.view_selection import Selections


class SelectionState:
    """Selected events and selected time range of a view.

    Parameters
    ----------
    selections
        Selections of the view.

    Attributes
    ----------
    time_range
        Start and end of the selected time range, ns; None if there is none.
    """

    def __init__(self, selections: Selections) -> None:
        self._selections = selections
        self._query: dict[str, Any] | None = None
        self._selections_from_python = 0
        self.time_range: tuple[int, int] | None = None

    def on_frontend_selection(self, content: Mapping[str, Any]) -> None:
        """Update the state from a message of the viewer.

        Raises
        ------
        ArithmeticError, LookupError, TypeError, ValueError
            If the message is malformed. The state is then unchanged.
        """
        query, marked = content.get("selection"), content.get("time_range")
        if query:
            self._selections.of(query)  # the viewer requests it next
        time_range = None
        if marked:
            start, end = marked
            time_range = int(start), int(end)
            if max(map(abs, time_range)) > LATEST:
                raise ValueError("the time range is too large")
        self._query = dict(query) if query else None
        self.time_range = time_range

    def select_rows(self, frame: pd.DataFrame | None) -> dict[str, Any] | None:
        """Select the rows of a DataFrame; return the query that the viewer sends for them.

        Raises
        ------
        TypeError, ValueError
            See `rows_of_frame`.
        """
        self._query = None
        if frame is not None:
            prefix, rows = rows_of_frame(self._selections.view_model.profile, frame)
            self._selections.set_rows({prefix: rows})
            self._selections_from_python += 1
            # The number distinguishes these rows from previously selected ones.
            self._query = {"what": "rows", "number": self._selections_from_python}
        return self._query

    def to_frame(self) -> pd.DataFrame:
        """Return the selected activities; all activities if nothing is selected."""
        view_model = self._selections.view_model
        profile = view_model.profile
        if self._query is None and self.time_range is None:
            return profile.activities
        activities = profile.tables["activities"]
        is_selected = np.ones(len(activities), np.bool_)
        if self._query is not None:
            selection = self._selections.of(self._query)
            is_selected &= selection.selected.highlighted["act"]
        if self.time_range is not None:
            is_selected &= view_model.index.time_chunks.overlap_mask(*self.time_range)
        rows = np.flatnonzero(is_selected)
        # Convert the selected rows only: the table may have millions.
        frame = activities.take(rows).to_frame()
        frame.index = pd.Index(rows)
        return frame
