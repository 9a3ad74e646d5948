"""The tables of a comparison for every output: titles and cells as text.

A column has times of one kind, which its title names: elapsed times come first, device and host
times have separate columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from epprof_nb.analysis.base.stack_lines import frame_label
from epprof_nb.analysis.compare.by_line import lines_inside
from epprof_nb.analysis.compare.causes_of_changes import (
    DEVICE,
    LEAST_SHARE,
    WAITS,
    cause,
    rows_of,
)
from epprof_nb.analysis.compare.significance import CHANGED, is_too_wide
from epprof_nb.util.format import duration, plural, shorten, signed_duration, signed_percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from epprof_nb.analysis.compare.causes_of_changes import Values
    from epprof_nb.analysis.compare.compare_sides import ComparisonResult

_ROWS = 12
_VERDICT = 4
"""Position of the verdict among the cells of an op; a kernel has no contribution."""
_NO_PLACE = "not in any op"
_WAITS = "waiting for a core, subtracted"
_LEAST_REST = 0.005
"""Minimum share of a repeat for time outside of all ops to be shown."""
_HOST_DIFFERS = 0.05
"""Minimum relative difference of host and elapsed time to show host times."""
_COLOURED = {"faster": "faster", "slower": "slower", "removed": "faster", "added": "slower"}


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its name, its cells, and the verdict that colours it, ``""`` for none.

    `is_name` is whether the name comes from the code; else it is a fixed text. `place` is the
    start of the name that is cut last, such as ``train (In[3]:14):``.
    """

    name: str
    cells: tuple[str, ...]
    colour: str
    is_name: bool = True
    place: str = ""

    def short_name(self, limit: int) -> str:
        """Return the name in at most `limit` characters; the text after `place` is cut first."""
        place = shorten(self.place, 3 * limit // 4)
        rest = self.name[len(self.place) :]
        return f"{place} {shorten(rest, limit - len(place) - 1)}" if place else shorten(rest, limit)


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table: the title of the names, the titles of the cells, and the rows.

    `text_columns` are the positions of the left-aligned cells; the first one has the verdict.
    """

    title: str
    titles: tuple[str, ...]
    rows: list[Row]
    text_columns: tuple[int, ...]


def shown_tables(comparison: ComparisonResult) -> Iterator[ShownTable]:
    """Yield the tables of ops, and of lines and kernels if any has changed."""
    if len(comparison.ops):
        yield _of_ops(comparison)
    lines = lines_inside(comparison.lines, comparison.ops)
    if any(row["verdict"] in _COLOURED for row in lines):
        yield _of_lines(comparison, lines)
    kernels = comparison.kernels
    if any(verdict in CHANGED for verdict in kernels.values("verdict")):
        yield _of_kernels(comparison)


def _of_ops(comparison: ComparisonResult) -> ShownTable:
    rows = list(rows_of(comparison.ops))
    first, others = rows[:_ROWS], rows[_ROWS:]
    # Columns without information are left out.
    has_device = any(row[f"device_{side}_ns"] for row in first for side in ("before", "after"))
    has_host = any(_host_differs(row) for row in first)
    total = comparison.total
    least_ns = LEAST_SHARE * max(total.before_ns, total.after_ns)
    found = [_op_row(row, least_ns, has_device=has_device, has_host=has_host) for row in first]
    width = len(found[0].cells)
    if others:
        adds = sum(row["contribution_ns"] for row in others)
        cells = _padded(("", signed_duration(adds)), width)
        found.append(Row(plural(len(others), "more row"), cells, "", is_name=False))
    change = total.after_ns - total.before_ns
    waits = total.waited_ns[0] - total.waited_ns[1]
    rest = change - sum(row["contribution_ns"] for row in rows) - waits
    if any(total.waited_ns):
        times = _before_after(*total.waited_ns)
        found.append(
            Row(_WAITS, _padded((times, signed_duration(waits)), width), "", is_name=False)
        )
    if abs(rest) >= _LEAST_REST * max(total.before_ns, total.after_ns):
        found.append(Row(_NO_PLACE, _padded(("", signed_duration(rest)), width), "", is_name=False))
    found_ratios = total.ratios
    interval = (
        ""
        if found_ratios is None
        else _interval(float(found_ratios.low[0]) - 1, float(found_ratios.high[0]) - 1)
    )
    cells = (
        _before_after(total.before_ns, total.after_ns),
        signed_duration(change),
        signed_percent(total.change),
        interval,
        comparison.verdict,
    )
    colour = comparison.verdict if comparison.verdict in CHANGED else ""
    found.append(Row("whole repeat", _padded(cells, width), colour, is_name=False))
    titles = ["elapsed time", "contribution", _change(comparison), "95 % interval", "verdict"]
    titles += ["device time"] * has_device + ["host time"] * has_host
    return ShownTable("op", tuple(titles), found, tuple(range(_VERDICT, len(titles))))


def _op_row(row: Values, least_ns: float, *, has_device: bool, has_host: bool) -> Row:
    """Return the cells of an op, coloured if it contributes at least `least_ns` to the change."""
    verdict, source = cause(row)
    elapsed = row["elapsed_before_ns"], row["elapsed_after_ns"]
    # The elapsed time does not include an op on another thread.
    has_part = bool(row["contribution_ns"]) or elapsed != (None, None)
    notes = [source] if source and verdict in CHANGED else []
    notes += ["renamed"] * (row["status"] == "renamed")
    cells = [
        _before_after(*elapsed),
        signed_duration(row["contribution_ns"]) if has_part else "",
        _change_of(row["elapsed_change"]),
        _interval(row["elapsed_change_low"], row["elapsed_change_high"]),
        f"{verdict} ({', '.join(notes)})" if notes else verdict,
    ]
    if has_device:
        times = row["device_before_ns"] or None, row["device_after_ns"] or None
        cells.append(_before_after(*times) + _device_change(row, verdict, source))
    if has_host:
        differs = _host_differs(row)
        cells.append(_before_after(row["host_before_ns"], row["host_after_ns"]) if differs else "")
    is_cause = source != WAITS and abs(row["contribution_ns"]) >= least_ns
    colour = _COLOURED.get(verdict, "") if is_cause else ""
    # Names alone may be ambiguous.
    return Row(row["path"], tuple(cells), colour)


def _of_lines(comparison: ComparisonResult, lines: Sequence[Values]) -> ShownTable:
    def place(row: Values) -> str:
        number = row["line_after"] or row["line_before"]
        return f"{frame_label(row['function'], row['cell'], number)}:"

    rows = sorted(lines, key=lambda row: row["verdict"] not in _COLOURED)
    return _of_device_times(
        comparison, "line", [(place(row), f" {row['source']}", row) for row in rows]
    )


def _of_kernels(comparison: ComparisonResult) -> ShownTable:
    rows = [("", f"{row['path']} / {row['name']}", row) for row in rows_of(comparison.kernels)]
    return _of_device_times(comparison, "kernel", rows)


def _of_device_times(
    comparison: ComparisonResult, title: str, named: Sequence[tuple[str, str, Values]]
) -> ShownTable:
    """Return the table of rows with a device time only, the changed ones first."""
    rows = sorted(named, key=lambda named: named[2]["verdict"] not in CHANGED)
    found = [
        Row(
            place + text,
            (
                _before_after(row["before_ns"], row["after_ns"]),
                _change_of(row["change"]),
                _interval(row["change_low"], row["change_high"]),
                row["verdict"],
            ),
            row["verdict"] if row["verdict"] in CHANGED else "",
            place=place,
        )
        for place, text, row in rows[:_ROWS]
    ]
    if len(rows) > _ROWS:
        more = plural(len(rows) - _ROWS, "more row")
        found.append(Row(more, ("",) * 4, "", is_name=False))
    titles = ("device time", _change(comparison), "95 % interval", "verdict")
    return ShownTable(title, titles, found, (_VERDICT - 1,))


def _host_differs(row: Values) -> bool:
    """Return whether the host time of an op differs from its elapsed time."""
    for side in ("before", "after"):
        host, shown = row[f"host_{side}_ns"] or 0, row[f"elapsed_{side}_ns"] or 0
        if abs(host - shown) > _HOST_DIFFERS * max(host, shown):
            return True
    return False


def _change(comparison: ComparisonResult) -> str:
    return "change of pairs" if comparison.total.is_paired else "change"


def _padded(cells: Sequence[str], width: int) -> tuple[str, ...]:
    return (*cells, *[""] * (width - len(cells)))


def _before_after(before: float | None, after: float | None) -> str:
    if before is None and after is None:
        return ""
    texts = ("\N{EN DASH}" if ns is None else duration(ns) for ns in (before, after))
    return " \N{RIGHTWARDS ARROW} ".join(texts)


def _change_of(change: float) -> str:
    return signed_percent(change) if change == change else ""  # noqa: PLR0124 - NaN


def _interval(low: float, high: float) -> str:
    if low != low:  # noqa: PLR0124 - NaN, not tested
        return ""
    if is_too_wide(low, high):
        return "varies too much"
    return f"{signed_percent(low)} to {signed_percent(high)}"


def _device_change(row: Values, verdict: str, source: str) -> str:
    """Return the change of the device time, and its verdict if it differs from the row's.

    If the device time causes the row's verdict, its interval replaces its verdict.
    """
    if row["measure"] != "device" or row["status"] in ("added", "removed"):
        return ""
    own = row["verdict"]
    if own == "not tested" or (own not in CHANGED and own == verdict):
        return ""
    change = f", {_change_of(row['change'])}"
    if source == DEVICE and verdict in CHANGED:
        return f"{change} ({_interval(row['change_low'], row['change_high'])})"
    return f"{change}: {own}"
