"""Figure: how busy each device was over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.idle import busy_intervals
from epprof_nb.views.plots.style import LINES, axes_of, quiet, say, time_axis

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes

    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.views.view_model import ViewModel


def busy_shares(
    profile: ProfileData, device_id: int, edges: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the share of each bin in which a device was busy.

    Parameters
    ----------
    profile
        The profile.
    device_id
        The device.
    edges
        float64 array, shape ``(n + 1,)``: the bins' edges, nanoseconds, ascending.

    Returns
    -------
    shares
        float64 array, shape ``(n,)``, 0 to 1.
    """
    starts, ends = busy_intervals(profile, device_id)
    if not len(starts):
        return np.zeros(len(edges) - 1)
    times = np.stack([starts, ends], axis=1).reshape(-1)
    busy = np.cumsum(np.stack([np.zeros_like(starts), ends - starts], axis=1).reshape(-1))
    shares: npt.NDArray[np.float64] = np.diff(np.interp(edges, times, busy)) / np.diff(edges)
    return shares


def utilisation(prepared: ViewModel, ax: Axes | None, bins: int) -> Axes:
    """Draw utilisation; see `epprof_nb.views.plots.figures.Figures.utilisation`."""
    axes = axes_of(ax, (6.4, 2.0))
    quiet(axes)
    profile = prepared.profile
    low, high = prepared.time_range
    edges = np.linspace(low, high, bins + 1)
    devices = np.unique(profile.tables["activities"]["device_id"])
    devices = devices[devices >= 0]
    for number, device in enumerate(devices.tolist()):
        colour = LINES[number % len(LINES)]
        axes.stairs(
            busy_shares(profile, device, edges) * 100, edges, fill=len(devices) == 1,
            color=colour, label=f"device {device}", linewidth=1,
        )  # fmt: skip
    if len(devices) > 1:
        axes.legend(frameon=False)
    axes.set_xlim(low, high)
    axes.set_ylim(0, 100)
    axes.set_ylabel("device busy (%)")
    time_axis(axes.xaxis, high, "time")
    if not len(devices):
        say(axes, "No device did any work.")
    return axes
