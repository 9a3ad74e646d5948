# ruff: noqa: S608 - the queries hold names and numbers of this module, no text of a profile
"""Summary of a profile: totals, findings and rankings, each with the query that reproduces it.

The numbers are computed from the columns, without DuckDB. `epprof_nb.Profile.sql` runs the queries.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.device_work import KERNEL, MEMCPY, MEMSET
from epprof_nb.analysis.base.devices import device_labels
from epprof_nb.analysis.base.op_totals import outermost_of_name
from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.analysis.experiments.sentences import experiment_lines
from epprof_nb.analysis.findings.ranking import evidence_name, findings
from epprof_nb.analysis.frameworks import by_operator
from epprof_nb.analysis.summary.headline import headline_of
from epprof_nb.analysis.utilisation.gaps import IDLE_GAP_NS, gap_table
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.analysis.findings.finding import Finding
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table

RANKING_ROWS = 10
"""Maximum number of rows of a ranking."""
_MAX_FINDINGS = 8
_TIMED = ("ops", "activities", "api_calls")


@dataclass(frozen=True, slots=True)
class Fact:
    """One number: its name, value and unit (``ns``, ``bytes``, or empty for a count)."""

    name: str
    value: int
    unit: str
    query: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """A finding, and the query of the rows behind it."""

    finding: Finding
    query: str


@dataclass(frozen=True, slots=True)
class Ranking:
    """The groups of rows with the largest totals, as ``query`` returns them.

    ``groups`` is the number of all groups.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    groups: int
    query: str


@dataclass(frozen=True, slots=True)
class Summary:
    """The parts of a summary; each list begins with its most important item."""

    line: str
    facts: list[Fact] = field(default_factory=list)
    findings: list[Evidence] = field(default_factory=list)
    rankings: list[Ranking] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)


def summary_of(index: ProfileIndex) -> Summary:
    """Compute the summary of a profile."""
    profile = index.profile
    time = _durations(profile.tables["activities"])
    headline = headline_of(index)
    return Summary(
        headline.line,
        list(_facts(index, time)),
        [
            Evidence(found, f"select * from {evidence_name(rank)} order by start_ns")
            for rank, found in enumerate(findings(index, limit=_MAX_FINDINGS), 1)
        ],
        [ranking for ranking in _rankings(index, time) if ranking.rows],
        [
            *(" ".join(line.split()) for line in headline.memory),
            *experiment_lines(index),
            *(str(note) for note in profile.info.get("notes") or ()),
            *by_operator.hints(index),
        ],
        {name: len(table) for name, table in profile.tables.items()},
    )


def _facts(index: ProfileIndex, time: IntArray) -> Iterator[Fact]:
    profile, activities = index.profile, index.profile.tables["activities"]
    wall_query = "select value::bigint from info where key = 'wall_ns'"
    if profile.wall_ns <= 0:
        tables = " union all ".join(f"select start_ns, end_ns from {name}" for name in _TIMED)
        wall_query = f"select coalesce(max(end_ns) - min(start_ns), 0) from ({tables})"
    yield Fact("wall_ns", wall_of(profile), "ns", wall_query)
    work = index.is_device_work
    if "trace_format" in profile.info and not work.any():
        return  # the tool recorded no device, so 0 would be an assertion
    labels = device_labels(profile.info, index.device_ids)
    for device in index.device_ids:
        if device != MISSING and len(index.work_of(device)):
            starts, ends = index.busy(device)
            query = f"select sum(end_ns - start_ns) from busy where device_id = {device}"
            yield Fact(f"busy_ns of {labels[device]}", int((ends - starts).sum()), "ns", query)
    yield Fact("device_ns", int(time[work].sum()), "ns",
               "select coalesce(sum(duration_ns), 0) from device_work")  # fmt: skip
    for name, code in (("kernel", KERNEL), ("memcpy", MEMCPY), ("memset", MEMSET)):
        query = f"select count(*) from activities where kind = '{name}'"
        yield Fact(f"{name}s", int((index.kinds == code).sum()), "", query)
    copied = activities["bytes"][index.kinds == MEMCPY]
    yield Fact("bytes copied", int(copied[copied != MISSING].sum()), "bytes",
               "select coalesce(sum(bytes), 0) from activities where kind = 'memcpy'")  # fmt: skip
    yield Fact("device work without an op", int((work & (index.activity_op == MISSING)).sum()), "",
               "select count(*) from device_work left join ops using (op_id) "
               "where ops.start_ns is null")  # fmt: skip
    in_graph = work & (activities["graph_id"] != MISSING)
    yield Fact("device_ns in CUDA graphs", int(time[in_graph].sum()), "ns",
               "select coalesce(sum(duration_ns), 0) from device_work "
               "where graph_id is not null")  # fmt: skip
    gaps = index.cached(gap_table)
    between = gaps.take(gaps.names("position").equals("between") & _of_known_device(gaps))
    where = f"from idle where device_id is not null and end_ns - start_ns >= {IDLE_GAP_NS}"
    yield Fact("idle gaps of 1 ms or more", len(between), "", f"select count(*) {where}")
    yield Fact("idle_ns in these gaps", int(between["duration_ns"].sum()), "ns",
               f"select coalesce(sum(end_ns - start_ns), 0) {where}")  # fmt: skip


def _of_known_device(gaps: ResultTable) -> BoolArray:
    """Return which gaps are of a known device."""
    return np.array([device is not None for device in gaps.values("device_id")], np.bool_)


def _durations(table: Table) -> IntArray:
    time: IntArray = table["end_ns"] - table["start_ns"]
    return np.maximum(time, 0, out=time)


def _rankings(index: ProfileIndex, time: IntArray) -> Iterator[Ranking]:
    tables = index.profile.tables
    activities, ops, calls = (tables[name] for name in ("activities", "ops", "api_calls"))
    work = index.is_device_work
    row = np.where(work, index.activity_op, np.int32(MISSING))
    per_op = sum_by_group(row, time, len(ops))
    launched = np.bincount(row[row >= 0], minlength=len(ops))
    keys = ("name", "op_type", "cell", "line")
    with_work = np.flatnonzero(launched)
    yield _ranking(
        "ops by the device time of what they launched themselves",
        _columns(ops, keys, with_work),
        {"self_device_ns": per_op[with_work], "launched": launched[with_work]},
        "from device_work w join ops o using (op_id)", prefix="o.",
        sums={"self_device_ns": "sum(w.duration_ns)", "launched": "count(*)"},
    )  # fmt: skip
    names, short_names = (activities.names(name) for name in ("name", "short_name"))
    kernels, sums = _by_name(names, time, index.kinds == KERNEL)
    # A short name follows from the name.
    short_of = np.full(len(names.categories) + 1, MISSING, np.int32)
    short_of[names.codes] = short_names.codes
    short = CategoryColumn(short_of[kernels.codes], short_names.categories)
    yield _ranking(
        "kernels by device time",
        {"name": kernels, "short_name": short},
        {"device_ns": sums[0], "count": sums[1]},
        "from device_work where kind = 'kernel'",
        sums={"device_ns": "sum(duration_ns)", "count": "count(*)"},
    )
    copies = np.flatnonzero(index.kinds == MEMCPY)
    size = np.maximum(activities["bytes"][copies], 0)
    yield _ranking(
        "copies by device time",
        _columns(activities, ("copy_kind", "src_kind", "dst_kind"), copies),
        {"device_ns": time[copies], "count": np.ones(len(size), np.int64), "bytes": size},
        "from device_work where kind = 'memcpy'",
        sums={"device_ns": "sum(duration_ns)", "count": "count(*)",
              "bytes": "coalesce(sum(bytes), 0)"},
    )  # fmt: skip
    # An op below another op of its name is part of that op's time.
    host_ns = np.where(index.cached(outermost_of_name), ops["duration_ns"], 0)
    recorded = np.flatnonzero(~ops.names("status").equals("earlier"))
    yield _ranking(
        "ops by host time, ops below them included",
        _columns(ops, keys, recorded),
        {"host_ns": host_ns[recorded], "count": ops["count"][recorded]},
        "from nested_ops where status is distinct from 'earlier'",
        sums={"host_ns": "sum(if(is_outermost, duration_ns, 0))", "count": "sum(count)"},
    )
    called, sums = _by_name(calls.names("name"), calls["duration_ns"])
    yield _ranking(
        "API calls by host time",
        {"name": called},
        {"host_ns": sums[0], "count": sums[1]},
        "from api_calls",
        sums={"host_ns": "sum(duration_ns)", "count": "count(*)"},
    )


def _by_name(
    names: CategoryColumn, values: IntArray, mask: BoolArray | None = None
) -> tuple[CategoryColumn, tuple[IntArray, IntArray]]:
    """Return the names of the rows in `mask`, each once, with the sums of values and the counts."""
    # Rows without a name form the last group.
    unnamed = len(names.categories)
    codes = np.where(names.codes == MISSING, np.int32(unnamed), names.codes)
    if mask is not None:
        codes[~mask] = MISSING
    totals = sum_by_group(codes, values, unnamed + 1)
    counts = np.bincount(codes[codes >= 0], minlength=unnamed + 1)
    seen = np.flatnonzero(counts)
    column = CategoryColumn(
        np.where(seen == unnamed, MISSING, seen).astype(np.int32), names.categories
    )
    return column, (totals[seen], counts[seen])


def _columns(
    table: Table, names: tuple[str, ...], rows: IntArray | slice
) -> dict[str, CategoryColumn | IntArray]:
    return {
        name: table[name][rows] if name == "line" else table.names(name).take(rows)
        for name in names
    }


def _ranking(
    title: str,
    keys: Mapping[str, CategoryColumn | IntArray],
    values: Mapping[str, IntArray],
    source: str,
    *,
    sums: Mapping[str, str],
    prefix: str = "",
) -> Ranking:
    """Group rows by keys and return the groups with the largest sums of the first value.

    Parameters
    ----------
    title
        Title of the ranking.
    keys
        Columns to group by; for numbers, `MISSING` is missing.
    values
        Columns to sum.
    source, sums, prefix
        For the query: its tables, the expression of each sum, and a prefix of the keys.
    """
    codes, first = group_codes(*(
        column.codes if isinstance(column, CategoryColumn) else column for column in keys.values()
    ))  # fmt: skip
    totals = [sum_by_group(codes, value, len(first))[:-1] for value in values.values()]
    order = ", ".join(f"{prefix}{name}" for name in keys)
    select = ", ".join(f"{text} as {name}" for name, text in sums.items())
    main = next(iter(sums))
    query = (
        f"select {order}, {select} {source} group by {order} "
        f"order by {main} desc, {order} limit {RANKING_ROWS}"
    )
    # Groups with the same sum as the last one shown are ordered by name.
    at = max(len(first) - RANKING_ROWS, 0)
    candidates = np.arange(len(first))
    if at:
        candidates = np.flatnonzero(totals[0] >= np.partition(totals[0], at)[at])
    texts = [_values(column, first[candidates]) for column in keys.values()]
    numbers = [total[candidates].tolist() for total in totals]
    rows = list(zip(*texts, *numbers, strict=True))
    # Missing values come last, as in the query; an empty name is a value.
    rows.sort(
        key=lambda row: (
            -row[len(keys)],
            *((v is None, 0 if v is None else v) for v in row[: len(keys)]),
        )
    )
    return Ranking(title, (*keys, *values), tuple(rows[:RANKING_ROWS]), len(first), query)


def _values(column: CategoryColumn | IntArray, rows: IntArray) -> list[Any]:
    if isinstance(column, CategoryColumn):
        return [text and text.encode("utf-8", "backslashreplace").decode()
                for text in column.take(rows).to_list()]  # fmt: skip
    return [None if value == MISSING else value for value in column[rows].tolist()]
