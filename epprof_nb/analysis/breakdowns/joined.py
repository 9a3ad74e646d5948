"""joined: each activity with its op, its named range and arguments, its API call and its delay."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.attribution import attributed_op_rows
from epprof_nb.analysis.base.lines_of_work import callers_at, lines_at
from epprof_nb.analysis.base.result_table import (
    OptionalColumn,
    argument_column,
    names_at,
    optional,
    to_series,
)
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.frameworks.training_phases import modules
from epprof_nb.analysis.steps.by_step import activity_steps
from epprof_nb.arrays.ids import values_at
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.op_args import argument_names, arguments

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import Column
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData

MAX_ARGUMENTS = 50
"""Maximum number of argument columns if the user names none, as a hostile file has many."""


def joined_frame(
    index: ProfileIndex, *, args: Iterable[str] | None = None, attribution: Attribution = "launch"
) -> pd.DataFrame:
    """Return the DataFrame of `Profile.joined`."""
    profile = index.profile
    ops, activities = profile.tables["ops"], profile.tables["activities"]
    calls, tree = profile.tables["api_calls"], index.tree
    op = attributed_op_rows(activities, tree, attribution)
    is_range = ops.names("op_type").equals("range")
    is_range &= ~ops.names("source").equals("onnxruntime")
    nearest = values_at(tree.nearest_ancestor(is_range), op)
    lines = index.cached(StackLines)
    stack = lines.of_activities(attribution)
    cell, line = lines_at(index, stack, op)
    caller_cell, caller_line = callers_at(index, stack, op)
    call = index.calls.rows(activities["correlation_id"])
    delays, is_known = index.delays
    delay = np.where(is_known & index.is_device_work, delays, MISSING)
    columns: dict[str, Column] = {
        "op_name": names_at(ops.names("name"), op),
        "op_type": names_at(ops.names("op_type"), op),
        "op_category": names_at(ops.names("category"), op),
        "cell": cell,
        "line": optional(line),
        "function": names_at(lines.function, lines.own[stack]),
        "caller_cell": caller_cell,
        "caller_line": optional(caller_line),
        "range_id": optional(values_at(ops["op_id"], nearest)),
        "range_name": names_at(ops.names("name"), nearest),
        **_arguments(profile, nearest, args),
        "module": names_at(ops.names("name"), values_at(index.cached(modules), op)),
        "step": optional(index.cached(activity_steps)),
        "api_name": names_at(calls.names("name"), call),
        "api_start_ns": _times_at(calls["start_ns"], call),
        "api_duration_ns": _times_at(calls["duration_ns"], call),
        "launch_delay_ns": optional(delay),
    }
    if attribution == "capture":
        activities = activities.replace(op_id=values_at(ops["op_id"], op))
    frame = activities.to_frame()
    for name, values in columns.items():
        frame[name] = to_series(values, frame.index)
    return frame


def _times_at(times: IntArray, rows: IntArray) -> OptionalColumn:
    """Return the times at `rows`, dtype Int64; a time may have the value of `MISSING`."""
    return OptionalColumn(values_at(times, rows), rows < 0)


def _arguments(
    profile: ProfileData, ranges: IntArray, wanted: Iterable[str] | None
) -> dict[str, Column]:
    """Return one column for each argument of the ranges at rows `ranges`."""
    texts = profile.tables["ops"].names("args")
    if wanted is None:
        wanted = argument_names(texts, ranges)
        if len(wanted) > MAX_ARGUMENTS:
            warnings.warn(
                f"The ranges have {len(wanted):,} different arguments; the first {MAX_ARGUMENTS} "
                "became columns. Name the ones you need: prof.joined(args=[...]).",
                stacklevel=4,
            )
            wanted = wanted[:MAX_ARGUMENTS]
    return {f"arg_{a.name}": argument_column(a) for a in arguments(texts, ranges, wanted)}
