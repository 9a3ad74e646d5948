"""What is chosen in a live view: by its reader, or by Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from epprof_nb.views.queries.frame_rows import rows_of_frame

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.views.view_model import ViewModel


class Choice:
    """The selection and the span of a view.

    Parameters
    ----------
    prepared
        The profile.

    Attributes
    ----------
    span
        Start and end of the marked span, ns; None without one.
    """

    def __init__(self, prepared: ViewModel) -> None:
        self._prepared = prepared
        self._wanted: dict[str, Any] | None = None
        self._given = 0
        self.span: tuple[int, int] | None = None

    def told(self, content: Mapping[str, Any]) -> None:
        """Take over what the front end says is chosen."""
        wanted, span = content.get("selection"), content.get("span")
        self._wanted = dict(wanted) if wanted else None
        self.span = (int(span[0]), int(span[1])) if span else None

    def give(self, frame: pd.DataFrame | None) -> dict[str, Any] | None:
        """Choose the rows of a DataFrame; return what the front end is to ask for.

        Raises
        ------
        TypeError, ValueError
            See `rows_of_frame`.
        """
        self._wanted = None
        if frame is not None:
            prefix, rows = rows_of_frame(self._prepared.profile, frame)
            self._prepared.selections.give({prefix: rows})
            self._given += 1
            # The number tells these rows from those that were given before.
            self._wanted = {"what": "rows", "number": self._given}
        return self._wanted

    def frame(self) -> pd.DataFrame:
        """Return the chosen activities; all where nothing is chosen."""
        profile = self._prepared.profile
        if self._wanted is None and self.span is None:
            return profile.activities
        activities = profile.tables["activities"]
        inside = np.ones(len(activities), np.bool_)
        if self._wanted is not None:
            inside &= self._prepared.selections.of(self._wanted).selected.lit["act"]
        if self.span is not None:
            inside &= self._prepared.index.time_chunks.overlap_mask(*self.span)
        rows = np.flatnonzero(inside)
        # Only the chosen rows become a DataFrame: there may be millions of others.
        frame = activities.take(rows).to_frame()
        frame.index = pd.Index(rows)
        return frame
