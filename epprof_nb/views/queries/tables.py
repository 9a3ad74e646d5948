"""Breakdowns as tables of the viewer: available ones, their first rows, sorting and filtering."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.breakdowns.registry import BREAKDOWNS, TREES
from epprof_nb.analysis.frameworks.training_phases import has_modules
from epprof_nb.util.format import shorten
from epprof_nb.views.queries.search import match_names
from epprof_nb.views.queries.stack_selections import line_selections

if TYPE_CHECKING:
    from collections.abc import Iterable

    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.views.view_model import ViewModel

MAX_ROWS = 400
"""Maximum number of rows embedded in a page or sent in one response."""
_MAX_TEXT_LENGTH = 600
_MAX_PATTERN_LENGTH = 200


def available_breakdowns(view_model: ViewModel) -> list[str]:
    """Return the keys of the breakdowns that have rows, without computing them.

    ``op`` is always available, ``stream`` if there are several streams.
    """
    ops, activities = view_model.profile.tables["ops"], view_model.profile.tables["activities"]
    has_nodes = bool(ops.names("category").equals("node").any())
    is_available = {
        "op": True,
        "op_type": has_nodes,
        "node": has_nodes,
        "kernel": bool(activities.names("kind").equals("kernel").any()),
        "line": bool((ops["line"] >= 0).any()) or len(view_model.profile.tables["stacks"]) > 0,
        "function": len(view_model.profile.tables["host_samples"]) > 0,
        "stream": sum(lane.kind == "stream" and lane.rows > 0 for lane in view_model.layout.lanes)
        > 1,
        "module": has_modules(view_model.index),
    }
    return [by for by in BREAKDOWNS if is_available[by]]


def available_trees(view_model: ViewModel) -> list[str]:
    """Return the keys of the trees that have rows, without computing them."""
    has_stacks = len(view_model.profile.tables["stacks"]) > 0
    is_available = {
        "tree": True,
        "module_tree": has_modules(view_model.index),
        "stack_tree": has_stacks,
        "full_stack_tree": has_stacks,
    }
    return [by for by in TREES if is_available[by]]


def breakdown_table(view_model: ViewModel, by: str, **options: Any) -> dict[str, Any]:
    """Return a breakdown as a table; with options, the result of `query_table`.

    As in the timeline, a ``with epprof_nb.op(...)`` statement has no row besides the row of its op.
    Lines also have ``selections``, see `epprof_nb.views.queries.stack_selections.line_selections`.

    Raises
    ------
    KeyError
        If there is no such breakdown.
    """
    table = view_model.shown_ops if by == "op" else view_model.breakdown(by)
    result = query_table(table, **options) if options else to_columns(table)
    if by == "line":
        columns = {column["name"]: column["values"] for column in result["columns"]}
        places = columns["cell"], columns["line"]
        result["selections"] = line_selections(view_model.index, *places)
    return result


def to_columns(table: ResultTable, limit: int = MAX_ROWS) -> dict[str, Any]:
    """Return the first rows of a breakdown as JSON. Very long names are shortened.

    Returns
    -------
    table
        ``columns``, a list of ``{"name", "values"}`` with numbers, strings and None as values, and
        ``rows``, the number of rows of the whole breakdown.
    """
    head = table.take(slice(0, limit))
    columns = [
        {"name": name, "values": [_to_json(value) for value in head.values(name)]}
        for name in head.columns
    ]
    return {"columns": columns, "rows": len(table)}


def query_table(
    table: ResultTable,
    *,
    sort: str | None = None,
    descending: bool = False,
    pattern: str = "",
    limit: int = MAX_ROWS,
) -> dict[str, Any]:
    """Sort and filter a whole breakdown and return its first rows.

    Parameters
    ----------
    table
        A breakdown.
    sort
        Column to sort by. Without such a column the breakdown keeps its order.
    descending
        Sort in descending order. Missing values come last either way.
    pattern
        Keep rows with a text column that contains this text or matches it as a regular expression,
        ignoring case. An invalid regular expression is searched as text only.
    limit
        Maximum number of rows to return.

    Returns
    -------
    table
        See `to_columns`; also ``found``, the number of rows that match the pattern, and ``note``,
        the reason if the pattern was searched as text only, else an empty string.
    """
    result, note = table, ""
    if pattern:
        is_match, note = _match_rows(table, pattern[:_MAX_PATTERN_LENGTH])
        result = table.take(is_match)
    if sort is not None and sort in result:
        result = result.take(_order(result.values(sort), descending=descending))
    return {**to_columns(result, limit), "rows": len(table), "found": len(result), "note": note}


def _order(values: list[Any], *, descending: bool) -> npt.NDArray[np.int64]:
    """Return the rows sorted by value; the sort is stable, and missing values come last."""
    keys = [str(v).lower() if isinstance(v, str | tuple) else v for v in values]
    known = [row for row, key in enumerate(keys) if key is not None and key == key]  # noqa: PLR0124 - NaN
    missing = [row for row, key in enumerate(keys) if key is None or key != key]  # noqa: PLR0124
    known.sort(key=keys.__getitem__, reverse=descending)
    return np.array([*known, *missing], np.int64)


def _match_rows(table: ResultTable, pattern: str) -> tuple[npt.NDArray[np.bool_], str]:
    """Return which rows match `pattern`, and a note; see `query_table`."""
    # Match each distinct text once. A missing value has id -1, which reads the last result.
    texts: dict[str, int] = {}

    def ids_of(values: Iterable[Any]) -> list[int]:
        return [
            -1 if value is None else texts.setdefault(str(value)[:_MAX_TEXT_LENGTH], len(texts))
            for value in values
        ]

    text_ids = []
    for name in table.columns:
        if table.is_text(name):
            names = table.names(name)
            category_ids = np.array([*ids_of(names.categories), -1], np.int64)
            text_ids.append(category_ids[names.codes])
        elif name == "source":
            text_ids.append(np.array(ids_of(table.values(name)), np.int64))
    lowered, note = pattern.lower(), ""
    is_hit = np.array([*(lowered in text.lower() for text in texts), False], np.bool_)
    try:
        is_hit[match_names(list(texts), pattern, ignore_case=True)] = True
    except ValueError as error:
        note = f"{error} Searched as text instead."
    is_match = np.zeros(len(table), np.bool_)
    for ids in text_ids:
        is_match |= is_hit[ids]
    return is_match, note


def _to_json(value: Any) -> str | float | int | None:  # noqa: ANN401 - whatever a table holds
    if isinstance(value, tuple):
        return " \N{MULTIPLICATION SIGN} ".join(map(str, value))
    if value is None:
        return None
    if isinstance(value, bool):  # False is left empty, like 0
        return "yes" if value else None
    if isinstance(value, int | float):
        return value if math.isfinite(value) else None
    return shorten(str(value), _MAX_TEXT_LENGTH)
