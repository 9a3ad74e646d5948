"""Figure: the breakdown as bars, the total with the self time inside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.views.plots.style import KERNEL, LIGHT, axes_of, name_rows, quiet, say, time_axis

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

SUBJECTS = {
    "op": "name", "op_type": "op_type", "node": "name", "kernel": "name", "line": "source",
    "stream": "stream",
}  # fmt: skip
"""Breakdowns that can be drawn, and the column that names their rows."""


def breakdown(frame: pd.DataFrame, by: str, ax: Axes | None, top: int) -> Axes:
    """Draw the `top` rows of a breakdown; see `epprof_nb.views.plots.figures.Figures.breakdown`."""
    host = not (frame["device_ns"] > 0).any() and "host_ns" in frame
    total, own = ("host_ns", "self_host_ns") if host else ("device_ns", "self_device_ns")
    rows = frame[frame[total] > 0].nlargest(top, total)
    axes = axes_of(ax, (6.4, 0.9 + 0.24 * max(len(rows), 2)))
    quiet(axes)
    places = list(range(len(rows)))
    if own in rows:
        axes.barh(places, rows[total], height=0.66, color=LIGHT, label="with all below")
        axes.barh(places, rows[own], height=0.66, color=KERNEL, label="self")
        if len(rows):
            axes.legend(loc="lower right", frameon=False)
    else:
        axes.barh(places, rows[total], height=0.66, color=KERNEL)
    name_rows(axes, [str(name) for name in rows[SUBJECTS[by]]])
    time_axis(axes.xaxis, float(rows[total].max()) if len(rows) else 0, f"{total[:-3]} time")
    if not len(rows):
        say(axes, "No time to show.")
    return axes
