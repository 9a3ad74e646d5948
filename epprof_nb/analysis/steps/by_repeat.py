"""by_repeat: wall, device and idle time of each repeat of the code, and statistics of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.device_work import KERNEL, MEMCPY, MEMSET
from epprof_nb.analysis.base.result_table import ResultTable
from epprof_nb.analysis.base.whole_repeats import whole_repeats
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.intervals import covered_before
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.repeats import RepeatNames, repeat_bounds, repeat_names
from epprof_nb.util.format import duration, sparkline

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

_MAX_POINTS = 120
"""Points of the strip chart; of more repeats, each point is a mean of several."""


def repeat_table(index: ProfileIndex) -> ResultTable:
    """Return the columns of `by_repeat`."""
    profile = index.profile
    activities = profile.tables["activities"]
    starts, ends = repeat_bounds(profile.info)
    n = len(starts)
    # A damaged file may have repeats in its tables that its info lacks.
    repeat = activities["repeat"]
    of_repeat = np.where(index.is_device_work & (repeat >= 0) & (repeat < n), repeat, MISSING)

    def total(values: np.ndarray) -> np.ndarray:
        return sum_by_group(of_repeat, values.astype(np.int64), n)[:-1]

    before, until = (covered_before(*index.busy(), times) for times in (starts, ends))
    busy = until - before
    return ResultTable(
        {
            "repeat": np.arange(n),
            "start_ns": starts,
            "wall_ns": ends - starts,
            "device_ns": total(activities["duration_ns"]),
            "busy_ns": busy,
            "idle_ns": ends - starts - busy,
            "kernels": total(index.kinds == KERNEL),
            "memcpys": total(index.kinds == MEMCPY),
            "memsets": total(index.kinds == MEMSET),
            "bytes": total(np.maximum(activities["bytes"], 0)),
        }
    )


@dataclass(frozen=True, slots=True)
class RepeatStatistics:
    """Statistics of the wall times (ns) of two or more repeats; ``std_ns`` is that of a sample.

    ``names`` is how to call them. ``points_ns`` has the wall time of each repeat in order; of very
    many, means of consecutive ones. ``phases`` says how a training step spends its time, if known.
    """

    names: RepeatNames
    count: int
    mean_ns: float
    median_ns: float
    std_ns: float
    points_ns: tuple[float, ...]
    phases: str = ""

    @property
    def text(self) -> str:
        """The statistics as ``5 repeats: mean 1.20 ms, median 1.19 ms, ...``."""
        return (
            f"{self.count:,} {self.names.word}s: mean {duration(self.mean_ns)}, median "
            f"{duration(self.median_ns)}, standard deviation {duration(self.std_ns)}{self.phases}"
        )

    @property
    def line(self) -> str:
        """The statistics and a strip chart of the repeats as text."""
        return f"{self.text}   {sparkline(self.points_ns)}"


def repeat_statistics(index: ProfileIndex) -> RepeatStatistics | None:
    """Return the statistics of the whole repeats; None if there are fewer than two."""
    starts, ends = repeat_bounds(index.profile.info)
    whole = index.cached(whole_repeats)
    names = repeat_names(index.profile.info)
    return wall_statistics((ends - starts)[whole], names._replace(first=names.first + whole.start))


def wall_statistics(
    wall_ns: IntArray, names: RepeatNames, phases: str = ""
) -> RepeatStatistics | None:
    """Return the statistics of some wall times, in order; None if there are fewer than two."""
    wall = wall_ns.astype(np.float64)
    if len(wall) < 2:
        return None
    parts = np.array_split(wall, min(len(wall), _MAX_POINTS))
    return RepeatStatistics(
        names=names,
        count=len(wall),
        mean_ns=float(wall.mean()),
        median_ns=float(np.median(wall)),
        std_ns=float(wall.std(ddof=1)),
        points_ns=tuple(float(part.mean()) for part in parts),
        phases=phases,
    )
