"""Rows of a profile's tables, found from a DataFrame that was made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from epprof_nb.data.schema import MISSING
from epprof_nb.views.queries.event_fields import PREFIXES

if TYPE_CHECKING:
    from epprof_nb.data.names import CategoryColumn
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.data.table import Table

Ints = npt.NDArray[np.int64]

_TELLING: dict[str, frozenset[str]] = {
    "op": frozenset({"parent_op_id", "op_type", "suspended_ns"}),
    "act": frozenset({"kind", "stream_id", "attribution", "device_id"}),
    "api": frozenset({"domain", "return_value", "captured"}),
}
"""Columns that only one of the tables has."""
_HOW = (
    "Pass rows of prof.ops, prof.activities or prof.api_calls as they come from filtering or "
    'sorting, as prof.activities[prof.activities["name"].str.contains("gemm")]; '
    "their index must be kept, and start_ns with a column of that table alone."
)


def rows_of_frame(profile: ProfileData, frame: pd.DataFrame) -> tuple[str, Ints]:
    """Return which rows of which table of `profile` a DataFrame holds.

    Parameters
    ----------
    profile
        The profile.
    frame
        Rows of `Profile.ops`, `Profile.activities` or `Profile.api_calls`, filtered or sorted as
        you like. The index tells which rows they are: ``op_id`` for ops (or a column of that
        name), the row's number for the others. More columns do no harm.

    Returns
    -------
    prefix
        ``op``, ``act`` or ``api``.
    rows
        int64, ascending, each once.

    Raises
    ------
    TypeError
        If `frame` is no DataFrame.
    ValueError
        If its rows are not rows of this profile; the message says what to pass.
    """
    if isinstance(frame, pd.Series):
        raise TypeError("select takes a DataFrame, not a Series: for one row pass frame.loc[[i]].")
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"select takes a DataFrame, not {type(frame).__name__}. {_HOW}")
    prefix = _table_of(frame)
    table = profile.tables[PREFIXES[prefix]]
    rows = _op_rows(frame, table) if prefix == "op" else _numbered_rows(frame, table)
    _prove(frame, table, rows)
    return prefix, np.unique(rows)


def _table_of(frame: pd.DataFrame) -> str:
    columns = set(map(str, frame.columns))
    # Where frames were joined, the table whose columns they started with is the rows' own.
    for name in map(str, frame.columns):
        for prefix, telling in _TELLING.items():
            if name in telling:
                return prefix
    if frame.index.name == "op_id":
        return "op"
    known = ", ".join(sorted(columns)[:8]) or "none"
    raise ValueError(f"These rows are of no table with a place in time (columns: {known}). {_HOW}")


def _op_rows(frame: pd.DataFrame, table: Table) -> Ints:
    from epprof_nb.arrays.ids import IdIndex

    if frame.index.name == "op_id":
        ids = _integers(frame.index)
    elif "op_id" in frame.columns:
        ids = _integers(pd.Index(frame["op_id"]))
    else:
        raise ValueError(f"These ops have lost their op_id, which was their index. {_HOW}")
    rows = IdIndex(table["op_id"]).rows(ids)
    if (rows == MISSING).any():
        missing = int((rows == MISSING).sum())
        raise ValueError(f"{missing:,} of these ops are not in this profile. {_HOW}")
    return rows


def _numbered_rows(frame: pd.DataFrame, table: Table) -> Ints:
    rows = _integers(frame.index)
    if len(rows) and (rows.min() < 0 or rows.max() >= len(table)):
        raise ValueError(
            f"The index of these rows reaches beyond the {len(table):,} {table.schema.name} of "
            f"this profile: they are of another one. {_HOW}"
        )
    return rows


def _integers(index: pd.Index) -> Ints:
    if not pd.api.types.is_integer_dtype(index.dtype) or index.hasnans:
        raise ValueError(f"The index of these rows holds no row numbers. {_HOW}")
    return cast("Ints", index.to_numpy(np.int64))


def _prove(frame: pd.DataFrame, table: Table, rows: Ints) -> None:
    """Compare the rows' own times with the profile's: an index alone fits any profile."""
    if not len(rows):
        return
    compared = [name for name in ("start_ns", "end_ns") if name in frame.columns]
    if not compared:
        raise ValueError(f"Without start_ns these rows cannot be told from others'. {_HOW}")
    for name in compared:
        if not np.array_equal(np.asarray(frame[name], np.int64), table[name][rows]):
            raise ValueError(
                f"The {name} of these rows is not that of the {table.schema.name} with their "
                f"index: the index was made anew, or they are of another profile. {_HOW}"
            )
    if "name" in frame.columns:
        given = frame["name"].astype(object).to_numpy()
        names: CategoryColumn = table.names("name")
        own = np.array([*names.categories, None], object)[names.codes[rows]]
        if not np.array_equal(given[~pd.isna(given)], own[~pd.isna(given)]):
            raise ValueError(f"The names of these rows are those of another profile. {_HOW}")
