"""Maps rows of a DataFrame back to the rows of the profile's tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd

from epprof_nb.data.schema import MISSING
from epprof_nb.views.queries.event_fields import PREFIXES

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.names import CategoryColumn
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.data.table import Table


_OWN_COLUMNS: dict[str, frozenset[str]] = {
    "op": frozenset({"parent_op_id", "op_type", "suspended_ns"}),
    "act": frozenset({"kind", "stream_id", "attribution", "device_id"}),
    "api": frozenset({"domain", "return_value", "captured"}),
}
"""Columns that identify a table, since no other table has them."""
_HOW_TO_FIX = (
    "Pass rows of prof.ops, prof.activities or prof.api_calls, filtered or sorted, such as "
    'prof.activities[prof.activities["name"].str.contains("gemm")]. Keep their index, start_ns and '
    "a column that only this table has."
)


def rows_of_frame(profile: ProfileData, frame: pd.DataFrame) -> tuple[str, IntArray]:
    """Return the table and the row numbers of the rows of a DataFrame.

    Parameters
    ----------
    profile
        The profile.
    frame
        Rows of `Profile.ops`, `Profile.activities` or `Profile.api_calls`, filtered or sorted. The
        index identifies the rows: ``op_id`` for ops (a column of that name works too), the row
        number for the other tables. Extra columns are ignored.

    Returns
    -------
    prefix
        ``op``, ``act`` or ``api``.
    rows
        Row numbers, int64, ascending and unique.

    Raises
    ------
    TypeError
        If `frame` is not a DataFrame.
    ValueError
        If the rows are not rows of this profile. The message says what to pass instead.
    """
    if isinstance(frame, pd.Series):
        raise TypeError(
            "select expects a DataFrame, not a Series. For one row, pass frame.loc[[i]]."
        )
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"select expects a DataFrame, not {type(frame).__name__}. {_HOW_TO_FIX}")
    prefix = _table_of(frame)
    table = profile.tables[PREFIXES[prefix]]
    rows = _op_rows(frame, table) if prefix == "op" else _numbered_rows(frame, table)
    _verify(frame, table, rows)
    return prefix, np.unique(rows)


def _table_of(frame: pd.DataFrame) -> str:
    columns = set(map(str, frame.columns))
    # A joined frame belongs to the table whose columns come first.
    for name in map(str, frame.columns):
        for prefix, own_columns in _OWN_COLUMNS.items():
            if name in own_columns:
                return prefix
    if frame.index.name == "op_id":
        return "op"
    known = ", ".join(sorted(columns)[:8]) or "none"
    raise ValueError(
        f"These rows belong to no table on the timeline (columns: {known}). {_HOW_TO_FIX}"
    )


def _op_rows(frame: pd.DataFrame, table: Table) -> IntArray:
    from epprof_nb.arrays.ids import IdIndex

    if frame.index.name == "op_id":
        ids = _integers(frame.index)
    elif "op_id" in frame.columns:
        ids = _integers(pd.Index(frame["op_id"]))
    else:
        raise ValueError(f"These ops have no op_id, neither as index nor as column. {_HOW_TO_FIX}")
    rows = IdIndex(table["op_id"]).rows(ids)
    if (rows == MISSING).any():
        missing = int((rows == MISSING).sum())
        raise ValueError(f"{missing:,} of these ops are not in this profile. {_HOW_TO_FIX}")
    return rows


def _numbered_rows(frame: pd.DataFrame, table: Table) -> IntArray:
    rows = _integers(frame.index)
    if len(rows) and (rows.min() < 0 or rows.max() >= len(table)):
        raise ValueError(
            f"The index of these rows exceeds the {len(table):,} {table.schema.name} of this "
            f"profile: the rows belong to another profile. {_HOW_TO_FIX}"
        )
    return rows


def _integers(index: pd.Index) -> IntArray:
    if not pd.api.types.is_integer_dtype(index.dtype) or index.hasnans:
        raise ValueError(f"The index of these rows does not contain row numbers. {_HOW_TO_FIX}")
    return cast("IntArray", index.to_numpy(np.int64))


def _verify(frame: pd.DataFrame, table: Table, rows: IntArray) -> None:
    """Check that times and names match the table: an index alone would fit any profile."""
    if not len(rows):
        return
    compared = [name for name in ("start_ns", "end_ns") if name in frame.columns]
    if not compared:
        raise ValueError(f"Without start_ns these rows cannot be verified. {_HOW_TO_FIX}")
    for name in compared:
        if not np.array_equal(np.asarray(frame[name], np.int64), table[name][rows]):
            raise ValueError(
                f"The {name} of these rows differs from the {table.schema.name} with the "
                f"same index: the index was reset, or the rows belong to another profile. "
                f"{_HOW_TO_FIX}"
            )
    if "name" in frame.columns:
        in_frame = frame["name"].astype(object).to_numpy()
        names: CategoryColumn = table.names("name")
        in_table = np.array([*names.categories, None], object)[names.codes[rows]]
        if not np.array_equal(in_frame[~pd.isna(in_frame)], in_table[~pd.isna(in_frame)]):
            raise ValueError(f"The names of these rows belong to another profile. {_HOW_TO_FIX}")
