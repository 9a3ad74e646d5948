"""The fields of one event, for the details pane of the viewer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from epprof_nb.analysis.base.stack_lines import launching_lines
from epprof_nb.data.table import FILL
from epprof_nb.util.format import shorten

if TYPE_CHECKING:
    from epprof_nb.views.view_model import ViewModel

PREFIXES = {"op": "ops", "api": "api_calls", "act": "activities"}
"""Names of the tables on the timeline by the prefix that the viewer uses for them."""

_MAX_LENGTH = 10_000
_MAX_SAFE_INTEGER = 2**53


def event_fields(view_model: ViewModel, prefix: str, row: int) -> dict[str, Any]:
    """Return the fields of an event that have a value, as numbers, booleans and strings by column.

    Integers that a JavaScript number cannot represent are returned as strings.

    Raises
    ------
    KeyError
        If the prefix is not in `PREFIXES`.
    IndexError
        If the table has no such row.
    """
    table = view_model.profile.tables[PREFIXES[prefix]]
    if not 0 <= row < len(table):
        raise IndexError(f"{PREFIXES[prefix]} has no row {row}: it has {len(table)}")
    fields: dict[str, Any] = {}
    if prefix != "op" and not table.is_absent("stack_id"):
        (line,) = (
            view_model.index.cached(launching_lines)
            .take(table["stack_id"][row : row + 1])
            .to_list()
        )
        if line is not None:
            fields["launched_at"] = shorten(line, _MAX_LENGTH)
    for column in table.schema.columns:
        if column.kind in ("name", "args"):
            names = table.names(column.name)
            code = int(names.codes[row])
            if code >= 0:
                fields[column.name] = shorten(names.categories[code], _MAX_LENGTH)
        elif column.kind == "bool":
            fields[column.name] = bool(table[column.name][row])
        else:
            value = int(table[column.name][row])
            if column.kind not in ("id", "row", "delta") or value != FILL[column.kind]:
                fields[column.name] = value if abs(value) <= _MAX_SAFE_INTEGER else str(value)
    return fields
