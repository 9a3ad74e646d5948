"""Plain text of a profile: headline, findings, and the ops or operators with the most time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from epprof_nb.analysis.base.op_tree import UNNAMED
from epprof_nb.util.format import duration, percent, plural, shorten
from epprof_nb.util.printable import printable
from epprof_nb.views.view_model import FINDINGS_LEFT_OUT

if TYPE_CHECKING:
    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.views.view_model import ViewModel

_NAME_WIDTH = 48


def as_text(view_model: ViewModel, *, rows: int = 12) -> str:
    """Return the headline, repeats, findings and a table of the top `rows` ops by device time.

    The ops that captured the work of graphs follow in a separate table. Without device work, the
    table has the operators of nodes, or framework ops, by host time.
    """
    headline = view_model.headline
    lines = [headline.line]
    lines += headline.memory
    if headline.repeats is not None:
        lines.append(f"  {headline.repeats.line}")
    for finding in view_model.findings:
        lines.append(f"  {finding.text}")
        if finding.advice:
            lines.append(f"    {finding.advice}")
    if not view_model.with_findings:
        lines.append(f"  {FINDINGS_LEFT_OUT}")
    if view_model.colours_operators:
        return printable("\n".join([*lines, *_operators(view_model, rows)]))
    by_op = view_model.shown_ops
    lines += _by_device_time(by_op.take(by_op["device_ns"] > 0), rows, "op", "more op")
    captured = view_model.captured_work
    if captured is not None:
        lines += _by_device_time(captured, rows, "captured in a graph", "more captured op")
    return printable("\n".join(lines))


def _by_device_time(table: ResultTable, rows: int, title: str, omitted: str) -> list[str]:
    """Return the first rows of a table, which is sorted by device time."""
    shown = table.take(slice(0, rows))
    if not len(shown):
        return []
    head = f"{title:<{_NAME_WIDTH}} {'device':>9} {'share':>6} {'count':>7} {'kernels':>8}"
    lines = ["", head]
    columns = (shown.values(name) for name in ("device_ns", "share", "count", "kernels"))
    for name, device_ns, share, count, kernels in zip(
        _distinct_names(shown), *columns, strict=True
    ):
        lines.append(
            f"{name:<{_NAME_WIDTH}} {duration(device_ns):>9} {percent(share):>6} {count:>7,} "
            f"{kernels:>8,}"
        )
    if len(table) > len(shown):
        lines.append(f"({plural(len(table) - len(shown), omitted)})")
    return lines


def _distinct_names(table: ResultTable) -> list[str]:
    """Return the names of ops, with their line or type if several share a name."""
    names = table.values("name")
    counts = Counter(names)
    found = []
    lines = table.values("line") if "line" in table else [None] * len(names)
    for name, op_type, line in zip(names, table.values("op_type"), lines, strict=True):
        kind = f" ({op_type if line is None else f'line {line}'})" if counts[name] > 1 else ""
        found.append(shorten(name or UNNAMED, _NAME_WIDTH - len(kind)) + kind)
    return found


def _operators(view_model: ViewModel, rows: int) -> list[str]:
    operators = view_model.operators
    top = view_model.top_operators(len(operators.names))
    all_ns = max(sum(host_ns for _, host_ns, _ in top), 1)
    lines = ["", f"{operators.label:<{_NAME_WIDTH}} {'host':>9} {'share':>6} {'count':>7}"]
    lines += [
        f"{shorten(name, _NAME_WIDTH):<{_NAME_WIDTH}} {duration(host_ns):>9} "
        f"{percent(host_ns / all_ns):>6} {count:>7,}"
        for name, host_ns, count in top[:rows]
    ]
    if len(top) > rows:
        lines.append(f"({plural(len(top) - rows, f'more {operators.label}')})")
    return lines
