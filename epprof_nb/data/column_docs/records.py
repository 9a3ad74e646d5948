"""Columns of the tables of records, and of their join."""

from __future__ import annotations

from epprof_nb.data import schema
from epprof_nb.data.column_docs.description import TableDoc, column, of_schema

RECORDS: dict[str, TableDoc] = {
    "ops": TableDoc("prof.ops", "One row per op.", of_schema(schema.OPS)),
    "activities": TableDoc(
        "prof.activities", "One row per activity of a device.", of_schema(schema.ACTIVITIES)
    ),
    "api_calls": TableDoc("prof.api_calls", "One row per API call.", of_schema(schema.API_CALLS)),
    "graphs": TableDoc(
        "prof.graphs",
        "One row per CUDA graph that was launched, or captured by a session with kernels in "
        "Python.", of_schema(schema.GRAPHS)
    ),
    "memory": TableDoc(
        "prof.memory", "One row per allocation or release (`--detail memory`).",
        of_schema(schema.MEMORY),
    ),
    "overhead": TableDoc(
        "prof.overhead", "One row per interval of CUPTI's overhead (`--detail overhead`).",
        of_schema(schema.OVERHEAD),
    ),
    "stacks": TableDoc(
        "prof.stacks",
        "One row per Python stack in which work was launched, and per stack that called one: its "
        "innermost frame, after the row of the stack that called it. Frames of IPython, of "
        "Python's start and of epprof_nb are left out.",
        of_schema(schema.STACKS),
    ),
    "host_samples": TableDoc(
        "prof.host_samples",
        "One row per sample of a thread that launches or runs the cell, while it was in no "
        "recorded API call and had made none for 0.5 ms: about 100 times a second, and more often "
        "at first.",
        (
            *of_schema(schema.HOST_SAMPLES),
            column("function", "category", "function of the innermost line of your code"),
            column("file", "category", "its file, or its cell, as In[3]"),
            column("line", "Int64", "that line; of a statement, its first"),
        ),
    ),
    "joined": TableDoc(
        "prof.joined()",
        "One row per activity: the columns of `prof.activities`, then columns of its op, its "
        "nearest named range and its API call.",
        (
            *of_schema(schema.ACTIVITIES),
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
"""Tables of records by name."""
