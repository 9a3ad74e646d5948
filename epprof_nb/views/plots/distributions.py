"""Figures: how long kernels take, and how long devices wait."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.by_kernel import by_kernel
from epprof_nb.analysis.idle import gaps as idle_gaps
from epprof_nb.util.format import shorten
from epprof_nb.views.plots.style import (
    KERNEL,
    LINES,
    axes_of,
    log_time_axis,
    plain,
    quiet,
    say,
    time_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData

_POINTS = 1000
"""Steps of a distribution at most: more could not be told apart."""
_BINS_A_DECADE = 10


def kernels(profile: ProfileData, ax: Axes | None, top: int, kind: str) -> Axes:
    """Draw durations of kernels; see `epprof_nb.views.plots.figures.Figures.kernels`."""
    if kind not in ("ecdf", "hist"):
        raise ValueError(f"kind must be 'ecdf' or 'hist', not {kind!r}")
    axes = axes_of(ax, (6.4, 3.0))
    quiet(axes)
    activities = profile.tables["activities"]
    rows = np.flatnonzero(activities.names("kind").equals("kernel"))
    durations = activities["duration_ns"][rows]
    rows, durations = rows[durations > 0], durations[durations > 0]
    if not len(rows):
        say(axes, "No kernels to show.")
        return axes
    names = activities.names("name").take(rows)
    frame = by_kernel(profile).head(top)
    edges = log_edges(durations)
    labels = kernel_labels(frame["name"].tolist())
    for number, name in enumerate(frame["name"].tolist()):
        values = np.sort(durations[names.equals(name)])
        if not len(values):
            continue
        label = labels[number].replace("$", r"\$")
        colour = LINES[number % len(LINES)]
        if kind == "ecdf":
            axes.step(*distribution(values), where="post", color=colour, label=label)
        else:
            counts = np.histogram(values, edges)[0]
            axes.stairs(counts, edges, color=colour, label=label)
    axes.set_xscale("log")
    log_time_axis(axes.xaxis, "duration of a kernel")
    if kind == "ecdf":
        axes.set_ylim(0, 1)
    axes.set_ylabel("share of launches" if kind == "ecdf" else "launches")
    axes.legend(frameon=False, fontsize="small", loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    return axes


def kernel_labels(names: list[str]) -> list[str]:
    """Return the kernels' own names without namespaces and templates, where these differ."""
    own = [
        re.split(r"[<(]", name.replace("(anonymous namespace)::", ""))[0].split("::")[-1].strip()
        for name in names
    ]
    return [
        plain(shorten(short if short and own.count(short) == 1 else name, 40))
        for short, name in zip(own, names, strict=True)
    ]


def gaps(profile: ProfileData, ax: Axes | None, min_ns: int) -> Axes:
    """Draw idle stretches; see `epprof_nb.views.plots.figures.Figures.gaps`."""
    axes = axes_of(ax, (6.4, 2.4))
    quiet(axes)
    lengths = idle_gaps(profile, min_ns)["duration_ns"].to_numpy(np.int64)
    if not len(lengths):
        say(axes, "No device waited that long.")
        return axes
    edges = log_edges(lengths)
    idle = np.histogram(lengths, edges, weights=lengths)[0]
    axes.stairs(idle, edges, fill=True, color=KERNEL)
    axes.set_xscale("log")
    log_time_axis(axes.xaxis, "length of an idle stretch")
    time_axis(axes.yaxis, float(idle.max()), "idle time")
    return axes


def distribution(
    ascending: IntArray,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return values and the share of values up to each, at most 1000 of them.

    Parameters
    ----------
    ascending
        int64 array, not empty, in ascending order.
    """
    count = len(ascending)
    ranks = np.unique(np.linspace(1, count, min(count, _POINTS)).astype(np.int64))
    values = ascending[ranks - 1].astype(np.float64)
    # From nothing up to the first value, so that a single one is seen too.
    return np.append(values[:1], values), np.append(0.0, ranks / count)


def log_edges(values: IntArray) -> npt.NDArray[np.float64]:
    """Return edges of bins, ten a decade, around positive `values`."""
    low = np.floor(np.log10(values.min()) * _BINS_A_DECADE)
    high = np.floor(np.log10(values.max()) * _BINS_A_DECADE) + 1
    return 10 ** (np.arange(low, high + 1) / _BINS_A_DECADE)
