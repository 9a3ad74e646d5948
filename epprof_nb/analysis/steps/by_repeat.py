"""by_repeat: wall, device and idle time of each repeat of the code, and statistics of these."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.device_work import KERNEL, MEMCPY, MEMSET
from epprof_nb.analysis.base.missing_records import busy_within, launches_without_record
from epprof_nb.analysis.base.processes import process_by_process
from epprof_nb.analysis.base.result_table import OptionalColumn, ResultTable
from epprof_nb.analysis.base.unknown_device_times import missing_if_unknown
from epprof_nb.analysis.base.whole_repeats import whole_repeats
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.repeats import RepeatNames, repeat_at, repeat_bounds, repeat_names
from epprof_nb.util.format import duration, sparkline

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

_MAX_POINTS = 120
"""Maximum number of points of the strip chart; with more repeats, each point is a mean."""


@missing_if_unknown
@process_by_process
def repeat_table(index: ProfileIndex) -> ResultTable:
    """Return the columns of `Profile.by_repeat`."""
    profile = index.profile
    activities = profile.tables["activities"]
    starts, ends = repeat_bounds(profile.info)
    n = len(starts)
    # A damaged file may have repeats in its tables that its info lacks.
    repeat = activities["repeat"]
    of_repeat = np.where(index.is_device_work & (repeat >= 0) & (repeat < n), repeat, MISSING)

    def total(values: np.ndarray) -> np.ndarray:
        return sum_by_group(of_repeat, values.astype(np.int64), n)[:-1]

    busy, is_unknown = busy_within(index, starts, ends)
    missing = {
        kind: _begun_in(index, rows, starts, ends)
        for kind, rows in index.cached(launches_without_record).items()
    }
    some = np.zeros(n, np.bool_)
    for of_kind in missing.values():
        some |= of_kind
    return ResultTable(
        {
            "repeat": np.arange(n),
            "start_ns": starts,
            "wall_ns": ends - starts,
            "device_ns": OptionalColumn(total(activities["duration_ns"]), some),
            "busy_ns": OptionalColumn(busy, is_unknown),
            "idle_ns": OptionalColumn(ends - starts - busy, is_unknown),
            **{
                f"{kind}s": OptionalColumn(total(index.kinds == code), missing.get(kind, some))
                for kind, code in (("kernel", KERNEL), ("memcpy", MEMCPY), ("memset", MEMSET))
            },
            "bytes": OptionalColumn(total(np.maximum(activities["bytes"], 0)), some),
        }
    )


def _begun_in(
    index: ProfileIndex, calls: IntArray, starts: IntArray, ends: IntArray
) -> npt.NDArray[np.bool_]:
    """Return a mask of the repeats in which one of these API calls began."""
    at = repeat_at(starts, ends, index.profile.tables["api_calls"]["start_ns"][calls])
    return np.bincount(at[at >= 0], minlength=len(starts)) > 0


@dataclass(frozen=True, slots=True)
class RepeatStatistics:
    """Statistics of the wall times (ns) of two or more repeats; ``std_ns`` is of a sample.

    ``names`` has the word for them. ``points_ns`` has the wall time of each repeat in order; if
    there are very many, means of consecutive ones. ``phases`` says how a training step spends its
    time, if known.
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
        """The statistics as ``5 repeats: mean 1.20 ms, median 1.19 ms, ...``.

        Repeats of a cell are the whole profile, but its reader may think of one of them.
        """
        total = "; findings add up all repeats" if self.names.unit == "repeat" else ""
        return (
            f"{self.count:,} {self.names.unit}s: mean {duration(self.mean_ns)}, median "
            f"{duration(self.median_ns)}, standard deviation {duration(self.std_ns)}{self.phases}"
            f"{total}"
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
