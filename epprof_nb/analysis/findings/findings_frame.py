"""FindingsFrame: a DataFrame of findings that shows their sentences in full.

A separate module, because it imports pandas.
"""

from __future__ import annotations

import textwrap
from html import escape
from typing import Any

import pandas as pd

from epprof_nb.analysis.findings.finding import gain_text
from epprof_nb.util.format import printable
from epprof_nb.util.html import with_code

_WRAPPER = textwrap.TextWrapper(100, initial_indent="   ", subsequent_indent="   ")
_LEFT = 'style="text-align: left; vertical-align: top"'
# Narrow pages would break it after each word.
_GAIN = 'style="text-align: left; vertical-align: top; min-width: 11em"'


class FindingsFrame(pd.DataFrame):
    """DataFrame displayed as sentences. Operations on it return a plain DataFrame.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> found = synthetic_profile(activities=100).insights()
    >>> print(str(found).splitlines()[0])
    1. idle, line 1: saves at most 60.0 ms
    >>> type(found[["kind", "text"]]).__name__
    'DataFrame'
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a plain DataFrame, so that unpickling needs only pandas."""
        return pd.DataFrame, (), pd.DataFrame(self).__getstate__()

    def __repr__(self) -> str:
        lines = []
        for row in _rows(self):
            heads = [f"{row.rank}. {row.kind}", _place(row)]
            head = ", ".join(part for part in heads if part)
            lines.append(f"{head}: {gain}" if (gain := _gain(row)) else head)
            for text in (row.text, row.remedy):
                lines += _WRAPPER.wrap(printable(text))
        return "\n".join([*lines, "", _columns(self)])

    def _repr_html_(self) -> str | None:
        if not pd.get_option("display.notebook_repr_html"):
            return None
        head = "".join(f"<th {_LEFT}>{name}</th>" for name in ("", "kind", "line", "gain", "text"))
        rows = [
            "".join(
                f"<td {style}>{cell}</td>"
                for style, cell in (
                    (_LEFT, row.rank), (_LEFT, escape(str(row.kind))),
                    (_LEFT, escape(_place(row).removeprefix("line "))),
                    (_GAIN, escape(_gain(row))),
                    (_LEFT, f"{with_code(row.text)}<br>{with_code(row.remedy)}"),
                )
            )
            for row in _rows(self)
        ]  # fmt: skip
        body = "".join(f"<tr>{cells}</tr>" for cells in rows)
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{escape(_columns(self))}</p>"
        )


def _rows(frame: pd.DataFrame) -> list[Any]:
    return list(frame.itertuples())


def _place(row: Any) -> str:  # noqa: ANN401 - a named tuple of pandas
    return "" if pd.isna(row.line) else f"line {row.line}"


def _gain(row: Any) -> str:  # noqa: ANN401
    return gain_text(row.gain_ns, row.gain_low_ns, row.gain_high_ns)


def _columns(frame: pd.DataFrame) -> str:
    return f"Columns: {', '.join(frame.columns)}."
