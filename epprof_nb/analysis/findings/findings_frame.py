"""FindingsFrame: a DataFrame of findings that shows their sentences in full.

A separate module, because it imports pandas.
"""

from __future__ import annotations

import textwrap
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from epprof_nb.analysis.findings.finding import gain_text
from epprof_nb.data.noted_frame import NotedFrame
from epprof_nb.util.format import base_name, printable
from epprof_nb.util.html import with_code

if TYPE_CHECKING:
    from collections.abc import Iterator

OWN_CELL = "cell"
"""Key of the profiled cell or script in ``DataFrame.attrs``: its lines are shown without it."""
REPEATS = "repeats"
"""Key of the number of repeats in ``DataFrame.attrs``: their times are added up."""
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
        for number, row in _rows(self):
            heads = [f"{number}. {row.kind}", *_places(self, row)]
            head = ", ".join(part for part in heads if part)
            lines.append(f"{head}: {gain}" if (gain := _gain(row)) else head)
            for text in (row.text, row.remedy):
                lines += _WRAPPER.wrap(printable(text))
        return "\n".join([*lines, "", _columns(self)])

    def _repr_html_(self) -> str | None:
        if not pd.get_option("display.notebook_repr_html"):
            return None
        places = ("line", "task", "rank") if "ranks" in self.columns else ("line",)
        names = ("", "kind", *places, "gain", "text")
        head = "".join(f"<th {_LEFT}>{name}</th>" for name in names)
        rows = [
            "".join(
                f"<td {style}>{cell}</td>"
                for style, cell in (
                    (_LEFT, number), (_LEFT, escape(str(row.kind))),
                    *((_LEFT, escape(text)) for text in _places(self, row, names=False)),
                    (_GAIN, escape(_gain(row))),
                    (_LEFT, f"{with_code(row.text)}<br>{with_code(row.remedy)}"),
                )
            )
            for number, row in _rows(self)
        ]  # fmt: skip
        body = "".join(f"<tr>{cells}</tr>" for cells in rows)
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{escape(_columns(self))}</p>"
        )


def _rows(frame: pd.DataFrame) -> Iterator[tuple[int, Any]]:
    """Yield each finding with its number; findings of a job name the ranks of processes."""
    of_job = "ranks" in frame.columns
    for number, row in enumerate(frame.itertuples(), 1):
        found: Any = row
        yield number if of_job else found.rank, found


def _places(frame: pd.DataFrame, row: Any, *, names: bool = True) -> list[str]:  # noqa: ANN401
    """Return the line of a finding, and of a job's its task and rank, if they are known."""
    known = {"line": "" if pd.isna(row.line) else str(row.line)}
    if known["line"] and not pd.isna(row.cell) and row.cell != frame.attrs.get(OWN_CELL, row.cell):
        known["line"] += f" of {printable(base_name(row.cell))}"
    if hasattr(row, "ranks"):
        known["task"] = "" if pd.isna(row.task) else str(row.task)
        known["rank"] = f"{row.rank} (most of {row.ranks})" if row.ranks > 1 else str(row.rank)
    return [f"{name} {text}" if names and text else text for name, text in known.items()]


def _gain(row: Any) -> str:  # noqa: ANN401
    return gain_text(row.gain_ns, row.gain_low_ns, row.gain_high_ns)


def _columns(frame: pd.DataFrame) -> str:
    count = frame.attrs.get(REPEATS, 0)
    total = f"Times and gains are sums over {count:,} repeats. " if count > 1 else ""
    return f"{total}Columns: {', '.join(frame.columns)}."


class NotedFindingsFrame(NotedFrame):
    """Findings with a note below them."""

    def _shown(self) -> pd.DataFrame:
        return FindingsFrame(self)
