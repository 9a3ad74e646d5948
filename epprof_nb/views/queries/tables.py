"""The breakdowns as the viewer's tables: those that say something, their first rows, queries."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from epprof_nb.analysis.breakdowns import BREAKDOWNS
from epprof_nb.util.format import shorten
from epprof_nb.views.queries.search import find

if TYPE_CHECKING:
    from collections.abc import Iterable

    from epprof_nb.views.view_model import ViewModel

ROWS = 400
"""Rows of a table that are embedded, or sent in one answer."""
_CHARACTERS = 600
_PATTERN_CHARACTERS = 200


def offered(prepared: ViewModel) -> list[str]:
    """Return which breakdowns say something, without computing them.

    By op always; by stream where there are several.
    """
    ops, activities = prepared.profile.tables["ops"], prepared.profile.tables["activities"]
    nodes = bool(ops.names("category").equals("node").any())
    says = {
        "op": True,
        "op_type": nodes,
        "node": nodes,
        "kernel": bool(activities.names("kind").equals("kernel").any()),
        "line": bool((ops["line"] >= 0).any()),
        "stream": sum(lane.kind == "stream" and lane.rows > 0 for lane in prepared.layout.lanes)
        > 1,
    }
    return [by for by in BREAKDOWNS if says[by]]


def table(prepared: ViewModel, by: str, **asked: Any) -> dict[str, Any]:
    """Return a breakdown, or what `query` finds in it where anything is asked.

    Raises
    ------
    KeyError
        For a breakdown that there is not.
    """
    frame = prepared.breakdown(by)
    return query(frame, **asked) if asked else as_columns(frame)


def as_columns(frame: pd.DataFrame, limit: int = ROWS) -> dict[str, Any]:
    """Turn the first rows of a breakdown into JSON; only absurd names are shortened.

    Returns
    -------
    table
        ``columns``: a list of ``{"name", "values"}``, a value being a number, a string or None;
        ``rows``: how many rows the whole breakdown has.
    """
    head = frame.head(limit)
    columns = [
        {"name": str(name), "values": [_plain(value) for value in head[name].tolist()]}
        for name in head.columns
    ]
    return {"columns": columns, "rows": len(frame)}


def query(
    frame: pd.DataFrame,
    *,
    sort: str | None = None,
    descending: bool = False,
    pattern: str = "",
    limit: int = ROWS,
) -> dict[str, Any]:
    """Sort and filter a whole breakdown, and return its first rows.

    Parameters
    ----------
    frame
        A breakdown.
    sort
        The column to sort by; the breakdown's own order where it has no such column.
    descending
        Largest first. What is missing comes last either way.
    pattern
        Keeps rows with this text in one of their text columns, or which it matches as a regular
        expression; capitals count as small letters. What is no regular expression is only text.
    limit
        How many rows to return.

    Returns
    -------
    table
        As from `as_columns`, with ``found``: how many rows the pattern left, and ``note``: why it
        was read as text only, or nothing.
    """
    found, note = frame, ""
    if pattern:
        kept, note = matches(frame, pattern[:_PATTERN_CHARACTERS])
        found = frame[kept]
    if sort in found.columns:
        keys = found[sort]
        if isinstance(keys.dtype, pd.CategoricalDtype) or keys.dtype == object:
            keys = keys.astype(object).map(lambda v: None if v is None else str(v).lower())
        order = keys.reset_index(drop=True).sort_values(
            ascending=not descending, kind="stable", na_position="last"
        )
        found = found.iloc[order.index.to_numpy()]
    return {**as_columns(found, limit), "rows": len(frame), "found": len(found), "note": note}


def matches(frame: pd.DataFrame, pattern: str) -> tuple[np.ndarray[Any, np.dtype[np.bool_]], str]:
    """Return which rows have a text with `pattern` in it, and a note; see `query`."""
    # A name is looked at once, however many rows and columns have it; a missing one has the last
    # place.
    texts: dict[str, int] = {}

    def places(values: Iterable[Any]) -> list[int]:
        return [
            -1 if pd.isna(value) else texts.setdefault(str(value)[:_CHARACTERS], len(texts))
            for value in values
        ]

    of_columns = []
    for name in frame.columns:
        column = frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            own = np.array([*places(column.cat.categories), -1], np.int64)
            of_columns.append(own[column.cat.codes.to_numpy()])
        elif name == "source":
            of_columns.append(np.array(places(column), np.int64))
    wanted, note = pattern.lower(), ""
    hits = np.array([*(wanted in text.lower() for text in texts), False], np.bool_)
    try:
        hits[find(list(texts), pattern, ignore_case=True)] = True
    except ValueError as error:
        note = f"{error} Looked for as text."
    kept = np.zeros(len(frame), np.bool_)
    for of_rows in of_columns:
        kept |= hits[of_rows]
    return kept, note


def _plain(value: Any) -> str | float | int | None:  # noqa: ANN401 - whatever a frame holds
    if isinstance(value, tuple):
        return " \N{MULTIPLICATION SIGN} ".join(map(str, value))
    if pd.isna(value):
        return None
    if isinstance(value, int | float):
        return value if math.isfinite(value) else None
    return shorten(str(value), _CHARACTERS)
