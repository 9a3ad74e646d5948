"""Numbers of drawn events by the columns that selections refer to.

A page that merges events counts a selection, such as the matches of a search, by these groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.groups import extend_ranges, group_codes
from epprof_nb.arrays.ids import mask_as_slice
from epprof_nb.data.schema import ACTIVITY_KINDS
from epprof_nb.views.queries.event_fields import PREFIXES
from epprof_nb.views.queries.string_table import StringTable
from epprof_nb.views.queries.window import rows_of_place

if TYPE_CHECKING:
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.views.view_model import ViewModel

MAX_GROUPS = 8_000
"""Maximum number of groups of a table."""
_TEXTS = {
    "op": ("name", "op_type", "category", "provider", "cell"),
    "api": ("name",),
    "act": ("name",),
}
_NUMBERS = {
    "op": ("line", "session", "node_index"),
    "api": (),
    "act": ("device_id", "context_id", "stream_id"),
}
_PLACE = ("cell", "line")


def event_groups(view_model: ViewModel) -> tuple[dict[str, Any], dict[str, IntArray]]:
    """Count the drawn events, grouped by the columns that selections refer to.

    Parameters
    ----------
    view_model
        The profile.

    Returns
    -------
    header
        ``names``, ``short_names``, ``texts`` and ``kinds`` as in
        `epprof_nb.views.queries.window.query_window`, and ``counted``, the prefixes of the tables
        with groups: a table with more than `MAX_GROUPS` has none.
    columns
        Integers by ``<prefix>.<column>``, one value per group; ``members`` is the number of its
        events, ``start`` and ``dur`` their time range, ``act.op`` -1 for activities without an op,
        else 0.
    """
    strings, columns, counted = StringTable(), {}, []
    for prefix, table_name in PREFIXES.items():
        table = view_model.profile.tables[table_name]
        is_drawn = view_model.layout.by_prefix()[prefix].is_drawn
        rows: BoolArray | IntArray | slice = mask_as_slice(is_drawn)
        place = rows
        if prefix == "op" and view_model.op_of_statement:
            rows = drawn = np.flatnonzero(is_drawn)
            place = rows_of_place(view_model, drawn)
        values: dict[str, npt.NDArray[np.integer[Any]]] = {
            name: table.names(name).codes[place if name in _PLACE else rows]
            for name in _TEXTS[prefix]
        }
        values |= {
            name: table[name][place if name in _PLACE else rows] for name in _NUMBERS[prefix]
        }
        if prefix == "act":
            values["kind"] = view_model.index.kinds[rows]
            values["op"] = np.minimum(view_model.index.activity_op[rows], 0)
        groups, first = group_codes(*values.values())
        if len(first) > MAX_GROUPS:
            continue
        counted.append(prefix)
        columns[f"{prefix}.members"] = np.bincount(groups, minlength=len(first))
        begin, end = table["start_ns"][rows], table["end_ns"][rows]
        earliest, latest = begin[first], end[first]
        extend_ranges(earliest, latest, groups, begin, np.maximum(begin, end))
        columns |= {f"{prefix}.start": earliest, f"{prefix}.dur": latest - earliest}
        for name, of_rows in values.items():
            of_groups = of_rows[first].astype(np.int64)
            if name in _TEXTS[prefix]:
                categories = table.names(name).categories
                of_groups = strings.encode(f"{prefix}.{name}", of_groups, categories)
            columns[f"{prefix}.{name}"] = of_groups
    header = {
        "names": list(strings.index), "short_names": strings.short, "texts": strings.columns,
        "kinds": ACTIVITY_KINDS, "counted": counted,
    }  # fmt: skip
    return header, columns
