"""by_op and by_line: device and host time by op, and by line of the profiled cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.dataframe import ResultTable, categorical, objects, optional
from epprof_nb.analysis.index import ProfileIndex
from epprof_nb.analysis.measures import MeasureColumns
from epprof_nb.analysis.op_totals import Totals, totals
from epprof_nb.analysis.source_lines import line_text, split_lines
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import pandas as pd

    from epprof_nb.analysis.attribution import Attribution
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData

NO_OP = "(no op)"
"""Name of the row of activities without an op."""
NO_LINE = "(no line)"
"""Source of the row of activities without a statement."""


def by_op(
    profile: ProfileData, *, attribution: Attribution = "launch", index: ProfileIndex | None = None
) -> pd.DataFrame:
    """Return the device and host time of each op name.

    Parameters
    ----------
    profile
        The profile.
    attribution
        Op to which an activity is attributed: ``"launch"`` is the op that launched it,
        ``"capture"`` the op that captured it in a CUDA graph, if there is one.
    index
        Index of the profile; a new one if None.

    Returns
    -------
    frame
        One row per name, op type and, for statements, cell and line, by descending device time.
        A last row ``"(no op)"`` holds activities without an op, if there are any, so
        `self_device_ns` always adds up to the device time of the profile.

        =================  ========  ==========================================================
        name               category  the op's name
        op_type            category  cell, line, range, or an ONNX operator
        cell, line         category, place of the statement; missing for other ops
                           Int64
        count              int64     executions
        device_ns          int64     device time of the op and all ops below it
        self_device_ns     int64     device time of what the op launched itself
        share              float64   `device_ns` as a fraction of all device time
        kernels, memcpys,  int64     activities of the op and all ops below it
        memsets
        bytes              int64     bytes that these copied and set
        bandwidth          float64   bytes per second of the copies; NaN if there are none
        launch_delay_ns    Int64     mean time from a kernel's API call to its start; missing
                                     if no call was recorded
        mean_device_ns,    int64     device time per execution, with all ops below; the
        p95_device_ns                percentile is a time that occurred
        host_ns            int64     host time of the op and all ops below it
        self_host_ns       int64     host time without the ops below it on its thread
        mean_ns, p95_ns    int64     host time per execution
        =================  ========  ==========================================================

        Device times are sums over activities: they exceed the wall time where activities
        overlap. An op below one of the same row is not counted twice. If one row of ``prof.ops``
        stands for several executions, each counts as their mean.

    Raises
    ------
    ValueError
        If `attribution` is unknown.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> frame = by_op(synthetic_profile(activities=100))
    >>> frame[["name", "kernels"]].head(2)
                       name  kernels
    0                 In[3]       97
    1  for x, y in batches:       97
    """
    return op_table(index or ProfileIndex(profile), attribution=attribution).to_frame()


def op_table(index: ProfileIndex, *, attribution: Attribution = "launch") -> ResultTable:
    """Return the columns of `by_op`."""
    profile = index.profile
    ops = profile.tables["ops"]
    names, types, cells = ops.names("name"), ops.names("op_type"), ops.names("cell")
    groups, first = group_codes(names.codes, types.codes, cells.codes, ops["line"])
    sums = totals(index, groups, np.arange(len(ops)), attribution=attribution)
    order = sums.longest_first()
    rows, last = first[order], int(sums.has_unattributed)
    return ResultTable(
        {
            "name": categorical([*names.take(rows).to_list(), *[NO_OP] * last]),
            "op_type": categorical([*types.take(rows).to_list(), *[None] * last]),
            "cell": categorical([*cells.take(rows).to_list(), *[None] * last]),
            "line": optional([*ops["line"][rows], *[MISSING] * last]),
            **_columns(profile, groups, sums, order),
        }
    )


def by_line(
    profile: ProfileData, *, attribution: Attribution = "launch", index: ProfileIndex | None = None
) -> pd.DataFrame:
    """Return the device and host time of each statement of the profiled cells.

    Parameters
    ----------
    profile, attribution, index
        See `by_op`.

    Returns
    -------
    frame
        One row per cell and line that ran, in the order of the source. The columns are those of
        `by_op` without `memsets`; in place of the name is the `source` (object) of the line.
        `device_ns` and `host_ns` include all that the statement ran; `self_device_ns` and
        `self_host_ns` exclude nested statements, which have rows of their own, but include the
        ranges and library ops that the statement ran. A last row ``"(no line)"`` holds
        activities without a statement, if there are any, so `self_device_ns` always adds up to
        the device time of the profile.

    Raises
    ------
    ValueError
        If `attribution` is unknown.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> by_line(synthetic_profile(activities=100))[["line", "source"]].head(2)
       line                                          source
    0     1  model, optimizer = build(layers=4, width=1024)
    1     2          batches = load("train", batch_size=64)
    """
    return line_table(index or ProfileIndex(profile), attribution=attribution).to_frame()


def line_table(index: ProfileIndex, *, attribution: Attribution = "launch") -> ResultTable:
    """Return the columns of `by_line`."""
    profile = index.profile
    ops, tree = profile.tables["ops"], index.tree
    cells, lines = ops.names("cell"), ops["line"]
    is_line = (cells.codes >= 0) & (lines >= 0) & ~ops.names("op_type").equals("cell")
    groups, first = group_codes(
        np.where(is_line, cells.codes, MISSING), np.where(is_line, lines, MISSING)
    )
    # Other ops form a group too: drop it and renumber those of the statements.
    keep = is_line[first]
    first = first[keep]
    groups = np.where(keep, np.cumsum(keep) - 1, MISSING)[groups]
    sums = totals(index, groups, tree.nearest_ancestor(is_line), attribution=attribution)
    by_source = np.lexsort((lines[first], group_codes(cells.codes[first])[0]))
    order = by_source[sums.shown[by_source]]
    rows, last = first[order], int(sums.has_unattributed)
    columns = _columns(profile, groups, sums, order)
    del columns["memsets"]
    return ResultTable(
        {
            "cell": categorical([*cells.take(rows).to_list(), *[None] * last]),
            "line": optional([*lines[rows], *[MISSING] * last]),
            "source": objects([*_sources(profile, rows), *[NO_LINE] * last]),
            **columns,
        }
    )


def _columns(
    profile: ProfileData, groups: IntArray, sums: Totals, order: IntArray
) -> dict[str, Any]:
    columns = MeasureColumns(profile, groups, sums, order)
    return {
        "count": columns.column(sums.count),
        **columns.device(),
        **columns.device_per_execution(),
        "host_ns": columns.column(sums.host_ns),
        "self_host_ns": columns.column(sums.own_host_ns),
        **columns.host_per_execution(95),
    }


def _sources(profile: ProfileData, rows: IntArray) -> list[str]:
    """Return the source text of the statements at `rows`, or their names if it is unknown."""
    ops = profile.tables["ops"]
    sources = {cell: split_lines(source) for cell, source in profile.sources.items()}
    return [
        line_text(sources.get(cell or "", []), line) or name or ""
        for line, cell, name in zip(
            ops["line"][rows].tolist(),
            ops.names("cell").take(rows).to_list(),
            ops.names("name").take(rows).to_list(),
            strict=True,
        )
    ]
