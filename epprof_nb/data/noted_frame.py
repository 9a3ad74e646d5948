"""DataFrames that show notes below their rows, such as the reason why they are empty.

A separate module, because it imports pandas.
"""

from __future__ import annotations

from html import escape
from typing import Any

import pandas as pd

from epprof_nb.util.format import plural
from epprof_nb.util.text_controls import with_visible_controls

NOTE = "note"
"""Key of the note in ``DataFrame.attrs``."""


class NotedFrame(pd.DataFrame):
    """DataFrame whose output ends with ``attrs["note"]``. Operations on it return a DataFrame.

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
        """Pickle as a plain DataFrame, so that unpickling needs only pandas."""
        frame = pd.DataFrame(self)
        frame.attrs.update(self.attrs)
        return pd.DataFrame, (), frame.__getstate__()

    def __repr__(self) -> str:
        notes = (f"Note: {note}" for note in self._notes())
        return with_visible_controls("\n".join([repr(self._shown()), *notes]))

    def _repr_html_(self) -> str | None:
        table: str | None = self._shown()._repr_html_()  # type: ignore[operator]
        if table is None:  # HTML output is disabled
            return None
        return table + "".join(f"<p>Note: {escape(note)}</p>" for note in self._notes())

    def _shown(self) -> pd.DataFrame:
        """Return the frame shown above the notes."""
        return pd.DataFrame(self)

    def _notes(self) -> list[str]:
        return [str(self.attrs[NOTE])] if NOTE in self.attrs else []


class HostFrame(NotedFrame):
    """Table of a profile without device work, shown without columns that have no value.

    `head` and `tail` return a `HostFrame` too; other operations return a DataFrame.

    Examples
    --------
    >>> print(HostFrame({"name": ["f"], "device_ns": [0], "host_ns": [7]}))
      name  host_ns
    0    f        7
    Note: 1 column is 0 or missing in all rows and not shown.
    """

    def head(self, n: int = 5) -> HostFrame:  # type: ignore[misc] # final in the stubs
        """Return the first rows."""
        return HostFrame(super().head(n))

    def tail(self, n: int = 5) -> HostFrame:  # type: ignore[misc] # final in the stubs
        """Return the last rows."""
        return HostFrame(super().tail(n))

    def _shown(self) -> pd.DataFrame:
        frame = pd.DataFrame(self)
        return frame.loc[:, [not self._lacks_values(frame[name]) for name in frame.columns]]

    def _notes(self) -> list[str]:
        hidden = len(self.columns) - len(self._shown().columns)
        columns = plural(hidden, "column is", "columns are")
        note = f"{columns} 0 or missing in all rows and not shown."
        return [*super()._notes(), note] if hidden else super()._notes()

    @staticmethod
    def _lacks_values(column: pd.Series[Any]) -> bool:
        values = column.dropna()
        is_number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
        return values.empty or (is_number and not values.any())
