"""Sums of device work by op name and activity name, for some rows or for each time chunk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epprof_nb.analysis.base.device_work import KERNEL, MEMCPY, MEMSET
from epprof_nb.arrays.groups import sum_by_group
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.thread_pool import ThreadPool

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray


class NameTotals(NamedTuple):
    """Number and total time of each name that occurs.

    ``codes`` are codes of the column of names, -1 for a missing name; ``counts`` and ``ns`` are
    int64, one value per code.
    """

    codes: IntArray
    counts: IntArray
    ns: IntArray


class RangeSums(NamedTuple):
    """Sums over some activities.

    ``counts`` are the numbers of kernels, copies and memsets, the bytes of the copies, and the
    time of all device work in ns. ``ops`` and ``names`` are this work by the name of the op that
    launched it, and by its own name.
    """

    counts: IntArray
    ops: NameTotals
    names: NameTotals


class RangeAggregator:
    """Sums over arbitrary rows of a profile's activities.

    Parameters
    ----------
    index
        Index of the profile.
    """

    def __init__(self, index: ProfileIndex) -> None:
        self._index = index
        self._activities = index.profile.tables["activities"]
        self._names = self._activities.names("short_name").codes
        # Row -1, no op, is the last element.
        codes = index.profile.tables["ops"].names("name").codes
        self._op_names = np.append(codes, np.int32(MISSING))

    def sums(
        self, rows: IntArray | slice, low: int | None = None, high: int | None = None
    ) -> RangeSums:
        """Sum up rows, with their time clipped to `low` and `high` (ns) if given."""
        start, end = self._activities["start_ns"][rows], self._activities["end_ns"][rows]
        if low is not None:
            start = np.maximum(start, low)
        if high is not None:
            end = np.minimum(end, high)
        kinds, is_work = self._index.kinds[rows], self._index.is_device_work[rows]
        time = np.maximum(end - start, 0) * is_work
        sizes = self._activities["bytes"][rows][kinds == MEMCPY]
        ops = self._op_names[self._index.activity_op[rows]]
        counts = [np.count_nonzero(kinds == kind) for kind in (KERNEL, MEMCPY, MEMSET)]
        counts += [np.maximum(sizes, 0).sum(), time.sum()]
        return RangeSums(
            np.array(counts, np.int64),
            _total_by_code(ops, is_work, time),
            _total_by_code(self._names[rows], is_work, time),
        )


def chunk_sums(index: ProfileIndex) -> list[RangeSums]:
    """Return the sums of each of the profile's time chunks."""
    aggregator = RangeAggregator(index)
    with ThreadPool(2) as pool:
        return list(pool.map(aggregator.sums, index.time_chunks.chunks))


def _total_by_code(codes: npt.NDArray[Any], is_work: BoolArray, time: IntArray) -> NameTotals:
    """Sum up the time (0 for other activities) and the number of device work by code."""
    n = int(codes.max(initial=MISSING)) + 1
    # The last sum is of missing names, which come first.
    count, total = (
        np.roll(sum_by_group(codes, values, n), 1) for values in (is_work.astype(np.int64), time)
    )
    occurring = np.flatnonzero(count)
    return NameTotals(occurring - 1, count[occurring], total[occurring])


def merge_totals(totals: Iterable[NameTotals]) -> NameTotals:
    """Add up several totals by name."""
    codes, counts, times = (np.concatenate(column) for column in zip(*totals, strict=True))
    size = int(codes.max(initial=MISSING)) + 2
    count, time = np.zeros((2, size), np.int64)
    np.add.at(count, codes + 1, counts)
    np.add.at(time, codes + 1, times)
    occurring = np.flatnonzero(count)
    return NameTotals(occurring - 1, count[occurring], time[occurring])
