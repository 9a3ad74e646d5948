"""EvidenceFrame: a DataFrame of the rows behind a finding, displayed without empty columns.

A separate module, because it imports pandas.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from epprof_nb.util.format import plural


class EvidenceFrame(pd.DataFrame):
    """DataFrame displayed without empty columns. Operations on it return a plain DataFrame.

    Examples
    --------
    >>> frame = EvidenceFrame({"name": ["f"], "node_index": [None]})
    >>> print(frame)
      name
    0    f
    <BLANKLINE>
    1 column without values is not shown.
    >>> type(frame.head()).__name__
    'DataFrame'
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a plain DataFrame, so that unpickling needs only pandas."""
        return pd.DataFrame, (), pd.DataFrame(self).__getstate__()

    def __repr__(self) -> str:
        shown = self._shown()
        hidden = len(self.columns) - len(shown.columns)
        return f"{shown!r}\n\n{_note(hidden)}" if hidden else repr(shown)

    def _repr_html_(self) -> str | None:
        shown = self._shown()
        html: str | None = shown._repr_html_()  # type: ignore[operator]
        hidden = len(self.columns) - len(shown.columns)
        return f"{html}<p>{_note(hidden)}</p>" if html and hidden else html

    def _shown(self) -> pd.DataFrame:
        frame = pd.DataFrame(self)
        return frame.dropna(axis=1, how="all") if len(frame) else frame


def _note(hidden: int) -> str:
    return f"{plural(hidden, 'column')} without values {'is' if hidden == 1 else 'are'} not shown."
