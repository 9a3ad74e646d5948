"""Every field of one event, for the viewer's details."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb.data.schema import MISSING
from epprof_nb.util.format import shorten

if TYPE_CHECKING:
    from epprof_nb.views.view_model import ViewModel

PREFIXES = {"op": "ops", "api": "api_calls", "act": "activities"}
"""The viewer's short names of the tables that it draws."""

_CHARACTERS = 10_000
_SAFE = 2**53


def describe(prepared: ViewModel, prefix: str, row: int) -> dict[str, Any]:
    """Return the fields of a row that say anything: column to number or text.

    Integers that a double does not hold become text.

    Raises
    ------
    KeyError
        For a prefix that is not in `PREFIXES`.
    IndexError
        For a row that the table does not have.
    """
    table = prepared.profile.tables[PREFIXES[prefix]]
    if not 0 <= row < len(table):
        raise IndexError(f"{PREFIXES[prefix]} has no row {row}: it has {len(table)}")
    fields: dict[str, Any] = {}
    for column in table.schema.columns:
        if column.kind in ("name", "args"):
            names = table.names(column.name)
            code = int(names.codes[row])
            if code >= 0:
                fields[column.name] = shorten(names.categories[code], _CHARACTERS)
        elif column.kind == "bool":
            fields[column.name] = bool(table[column.name][row])
        else:
            value = int(table[column.name][row])
            if column.kind != "id" or value != MISSING:
                fields[column.name] = value if abs(value) <= _SAFE else str(value)
    return fields
