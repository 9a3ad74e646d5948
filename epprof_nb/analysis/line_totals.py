"""Device time at each line of the profiled cells: what the source view shows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.device_work import BUSY_KINDS, KERNEL, KINDS, MEMCPY, Work
from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData

_KERNELS_SHOWN = 12


@dataclass(slots=True)
class LineTotals:
    """What one line did.

    ``cell`` is the cell or file it is in. ``device_ns`` is the time of its kernels, copies and
    sets, less that of lines nested in it; ``host_ns`` the time its statement was open, ``count``
    times; ``start_ns`` and ``end_ns`` reach from its first execution's start to its last one's
    end; ``top`` holds up to twelve (name, count, ns), the most time first.
    """

    cell: str
    line: int
    count: int
    start_ns: int
    end_ns: int
    device_ns: int
    host_ns: int
    kernels: int
    copies: int
    bytes: int
    top: list[tuple[str, int, int]] = field(default_factory=list)


def line_totals(profile: ProfileData, work: Work) -> list[LineTotals]:
    """Add up each line's device work; one entry a line that ran, in the order of the source."""
    ops = profile.tables["ops"]
    cells, line = ops.names("cell"), ops["line"]
    is_line = (line >= 0) & (cells.codes >= 0) & ~ops.names("op_type").equals("cell")
    rows = np.flatnonzero(is_line)
    groups, first = group_codes(cells.codes[rows], line[rows])
    at = [(cells.categories[cells.codes[row]], int(line[row])) for row in rows[first].tolist()]
    return _add_up(profile, work, rows, groups, at)


def function_totals(profile: ProfileData, work: Work) -> list[LineTotals]:
    """Add up the device work of ops whose function stands in a file, at its first line."""
    places = profile.info.get("op_places")
    if not isinstance(places, dict):
        return []
    names = profile.tables["ops"].names("name")
    known = [i for i, name in enumerate(names.categories) if _place(places.get(name))]
    rows = np.flatnonzero(np.isin(names.codes, known))
    groups, first = group_codes(names.codes[rows])
    at = [_place(places[name]) for name in names.take(rows[first]).to_list() if name]
    return _add_up(profile, work, rows, groups, [place for place in at if place])


def _place(value: object) -> tuple[str, int] | None:
    """Return file and line of a place as a profile's info holds it; None where it is not one."""
    if not isinstance(value, dict):
        return None
    file, line = value.get("file"), value.get("line")
    return (file, line) if isinstance(file, str) and isinstance(line, int) else None


def _add_up(
    profile: ProfileData, work: Work, rows: IntArray, groups: IntArray, at: list[tuple[str, int]]
) -> list[LineTotals]:
    """Add up what counts for the ops at `rows`, by group; `at` is where each group stands."""
    ops, _activities = profile.tables["ops"], profile.tables["activities"]
    n = len(at)
    group_of_op = np.full(len(ops) + 1, MISSING, np.int64)
    group_of_op[rows] = groups
    owner = work.tree.nearest(group_of_op[:-1] >= 0)
    parts = _parts(profile, work, group_of_op[np.append(owner, MISSING)])
    of_group = {
        name: sum_by_group(parts["group"], parts[name], n)[:-1].tolist()
        for name in ("ns", "kernels", "copies", "bytes")
    }
    starts, ends = np.full(n, np.iinfo(np.int64).max), np.full(n, np.iinfo(np.int64).min)
    np.minimum.at(starts, groups, ops["start_ns"][rows])
    np.maximum.at(ends, groups, ops["end_ns"][rows])
    columns = (
        sum_by_group(groups, ops["count"][rows], n)[:-1].tolist(), starts.tolist(), ends.tolist(),
        of_group["ns"], sum_by_group(groups, ops["duration_ns"][rows], n)[:-1].tolist(),
        of_group["kernels"], of_group["copies"], of_group["bytes"], _top(profile, parts, n),
    )  # fmt: skip
    totals = [LineTotals(*place, *values) for place, *values in zip(at, *columns, strict=True)]
    order = {cell: i for i, cell in enumerate(profile.sources)}
    return sorted(totals, key=lambda t: (order.get(t.cell, len(order)), t.cell, t.line))


def _parts(profile: ProfileData, work: Work, group_of_op: IntArray) -> dict[str, IntArray]:
    """Add up activities by group and name, a piece of the table at a time.

    Parameters
    ----------
    profile, work
        The profile, and what is known of its device work.
    group_of_op
        int64 array: the group that each op's activities count for, `MISSING` for none; the last
        is that of activities without an op.

    Returns
    -------
    parts
        int64 columns, in order of time: ``group``; ``name``, a code; ``count`` of activities;
        their ``ns``; ``kernels`` and ``copies`` among them; ``bytes`` copied. A group and name
        has one row for each piece that it occurs in.
    """
    activities = profile.tables["activities"]
    names = activities.names("name").codes
    keeps_busy = np.isin(np.arange(len(KINDS)), BUSY_KINDS)
    found = [np.empty((7, 0), np.int64)]
    for piece in chunks(len(activities)):
        which, kinds = group_of_op[work.activity_op[piece]], work.kinds[piece]
        rows = np.flatnonzero((which >= 0) & keeps_busy[kinds])
        which, kinds, name = which[rows], kinds[rows], names[piece][rows]
        pairs, first = group_codes(which, name)
        copies = kinds == MEMCPY
        time = activities["end_ns"][piece][rows] - activities["start_ns"][piece][rows]
        measures = (
            np.ones(len(rows), np.int64),
            np.maximum(time, 0),
            (kinds == KERNEL).astype(np.int64),
            copies.astype(np.int64),
            np.where(copies, np.maximum(activities["bytes"][piece][rows], 0), 0),
        )
        sums = [sum_by_group(pairs, values, len(first))[:-1] for values in measures]
        found.append(np.stack([which[first], name[first], *sums]))
    columns = ("group", "name", "count", "ns", "kernels", "copies", "bytes")
    return dict(zip(columns, np.concatenate(found, axis=1), strict=True))


def _top(
    profile: ProfileData, parts: dict[str, IntArray], n: int
) -> list[list[tuple[str, int, int]]]:
    """Return each group's activities by name, the most time first."""
    names = profile.tables["activities"].names("name")
    pairs, first = group_codes(parts["group"], parts["name"])
    spent = sum_by_group(pairs, parts["ns"], len(first))[:-1]
    count = sum_by_group(pairs, parts["count"], len(first))[:-1]
    table = [*names.categories, "(no name)"]
    top: list[list[tuple[str, int, int]]] = [[] for _ in range(n)]
    for i in np.argsort(-spent, kind="stable").tolist():
        of_group = top[parts["group"][first[i]]]
        if len(of_group) < _KERNELS_SHOWN:
            of_group.append((table[parts["name"][first[i]]], int(count[i]), int(spent[i])))
    return top


def split_lines(text: str) -> list[str]:
    """Return the lines of a source as Python's grammar has them, without their ends."""
    # str.splitlines would also break at form feeds.
    return re.split(r"\r\n|\r|\n", text)


def source_line(profile: ProfileData, cell: str | None, line: int) -> str:
    """Return the text of a cell's line without its indentation; empty where it is not known."""
    lines = split_lines(profile.sources.get(cell or "", ""))
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""
