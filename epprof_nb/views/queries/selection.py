"""Which events a selection of the viewer means: one answer for a window, a table and Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.data.schema import MISSING
from epprof_nb.views.queries.event_fields import PREFIXES
from epprof_nb.views.queries.search import matching

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.data.table import Table
    from epprof_nb.views.view_model import ViewModel

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Selected:
    """The rows that a selection names, and all that belongs to them.

    Attributes
    ----------
    rows
        Table (as in `PREFIXES`) to the rows that were asked for, int64, ascending.
    lit
        Table to a bool array, one value a row of the table: what lights up. The rows, what ran
        under them, and the ops above them.
    extent
        First and last nanosecond of the rows; None where there are none.
    """

    rows: dict[str, Ints]
    lit: dict[str, Mask]
    extent: tuple[int, int] | None

    @property
    def count(self) -> int:
        """How many rows were asked for."""
        return sum(len(rows) for rows in self.rows.values())


def select(prepared: ViewModel, wanted: Mapping[str, Any]) -> Selected:
    """Find the events that a selection means.

    Parameters
    ----------
    prepared
        The profile.
    wanted
        What the viewer asks for, by ``what``:

        ``event``
            One row: ``prefix`` (``op``, ``api`` or ``act``) and ``row``.
        ``where``
            All rows of ``prefix`` whose columns have the values of ``equals``: column to a
            value, or to a list of those allowed; None is missing.
        ``search``
            All rows of all tables whose name matches the regular expression ``pattern``.

    Returns
    -------
    selected
        The rows, and what belongs to them.

    Raises
    ------
    ValueError
        For another ``what``, a table, row or column that the profile does not have, or a
        pattern that cannot be searched for.
    """
    what = wanted.get("what")
    if what == "event":
        row = event_row(prepared, wanted)
        return of_rows(prepared, {_prefix(wanted): np.array([row])}, launches=True)
    if what == "where":
        prefix = _prefix(wanted)
        table = prepared.profile.tables[PREFIXES[prefix]]
        return of_rows(prepared, {prefix: _where(table, dict(wanted["equals"]))})
    if what == "search":
        found = matching(prepared, str(wanted["pattern"]))
        return of_rows(prepared, found, related=False)
    raise ValueError(f"there is no selection by {what!r}")


def of_rows(
    prepared: ViewModel,
    rows: Mapping[str, Ints],
    *,
    related: bool = True,
    launches: bool = False,
) -> Selected:
    """Return the selection of `rows` of the tables.

    Parameters
    ----------
    prepared
        The profile.
    rows
        Table to rows, ascending.
    related
        Light the ops above API calls and activities too, and what ran under ops: the ops below
        them, their API calls and activities.
    launches
        Light the API calls of activities too, and the activities of API calls.
    """
    tables, index = prepared.profile.tables, prepared.index
    lit = {prefix: np.zeros(len(tables[name]), np.bool_) for prefix, name in PREFIXES.items()}
    for prefix, mine in rows.items():
        lit[prefix][mine] = True
    if related and len(rows.get("op", ())):
        tree = index.tree
        # In preorder a subtree is a range: it is inside wherever more ranges opened than closed.
        edges = np.zeros(len(tree) + 1, np.int64)
        np.add.at(edges, tree.preorder_begin[rows["op"]], 1)
        np.add.at(edges, tree.preorder_end[rows["op"]], -1)
        lit["op"] |= (np.cumsum(edges)[:-1] > 0)[tree.preorder_begin]
        inside = np.append(lit["op"], np.False_)
        lit["api"] |= inside[index.call_op]
        lit["act"] |= inside[index.activity_op]
    if launches:
        _light_launches(prepared, rows, lit)
    for prefix in ("api", "act") if related else ():
        if prefix in rows:
            op_ids = tables[PREFIXES[prefix]]["op_id"][rows[prefix]]
            _light_above(index.tree.parent, index.tree.rows(op_ids), lit["op"])
    return Selected(dict(rows), lit, _extent(prepared, rows))


_NONE: Ints = np.empty(0, np.int64)


def event_row(prepared: ViewModel, wanted: Mapping[str, Any]) -> int:
    """Return the row of ``prefix`` and ``row``; ValueError where the profile has none such."""
    name = PREFIXES[_prefix(wanted)]
    row = int(wanted["row"])
    if not 0 <= row < len(prepared.profile.tables[name]):
        raise ValueError(f"table {name} has no row {row}")
    return row


def _prefix(wanted: Mapping[str, Any]) -> str:
    prefix = str(wanted.get("prefix"))
    if prefix not in PREFIXES:
        raise ValueError(f"the viewer has no table {prefix!r}")
    return prefix


def _where(table: Table, equals: dict[str, Any]) -> Ints:
    inside = np.ones(len(table), np.bool_)
    for column, wanted in equals.items():
        if column not in table.schema.names:
            raise ValueError(f"table {table.schema.name} has no column {column!r}")
        values = wanted if isinstance(wanted, list) else [wanted]
        if table.schema.column(column).kind in ("name", "args"):
            names = table.names(column)
            # Code -1, a missing name, is the last place.
            allowed = np.array([name in values for name in (*names.categories, None)], np.bool_)
            inside &= allowed[names.codes]
        else:
            numbers = [MISSING if value is None else int(value) for value in values]
            inside &= np.isin(table[column], numbers)
    return np.flatnonzero(inside)


def _light_launches(prepared: ViewModel, rows: Mapping[str, Ints], lit: dict[str, Mask]) -> None:
    """Light what shares a correlation id with the API calls and activities of `rows`."""
    tables = prepared.profile.tables
    given = [
        tables[PREFIXES[prefix]]["correlation_id"][rows[prefix]]
        for prefix in ("api", "act")
        if prefix in rows
    ]
    ids = np.unique(np.concatenate(given)) if given else _NONE
    ids = ids[ids != MISSING]
    if not len(ids):
        return
    for prefix in ("api", "act"):
        lit[prefix] |= np.isin(tables[PREFIXES[prefix]]["correlation_id"], ids)


def _light_above(parent: Ints, ops: npt.NDArray[np.integer[Any]], lit: Mask) -> None:
    """Light the ops of `ops` (rows, `MISSING` for none) and all above them."""
    seen = np.zeros(len(parent), np.bool_)
    seen[ops[ops >= 0]] = True
    fresh = np.flatnonzero(seen)
    while len(fresh):
        lit[fresh] = seen[fresh] = True
        above = parent[fresh]
        fresh = np.unique(above[above >= 0])
        fresh = fresh[~seen[fresh]]


def _extent(prepared: ViewModel, rows: Mapping[str, Ints]) -> tuple[int, int] | None:
    found = []
    for prefix, mine in rows.items():
        table = prepared.profile.tables[PREFIXES[prefix]]
        start = table["start_ns"][mine]
        if len(mine):
            end = np.maximum(table["end_ns"][mine], start)
            found.append((int(start.min()), int(end.max())))
    return (min(a for a, _ in found), max(b for _, b in found)) if found else None
