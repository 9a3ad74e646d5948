"""Where the device's time went: by op, by line of the cell, by kernel."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from epprof_nb.analysis.attribute import Attribution, device_work
from epprof_nb.analysis.frames import categorical, optional
from epprof_nb.analysis.lookup import add_up, group
from epprof_nb.analysis.optree import OpTree
from epprof_nb.analysis.totals import Totals, share, totals
from epprof_nb.schema import MISSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.profiles import Profile

_Int = npt.NDArray[np.int64]

NO_OP = "(no op)"
"""Name of the row of activities that belong to no op."""
NO_LINE = "(no line)"
"""Source of the row of activities that belong to no statement of a cell."""


def by_op(profile: Profile, *, attribution: Attribution = "launch") -> pd.DataFrame:
    """Return the device and host time of each op name.

    Parameters
    ----------
    profile
        The profile.
    attribution
        Which op an activity counts for; see `epprof_nb.analysis.attribute.op_rows`.

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
        host_ns            int64     host time of the op and all below it
        self_host_ns       int64     host time outside the ops below it on its thread
        launch_delay_ns    Int64     mean time from a kernel's API call to its start; missing
                                     where no call was recorded
        =================  ========  ==========================================================

        Device times are sums over activities, so they exceed the wall time where activities
        overlap. An op below one of the same row is not counted twice.

    Raises
    ------
    ValueError
        For an unknown `attribution`.
    """
    ops = profile.tables["ops"]
    tree = OpTree(ops)
    names, types, cells = ops.names("name"), ops.names("op_type"), ops.names("cell")
    groups, first = group(names.codes, types.codes, cells.codes, ops["line"])
    sums = totals(profile, tree, groups, np.arange(len(ops)), attribution=attribution)
    order = sums.longest_first()
    rows, rest = first[order], int(sums.has_rest)
    return pd.DataFrame(
        {
            "name": categorical([*names.take(rows).to_list(), *[NO_OP] * rest]),
            "op_type": categorical([*types.take(rows).to_list(), *[None] * rest]),
            "cell": categorical([*cells.take(rows).to_list(), *[None] * rest]),
            "line": optional([*ops["line"][rows], *[MISSING] * rest]),
            **_work_columns(sums, order),
            "launch_delay_ns": optional(_mean_delays(sums, order)),
        }
    )


def by_line(profile: Profile, *, attribution: Attribution = "launch") -> pd.DataFrame:
    """Return the device and host time of each statement of the profiled cells.

    Parameters
    ----------
    profile
        The profile.
    attribution
        Which op an activity counts for; see `epprof_nb.analysis.attribute.op_rows`.

    Returns
    -------
    frame
        One row a cell and line that ran, in the order of the source; columns as in `by_op`, less
        `memsets` and `launch_delay_ns`, and with the `source` (object) of the line in place of
        the name. `device_ns` and `host_ns` are those of the statement and all below it;
        `self_device_ns` and `self_host_ns` leave out the statements nested in it, which have
        lines of their own, but include the ranges and library ops it runs. Where activities
        belong to no statement, a last row ``"(no line)"`` holds them: `self_device_ns` adds up
        to the device's time.

    Raises
    ------
    ValueError
        For an unknown `attribution`.
    """
    ops = profile.tables["ops"]
    tree = OpTree(ops)
    cells, lines = ops.names("cell"), ops["line"]
    statement = (cells.codes >= 0) & (lines >= 0) & ~ops.names("op_type").equals("cell")
    groups, first = group(np.where(statement, cells.codes, -1), np.where(statement, lines, -1))
    # Only statements have a group: number theirs without a hole.
    kept = statement[first]
    first = first[kept]
    groups = np.where(kept, np.cumsum(kept) - 1, MISSING)[groups]
    sums = totals(profile, tree, groups, tree.nearest(statement), attribution=attribution)
    by_source = np.lexsort((lines[first], group(cells.codes[first])[0]))
    order = by_source[sums.shown[by_source]]
    rows, rest = first[order], int(sums.has_rest)
    columns = _work_columns(sums, order)
    del columns["memsets"]
    return pd.DataFrame(
        {
            "cell": categorical([*cells.take(rows).to_list(), *[None] * rest]),
            "line": optional([*lines[rows], *[MISSING] * rest]),
            "source": pd.Series([*_texts(profile, rows), *[NO_LINE] * rest], dtype=object),
            **columns,
        }
    )


def by_kernel(profile: Profile) -> pd.DataFrame:
    """Return the launches and device time of each kernel name.

    Parameters
    ----------
    profile
        The profile.

    Returns
    -------
    frame
        One row a kernel name, the longest device time first: `name` (category), `count`,
        `device_ns` (int64), `share` of all device time (float64), `mean_ns`, `min_ns`, `p95_ns`,
        `max_ns` (int64; the 95th percentile is a duration that occurred), `grid` and `block`
        (object: ``(x, y, z)`` of the most frequent launch, None where not recorded) and `ops`
        (int64, the number of different ops that launched it).
    """
    activities = profile.tables["activities"]
    everything = int(activities["duration_ns"][device_work(activities)].sum())
    kernels = np.flatnonzero(activities.names("kind").equals("kernel"))
    durations = activities["duration_ns"][kernels]
    op_ids = activities["op_id"][kernels]
    names = activities.names("name").take(kernels)
    groups, first = group(names.codes)
    n = len(first)
    count = np.bincount(groups, minlength=n).astype(np.int64)
    begin = np.cumsum(count) - count
    ascending = durations[np.lexsort((durations, groups))]
    device_ns = add_up(groups, durations, n)[:-1]
    pairs = group(groups, op_ids)[1]
    pairs = pairs[op_ids[pairs] != MISSING]
    shapes = [activities[f"{of}_{axis}"][kernels] for of in ("grid", "block") for axis in "xyz"]
    usual = _most_frequent(groups, n, *shapes)
    order = np.argsort(-device_ns, kind="stable")
    return pd.DataFrame(
        {
            "name": categorical(names.take(first[order]).to_list()),
            "count": count[order],
            "device_ns": device_ns[order],
            "share": share(device_ns[order], everything),
            "mean_ns": np.rint(device_ns / count).astype(np.int64)[order],
            "min_ns": ascending[begin][order],
            "p95_ns": ascending[begin + (count * 95 + 99) // 100 - 1][order],
            "max_ns": ascending[begin + count - 1][order],
            "grid": _triples(shapes[:3], usual[order]),
            "block": _triples(shapes[3:], usual[order]),
            "ops": np.bincount(groups[pairs], minlength=n).astype(np.int64)[order],
        }
    )


def _work_columns(sums: Totals, order: _Int) -> dict[str, npt.NDArray[np.generic]]:
    """Return the columns of the groups in `order`, then of the rest where there is one."""

    def column(values: _Int, rest: int) -> _Int:
        return np.append(values[order], np.full(int(sums.has_rest), rest, np.int64))

    def work(name: str) -> _Int:
        return column(sums.work[name], sums.rest[name])

    return {
        "count": column(sums.count, 0),
        "device_ns": work("device_ns"),
        "self_device_ns": column(sums.own_device_ns, sums.rest["device_ns"]),
        "share": share(work("device_ns"), sums.device_ns),
        "kernels": work("kernels"),
        "memcpys": work("memcpys"),
        "memsets": work("memsets"),
        "bytes": work("bytes"),
        "host_ns": column(sums.host_ns, 0),
        "self_host_ns": column(sums.own_host_ns, 0),
    }


def _mean_delays(sums: Totals, order: _Int) -> _Int:
    """Return the mean launch delays of the groups in `order`, then of the rest where shown."""
    delay = np.append(sums.work["delay_ns"][order], sums.rest["delay_ns"])
    launches = np.append(sums.work["delays"][order], sums.rest["delays"])
    mean = np.rint(delay / np.maximum(launches, 1)).astype(np.int64)
    return np.where(launches > 0, mean, MISSING)[: len(order) + sums.has_rest]


def _most_frequent(groups: _Int, n: int, *columns: _Int) -> _Int:
    """Return, for each group, a row with its most frequent combination of values."""
    combinations, first = group(groups, *columns)
    frequency = np.bincount(combinations, minlength=len(first))
    # Of several assignments to one group the last one stays: that of the highest frequency.
    ascending = first[np.argsort(frequency, kind="stable")]
    rows = np.zeros(n, np.int64)
    rows[groups[ascending]] = ascending
    return rows


def _triples(axes: Sequence[_Int], rows: _Int) -> pd.Series[Any]:
    """Return ``(x, y, z)`` of each of `rows`; None where one of them is missing."""
    triples = zip(*(axis[rows].tolist() for axis in axes), strict=True)
    return pd.Series([None if MISSING in triple else triple for triple in triples], dtype=object)


def _texts(profile: Profile, rows: _Int) -> list[str]:
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
