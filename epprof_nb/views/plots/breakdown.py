"""Figure: a breakdown as bars, the total with the self time inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.util import palette
from epprof_nb.views.plots.style import (
    axes_or_new,
    explain_empty,
    hide_frame,
    label_rows,
    time_axis,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_NAME_COLUMNS = {
    "op": "name", "op_type": "op_type", "node": "name", "kernel": "short_name", "line": "source",
    "stream": "stream",
}  # fmt: skip


def breakdown(frame: pd.DataFrame, by: str, ax: Axes | None, top: int) -> Axes:
    """Draw the `top` rows of a breakdown; see `epprof_nb.views.plots.figures.Figures.breakdown`."""
    is_host = not (frame["device_ns"] > 0).any() and "host_ns" in frame
    total, own = ("host_ns", "self_host_ns") if is_host else ("device_ns", "self_device_ns")
    rows = frame[frame[total] > 0].nlargest(top, total)
    axes = axes_or_new(ax, (6.4, 0.9 + 0.24 * max(len(rows), 2)))
    hide_frame(axes)
    positions = list(range(len(rows)))
    if own in rows:
        axes.barh(positions, rows[total], height=0.66, color=palette.TOTAL, label="total")
        axes.barh(positions, rows[own], height=0.66, color=palette.KERNEL, label="self")
        if len(rows):
            axes.legend(loc="lower right", frameon=False)
    else:
        axes.barh(positions, rows[total], height=0.66, color=palette.KERNEL)
    label_rows(axes, [str(name) for name in rows[_NAME_COLUMNS[by]]])
    time_axis(axes.xaxis, float(rows[total].max()) if len(rows) else 0, f"{total[:-3]} time")
    if not len(rows):
        explain_empty(axes, "No time to show.")
    return axes
