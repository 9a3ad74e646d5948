"""Plain text of a profile: the summary, the findings and the ops with the most device time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.util.format import duration, percent, shorten
from epprof_nb.views.view_model import UNNAMED

if TYPE_CHECKING:
    from epprof_nb.views.view_model import ViewModel

_NAME_WIDTH = 48


def as_text(view_model: ViewModel, *, rows: int = 12) -> str:
    """Return the summary, repeats, findings and a table of the top `rows` ops by device time."""
    summary = view_model.summary
    lines = [summary.line]
    if summary.repeats is not None:
        lines.append(f"  {summary.repeats.line}")
    for finding in view_model.findings:
        lines.append(f"  {finding.text}")
        if finding.advice:
            lines.append(f"    {finding.advice}")
    by_op = view_model.by_op
    with_work = by_op.take(by_op["device_ns"] > 0)
    shown = with_work.take(slice(0, rows))
    if len(shown):
        head = f"{'op':<{_NAME_WIDTH}} {'device':>9} {'share':>6} {'count':>7} {'kernels':>8}"
        lines += ["", head]
    columns = (shown.values(name) for name in ("name", "device_ns", "share", "count", "kernels"))
    for name, device_ns, share, count, kernels in zip(*columns, strict=True):
        lines.append(
            f"{shorten(name or UNNAMED, _NAME_WIDTH):<{_NAME_WIDTH}} {duration(device_ns):>9} "
            f"{percent(share):>6} {count:>7,} {kernels:>8,}"
        )
    omitted = len(with_work) - len(shown)
    if omitted > 0:
        lines.append(f"({omitted:,} more ops)")
    return "\n".join(lines)
