"""Where the device's time went: by op, and by line of the cell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from epprof_nb.analysis.dataframe import categorical, optional
from epprof_nb.analysis.index import Shared
from epprof_nb.analysis.measures import Columns
from epprof_nb.analysis.op_totals import Totals, totals
from epprof_nb.arrays.groups import group_codes
from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.attribution import Attribution
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData


NO_OP = "(no op)"
"""Name of the row of activities that belong to no op."""
NO_LINE = "(no line)"
"""Source of the row of activities that belong to no statement of a cell."""


def by_op(
    profile: ProfileData, *, attribution: Attribution = "launch", shared: Shared | None = None
) -> pd.DataFrame:
    """Return the device and host time of each op name.

    Parameters
    ----------
    profile
        The profile.
    attribution
        Which op an activity counts for; see `epprof_nb.analysis.attribution.op_rows`.
    shared
        What the profile's tables share; made anew where left out.

    Returns
    -------
    frame
        One row a name, op type and, for statements, cell and line; the longest device time first.
        Where activities have no op, a last row named ``"(no op)"`` holds them: `self_device_ns`
        always adds up to the device's time.

        =================  ========  ==========================================================
        name               category  the op's name
        op_type            category  cell, line, range, or an ONNX operator
        cell, line         category, where the statement stands; missing for other ops
                           Int64
        count              int64     executions
        device_ns          int64     device time of the op and all below it
        self_device_ns     int64     device time that the op launched itself
        share              float64   `device_ns` as a fraction of all device time
        kernels, memcpys,  int64     activities of the op and all below it
        memsets
        bytes              int64     bytes copied and set by them
        bandwidth          float64   bytes a second of the copies; NaN where there are none
        launch_delay_ns    Int64     mean time from a kernel's API call to its start; missing
                                     where no call was recorded
        mean_device_ns,    int64     device time of an execution, of all below it included;
        p95_device_ns                the percentile is a time that occurred
        host_ns            int64     host time of the op and all below it
        self_host_ns       int64     host time outside the ops below it on its thread
        mean_ns, p95_ns    int64     host time of an execution
        =================  ========  ==========================================================

        Device times are sums over activities, so they exceed the wall time where activities
        overlap. An op below one of the same row is not counted twice. Where one row of
        ``prof.ops`` stands for many executions, each counts as their mean.

    Raises
    ------
    ValueError
        For an unknown `attribution`.
    """
    ops = profile.tables["ops"]
    shared = shared or Shared(profile)
    names, types, cells = ops.names("name"), ops.names("op_type"), ops.names("cell")
    groups, first = group_codes(names.codes, types.codes, cells.codes, ops["line"])
    sums = totals(profile, shared, groups, np.arange(len(ops)), attribution=attribution)
    order = sums.longest_first()
    rows, rest = first[order], int(sums.has_rest)
    return pd.DataFrame(
        {
            "name": categorical([*names.take(rows).to_list(), *[NO_OP] * rest]),
            "op_type": categorical([*types.take(rows).to_list(), *[None] * rest]),
            "cell": categorical([*cells.take(rows).to_list(), *[None] * rest]),
            "line": optional([*ops["line"][rows], *[MISSING] * rest]),
            **_columns(profile, groups, sums, order),
        }
    )


def by_line(
    profile: ProfileData, *, attribution: Attribution = "launch", shared: Shared | None = None
) -> pd.DataFrame:
    """Return the device and host time of each statement of the profiled cells.

    Parameters
    ----------
    profile
        The profile.
    attribution
        Which op an activity counts for; see `epprof_nb.analysis.attribution.op_rows`.
    shared
        What the profile's tables share; made anew where left out.

    Returns
    -------
    frame
        One row a cell and line that ran, in the order of the source; columns as in `by_op`, less
        `memsets`, and with the `source` (object) of the line in place of the name. `device_ns`
        and `host_ns` are those of the statement and all below it; `self_device_ns` and
        `self_host_ns` leave out the statements nested in it, which have lines of their own, but
        include the ranges and library ops it runs. Where activities belong to no statement, a
        last row ``"(no line)"`` holds them: `self_device_ns` adds up to the device's time.

    Raises
    ------
    ValueError
        For an unknown `attribution`.
    """
    ops = profile.tables["ops"]
    shared = shared or Shared(profile)
    tree = shared.tree
    cells, lines = ops.names("cell"), ops["line"]
    statement = (cells.codes >= 0) & (lines >= 0) & ~ops.names("op_type").equals("cell")
    groups, first = group_codes(
        np.where(statement, cells.codes, -1), np.where(statement, lines, -1)
    )
    # Only statements have a group: number theirs without a hole.
    kept = statement[first]
    first = first[kept]
    groups = np.where(kept, np.cumsum(kept) - 1, MISSING)[groups]
    sums = totals(profile, shared, groups, tree.nearest(statement), attribution=attribution)
    by_source = np.lexsort((lines[first], group_codes(cells.codes[first])[0]))
    order = by_source[sums.shown[by_source]]
    rows, rest = first[order], int(sums.has_rest)
    columns = _columns(profile, groups, sums, order)
    del columns["memsets"]
    return pd.DataFrame(
        {
            "cell": categorical([*cells.take(rows).to_list(), *[None] * rest]),
            "line": optional([*lines[rows], *[MISSING] * rest]),
            "source": pd.Series([*_texts(profile, rows), *[NO_LINE] * rest], dtype=object),
            **columns,
        }
    )


def _columns(
    profile: ProfileData, groups: IntArray, sums: Totals, order: IntArray
) -> dict[str, Any]:
    columns = Columns(profile, groups, sums, order)
    return {
        "count": columns.of(sums.count),
        **columns.device(),
        **columns.device_an_execution(),
        "host_ns": columns.of(sums.host_ns),
        "self_host_ns": columns.of(sums.own_host_ns),
        **columns.host_an_execution(95),
    }


def _texts(profile: ProfileData, rows: IntArray) -> list[str]:
    """Return the source text of the statements at `rows`; where there is none, their names."""
    ops = profile.tables["ops"]
    # The lines of Python's grammar: str.splitlines would also break at form feeds.
    sources = {cell: re.split(r"\r\n|\r|\n", source) for cell, source in profile.sources.items()}
    texts = []
    for row, cell, name in zip(
        rows,
        ops.names("cell").take(rows).to_list(),
        ops.names("name").take(rows).to_list(),
        strict=True,
    ):
        line = int(ops["line"][row])
        source = sources.get(cell or "", [])
        text = source[line - 1].strip() if 1 <= line <= len(source) else ""
        texts.append(text or name or "")
    return texts
