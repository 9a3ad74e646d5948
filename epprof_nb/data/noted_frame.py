"""NotedFrame: a DataFrame that shows a note below its rows, such as why it has none.

A module of its own, because it imports pandas.
"""

from __future__ import annotations

from html import escape
from typing import Any

import pandas as pd

NOTE = "note"
"""Key of the note in ``DataFrame.attrs``."""


class NotedFrame(pd.DataFrame):
    """DataFrame whose output ends with ``attrs["note"]``. What is computed from it is a DataFrame.

    Examples
    --------
    >>> frame = NotedFrame({"name": []})
    >>> frame.attrs["note"] = "No kernel was launched."
    >>> print(frame)
    Empty DataFrame
    Columns: [name]
    Index: []
    Note: No kernel was launched.
    >>> type(frame.head()).__name__
    'DataFrame'
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to pickle it: as a DataFrame, which needs no other package."""
        frame = pd.DataFrame(self)
        frame.attrs.update(self.attrs)
        return pd.DataFrame, (), frame.__getstate__()

    def __repr__(self) -> str:
        return f"{pd.DataFrame(self)!r}\nNote: {self.attrs.get(NOTE, '')}"

    def _repr_html_(self) -> str | None:
        table: str | None = pd.DataFrame(self)._repr_html_()  # type: ignore[operator]
        if table is None:  # HTML is switched off
            return None
        return f"{table}<p>Note: {escape(str(self.attrs.get(NOTE, '')))}</p>"
