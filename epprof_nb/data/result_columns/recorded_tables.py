"""Recorded tables, which `epprof_nb.data.schema` describes, and the columns added to them."""

from __future__ import annotations

from dataclasses import replace

from epprof_nb.data import schema
from epprof_nb.data.result_columns.description import TableDoc, column, of_schema

_RECORDED = {table.name: of_schema(table) for table in schema.TABLES}

_PLACE_OF_SAMPLE = (
    column("function", "category", "function of the innermost line of your code"),
    column("file", "category", "its file, or its cell, as In[3]"),
    column("line", "Int64", "that line; of a statement, its first"),
)
_SAMPLES = _RECORDED[schema.HOST_SAMPLES.name]

RECORDS: dict[str, TableDoc] = {
    **_RECORDED,
    schema.HOST_SAMPLES.name: replace(_SAMPLES, columns=_SAMPLES.columns + _PLACE_OF_SAMPLE),
    "joined": TableDoc(
        "prof.joined()",
        "One row per activity: the columns of `prof.activities`, then columns of its op, its "
        "nearest named range and its API call.",
        (
            *_RECORDED[schema.ACTIVITIES.name].columns,
            column("op_name", "category", "name of the op"),
            column("op_type", "category", "type of the op, as in `ops`"),
            column("op_category", "category", "category of the op, as in `ops`"),
            column(
                "cell", "category",
                "cell or file of the innermost line of your code in its Python stack; without one, "
                "cell of the innermost statement that contains the op",
            ),
            column("line", "Int64", "that line; of a statement, its first"),
            column("function", "category", "function of that line; missing without a stack"),
            column(
                "caller_cell", "category",
                "cell of the line of the profiled cell that called it, or file of the outermost "
                "line of your code; the same as `cell` without a stack",
            ),
            column("caller_line", "Int64", "that line"),
            column("range_id", "Int64", "op id of the nearest named range: the op or an ancestor"),
            column("range_name", "category", "name of that range"),
            column("arg_<name>", "by value", "argument of that range, one column for each"),
            column("module", "category", "path of the module, in its forward or backward pass"),
            column("step", "Int64", "step that launched it, as in `by_step`"),
            column("api_name", "category", "API call that launched it; missing if not recorded"),
            column("api_start_ns", "Int64", "start of the call, since the profile's start"),
            column("api_duration_ns", "Int64", "duration of the call"),
            column(
                "launch_delay_ns", "Int64",
                "time from the start of the call to the start of the activity, at least 0; missing "
                "for waits",
            ),
        ),
    ),
}  # fmt: skip
"""Recorded tables by name, and their join."""
