"""Figure: how busy each device was over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.devices import device_labels
from epprof_nb.analysis.utilisation.counters import busy_shares
from epprof_nb.util import palette
from epprof_nb.views.plots.style import axes_or_new, explain_empty, hide_frame, time_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from epprof_nb.views.view_model import ViewModel


def utilisation(model: ViewModel, ax: Axes | None, bins: int) -> Axes:
    """Draw utilisation; see `epprof_nb.views.plots.figures.Figures.utilisation`."""
    axes = axes_or_new(ax, (6.4, 2.0))
    hide_frame(axes)
    low, high = model.time_range
    edges = np.linspace(low, high, bins + 1)
    devices = [device for device in model.index.device_ids if device >= 0]
    labels = device_labels(model.profile.info, devices)
    for number, device in enumerate(devices):
        axes.stairs(
            busy_shares(model.index, device, edges) * 100, edges, fill=len(devices) == 1,
            color=palette.SERIES[number % len(palette.SERIES)], label=labels[device],
            linewidth=1,
        )  # fmt: skip
    if len(devices) > 1:
        axes.legend(frameon=False)
    axes.set_xlim(low, high)
    axes.set_ylim(0, 100)
    axes.set_ylabel("device busy (%)")
    time_axis(axes.xaxis, high, "time")
    if not devices:
        explain_empty(axes, "No device work was recorded.")
    return axes
