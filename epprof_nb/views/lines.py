"""Device time at each line of the profiled cells: what the source view shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.views.work import BUSY_KINDS, KERNEL, MEMCPY, Work, durations

if TYPE_CHECKING:
    from epprof_nb.profiles import Profile

_KERNELS_SHOWN = 12


@dataclass(slots=True)
class LineTotals:
    """What one line of a cell did.

    ``device_ns`` is the time of its kernels, copies and sets; ``host_ns`` the time its statement
    was open; ``start_ns`` and ``end_ns`` reach from its first execution's start to its last
    one's end; ``top`` holds up to twelve (name, count, ns), the most time first.
    """

    cell: str
    line: int
    start_ns: int
    end_ns: int
    device_ns: int = 0
    host_ns: int = 0
    kernels: int = 0
    copies: int = 0
    bytes: int = 0
    top: list[tuple[str, int, int]] = field(default_factory=list)


def line_totals(profile: Profile, work: Work) -> list[LineTotals]:
    """Add up each line's device work; one entry a line that ran, in the order of the source."""
    ops, activities = profile.tables["ops"], profile.tables["activities"]
    cells = ops.names("cell")
    is_line = (ops["line"] >= 0) & (cells.codes >= 0) & ~ops.names("op_type").equals("cell")
    if not is_line.any():
        return []
    # A line is one key, however often its statement ran.
    width = int(ops["line"].max()) + 1
    key_of_op = np.where(is_line, cells.codes.astype(np.int64) * width + ops["line"], -1)
    keys, group_of_line = np.unique(key_of_op[is_line], return_inverse=True)
    starts, ends = ops["start_ns"][is_line], ops["end_ns"][is_line]
    group_of_op = np.full(len(ops), -1, np.int64)
    group_of_op[is_line] = group_of_line

    totals = []
    for group, key in enumerate(keys.tolist()):
        mine = group_of_line == group
        totals.append(
            LineTotals(
                cells.categories[key // width], key % width,
                int(starts[mine].min()), int(ends[mine].max()),
                host_ns=int(ops["duration_ns"][is_line][mine].sum()),
            )
        )  # fmt: skip

    line_op = work.tree.nearest(is_line)
    owner = np.append(line_op, -1)[work.activity_op]
    group = np.append(group_of_op, -1)[owner]
    kinds = work.kinds
    rows = np.flatnonzero((group >= 0) & np.isin(kinds, BUSY_KINDS))
    time = durations(profile)
    names = activities.names("name")
    moved = np.maximum(activities["bytes"], 0)
    for number, total in enumerate(totals):
        mine = rows[group[rows] == number]
        total.device_ns = int(time[mine].sum())
        total.kernels = int((kinds[mine] == KERNEL).sum())
        copies = mine[kinds[mine] == MEMCPY]
        total.copies, total.bytes = len(copies), int(moved[copies].sum())
        codes, place = np.unique(names.codes[mine], return_inverse=True)
        spent = np.bincount(place, time[mine], len(codes)).astype(np.int64)
        count = np.bincount(place, minlength=len(codes))
        table = [*names.categories, "(no name)"]
        total.top = [
            (table[codes[i]], int(count[i]), int(spent[i]))
            for i in np.argsort(-spent, kind="stable")[:_KERNELS_SHOWN]
        ]
    return sorted(totals, key=lambda t: (cells.categories.index(t.cell), t.line))


def source_line(profile: Profile, cell: str | None, line: int) -> str:
    """Return the text of a cell's line without its indentation; empty where it is not known."""
    lines = profile.sources.get(cell or "", "").splitlines()
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""
