"""The events that a selection in the viewer refers to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.data.schema import MISSING
from epprof_nb.views.queries.event_fields import PREFIXES
from epprof_nb.views.queries.search import matching_rows
from epprof_nb.views.timeline.with_statements import drawn_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table
    from epprof_nb.views.view_model import ViewModel

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SelectedEvents:
    """The events of a selection, and the related events to highlight with them.

    Attributes
    ----------
    rows
        Selected rows by prefix (see `PREFIXES`); int64, ascending.
    highlighted
        Boolean mask over the rows of each table: the selected events, the events below them and the
        ops above them.
    extent
        Earliest start and latest end of the selected events, ns; None if there are none.
    """

    rows: dict[str, IntArray]
    highlighted: dict[str, Mask]
    extent: tuple[int, int] | None


def select_events(view_model: ViewModel, query: Mapping[str, Any]) -> SelectedEvents:
    """Find the events of a selection.

    Parameters
    ----------
    view_model
        The profile.
    query
        The selection as the viewer sends it, by ``what``:

        ``event``
            One event: ``prefix`` (``op``, ``api`` or ``act``) and ``row``.
        ``where``
            All rows of ``prefix`` whose columns have the values of ``equals``, a mapping from
            column to a value or a list of values; None matches missing.
        ``search``
            All events whose name matches the regular expression ``pattern``.

    Raises
    ------
    ValueError
        If ``what`` is unknown, the profile has no such table, row or column, or the pattern is
        invalid.
    """
    what = query.get("what")
    if what == "event":
        row = checked_row(view_model, query)
        return select_rows(view_model, {_prefix(query): np.array([row])}, launches=True)
    if what == "where":
        prefix = _prefix(query)
        table = view_model.profile.tables[PREFIXES[prefix]]
        rows_where = _rows_where(table, dict(query["equals"]))
        if prefix == "op":
            rows_where = drawn_rows(rows_where, view_model.op_of_statement)
        return select_rows(view_model, {prefix: rows_where})
    if what == "search":
        rows = matching_rows(view_model, str(query["pattern"]))
        return select_rows(view_model, rows, related=False)
    raise ValueError(f"there is no selection by {what!r}")


def select_rows(
    view_model: ViewModel,
    rows: Mapping[str, IntArray],
    *,
    related: bool = True,
    launches: bool = False,
) -> SelectedEvents:
    """Select table rows.

    Parameters
    ----------
    view_model
        The profile.
    rows
        Rows by prefix, ascending.
    related
        Also highlight the ops above API calls and activities, and everything below ops: their
        descendants, and the API calls and activities of these.
    launches
        Also highlight the API calls of activities, and the activities of API calls.
    """
    tables, index = view_model.profile.tables, view_model.index
    highlighted = {
        prefix: np.zeros(len(tables[name]), np.bool_) for prefix, name in PREFIXES.items()
    }
    for prefix, rows_of in rows.items():
        highlighted[prefix][rows_of] = True
    if related and len(rows.get("op", ())):
        tree = index.tree
        # A subtree is a range in preorder: an op is inside if more ranges have begun than ended.
        edges = np.zeros(len(tree) + 1, np.int64)
        np.add.at(edges, tree.preorder_begin[rows["op"]], 1)
        np.add.at(edges, tree.preorder_end[rows["op"]], -1)
        highlighted["op"] |= (np.cumsum(edges)[:-1] > 0)[tree.preorder_begin]
        is_inside = np.append(highlighted["op"], np.False_)
        highlighted["api"] |= is_inside[index.call_op]
        highlighted["act"] |= is_inside[index.activity_op]
    if launches:
        _highlight_launches(view_model, rows, highlighted)
    for prefix in ("api", "act") if related else ():
        if prefix in rows:
            op_ids = tables[PREFIXES[prefix]]["op_id"][rows[prefix]]
            _highlight_ancestors(index.tree.parent, index.tree.rows(op_ids), highlighted["op"])
    return SelectedEvents(dict(rows), highlighted, _extent(view_model, rows))


def checked_row(view_model: ViewModel, query: Mapping[str, Any]) -> int:
    """Return the ``row`` of a query.

    Raises
    ------
    ValueError
        If there is no table for its ``prefix``, or no such row.
    """
    name = PREFIXES[_prefix(query)]
    row = int(query["row"])
    if not 0 <= row < len(view_model.profile.tables[name]):
        raise ValueError(f"table {name} has no row {row}")
    return row


def _prefix(query: Mapping[str, Any]) -> str:
    prefix = str(query.get("prefix"))
    if prefix not in PREFIXES:
        raise ValueError(f"the viewer has no table {prefix!r}")
    return prefix


def _rows_where(table: Table, equals: dict[str, Any]) -> IntArray:
    is_match = np.ones(len(table), np.bool_)
    for column, value in equals.items():
        if column not in table.schema.names:
            raise ValueError(f"table {table.schema.name} has no column {column!r}")
        values = value if isinstance(value, list) else [value]
        if table.schema.column(column).kind in ("name", "args"):
            names = table.names(column)
            # Code -1, a missing name, reads the last value.
            allowed = np.array([name in values for name in (*names.categories, None)], np.bool_)
            is_match &= allowed[names.codes]
        else:
            numbers = [MISSING if v is None else int(v) for v in values]
            is_match &= np.isin(table[column], numbers)
    return np.flatnonzero(is_match)


def _highlight_launches(
    view_model: ViewModel, rows: Mapping[str, IntArray], highlighted: dict[str, Mask]
) -> None:
    """Highlight events that share a correlation id with the API calls and activities of `rows`."""
    tables = view_model.profile.tables
    correlation_ids = [
        tables[PREFIXES[prefix]]["correlation_id"][rows[prefix]]
        for prefix in ("api", "act")
        if prefix in rows
    ]
    ids = np.unique(np.concatenate([np.empty(0, np.int64), *correlation_ids]))
    ids = ids[ids != MISSING]
    if not len(ids):
        return
    for prefix in ("api", "act"):
        highlighted[prefix] |= np.isin(tables[PREFIXES[prefix]]["correlation_id"], ids)


def _highlight_ancestors(
    parent: IntArray, ops: npt.NDArray[np.integer[Any]], highlighted: Mask
) -> None:
    """Highlight ops, given as rows or `MISSING`, and all their ancestors."""
    seen = np.zeros(len(parent), np.bool_)
    seen[ops[ops >= 0]] = True
    new = np.flatnonzero(seen)
    while len(new):
        highlighted[new] = seen[new] = True
        above = parent[new]
        new = np.unique(above[above >= 0])
        new = new[~seen[new]]


def _extent(view_model: ViewModel, rows: Mapping[str, IntArray]) -> tuple[int, int] | None:
    extents = []
    for prefix, rows_of in rows.items():
        table = view_model.profile.tables[PREFIXES[prefix]]
        start = table["start_ns"][rows_of]
        if len(rows_of):
            end = np.maximum(table["end_ns"][rows_of], start)
            extents.append((int(start.min()), int(end.max())))
    return (min(a for a, _ in extents), max(b for _, b in extents)) if extents else None
