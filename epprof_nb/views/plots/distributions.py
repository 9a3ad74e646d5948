"""Figures: distributions of kernel durations and of idle intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.index import index_of
from epprof_nb.analysis.breakdowns.by_kernel import kernel_table
from epprof_nb.analysis.breakdowns.by_range import NO_NAME
from epprof_nb.analysis.utilisation.gaps import gap_table
from epprof_nb.data.kernel_names import short_name
from epprof_nb.util import palette
from epprof_nb.util.format import shorten, with_glyphs
from epprof_nb.views.plots.style import (
    axes_or_new,
    explain_empty,
    hide_frame,
    log_time_axis,
    time_axis,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt
    from matplotlib.axes import Axes

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData

_MAX_POINTS = 1000
"""Maximum number of steps of a distribution; more would not be visible."""
_BINS_PER_DECADE = 10
_LABEL_CHARACTERS = 40


def kernels(profile: ProfileData, ax: Axes | None, top: int, kind: str) -> Axes:
    """Draw durations of kernels; see `epprof_nb.views.plots.figures.Figures.kernels`."""
    if kind not in ("ecdf", "hist"):
        raise ValueError(f"kind must be 'ecdf' or 'hist', not {kind!r}")
    axes = axes_or_new(ax, (6.4, 3.0))
    hide_frame(axes)
    activities = profile.tables["activities"]
    rows = np.flatnonzero(activities.names("kind").equals("kernel"))
    durations = activities["duration_ns"][rows]
    rows, durations = rows[durations > 0], durations[durations > 0]
    if not len(rows):
        explain_empty(axes, "No kernels to show.")
        return axes
    kernel_names = activities.names("name").take(rows)
    names = kernel_table(index_of(profile)).values("name")[:top]
    edges = log_edges(durations)
    for number, (name, label) in enumerate(zip(names, kernel_labels(names), strict=True)):
        of_name = kernel_names.codes < 0 if name is None else kernel_names.equals(name)
        values = np.sort(durations[of_name])
        if not len(values):
            continue
        label = label.replace("$", r"\$")  # noqa: PLW2901
        colour = palette.SERIES[number % len(palette.SERIES)]
        if kind == "ecdf":
            axes.step(*distribution(values), where="post", color=colour, label=label)
        else:
            axes.stairs(np.histogram(values, edges)[0], edges, color=colour, label=label)
    axes.set_xscale("log")
    log_time_axis(axes.xaxis, "kernel duration")
    if kind == "ecdf":
        axes.set_ylim(0, 1)
    axes.set_ylabel("share of launches" if kind == "ecdf" else "launches")
    axes.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    return axes


def kernel_labels(names: Sequence[str | None]) -> list[str]:
    """Return the short names of kernels, or the full name if a short name is not unique."""
    short_names = [None if name is None else short_name(name) for name in names]
    return [
        with_glyphs(shorten(label, _LABEL_CHARACTERS))
        for label in (
            short if short and short_names.count(short) == 1 else name or NO_NAME
            for short, name in zip(short_names, names, strict=True)
        )
    ]


def gaps(profile: ProfileData, ax: Axes | None, min_ns: int) -> Axes:
    """Draw idle intervals; see `epprof_nb.views.plots.figures.Figures.gaps`."""
    axes = axes_or_new(ax, (6.4, 2.4))
    hide_frame(axes)
    lengths = gap_table(index_of(profile), min_ns)["duration_ns"]
    if not len(lengths):
        explain_empty(axes, "No idle interval is that long.")
        return axes
    edges = log_edges(lengths)
    idle = np.histogram(lengths, edges, weights=lengths)[0]
    axes.stairs(idle, edges, fill=True, color=palette.KERNEL)
    axes.set_xscale("log")
    log_time_axis(axes.xaxis, "length of an idle interval")
    time_axis(axes.yaxis, float(idle.max()), "idle time")
    return axes


def distribution(
    ascending: IntArray,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return at most 1000 of the values, and the share of values up to each.

    Parameters
    ----------
    ascending
        int64 array in ascending order, not empty.
    """
    count = len(ascending)
    ranks = np.unique(np.linspace(1, count, min(count, _MAX_POINTS)).astype(np.int64))
    values = ascending[ranks - 1].astype(np.float64)
    # Start with a step from 0, so that a single value is visible too.
    return np.append(values[:1], values), np.append(0.0, ranks / count)


def log_edges(values: IntArray) -> npt.NDArray[np.float64]:
    """Return the edges of logarithmic bins, ten per decade, around positive `values`."""
    low = np.floor(np.log10(values.min()) * _BINS_PER_DECADE)
    high = np.floor(np.log10(values.max()) * _BINS_PER_DECADE) + 1
    return 10 ** (np.arange(low, high + 1) / _BINS_PER_DECADE)
