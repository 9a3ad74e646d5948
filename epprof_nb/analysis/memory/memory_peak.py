"""Bytes of memory in use over time, and the peak: the time at which most bytes are in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.data.schema import MISSING_DELTA

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table

ALWAYS = np.iinfo(np.int64).max
"""End of a life that the profile does not see."""
ALWAYS_BEFORE = -ALWAYS
"""Begin of a life that began before the profile."""


class InUse:
    """The bytes in use over time.

    Parameters
    ----------
    index
        The profile.

    Attributes
    ----------
    peak_ns : int
        Time of the peak: when the blocks of all pools hold most, since the profile's start.
    peak_bytes : int
        Their bytes then.
    time, nbytes : int64 arrays
        Each change of the sum, and the sum after it; the first is that at the begin.
    """

    def __init__(self, index: ProfileIndex) -> None:
        blocks = index.profile.tables["memory_blocks"]
        self.begin, self.end = lifetimes(blocks)
        self._size = blocks["bytes"]
        every = np.ones(len(blocks), np.bool_)
        self.time, self.nbytes = self._totals(every)
        self.peak_ns, self.peak_bytes = self.peak_of(every)

    def peak_of(self, mask: BoolArray) -> tuple[int, int]:
        """Return when some of the blocks hold most, and their bytes then; zeros without any."""
        time, nbytes = self._totals(mask)
        if not len(time):
            return 0, 0
        peak = int(nbytes.argmax())
        return int(time[peak]), int(nbytes[peak])

    def _totals(self, mask: BoolArray) -> tuple[IntArray, IntArray]:
        begin, end, size = self.begin[mask], self.end[mask], self._size[mask]
        # At one time, releases come before allocations.
        time = np.concatenate([end, begin]).clip(min=0)
        change = np.concatenate([-size, size])
        is_seen = time != ALWAYS
        order = np.argsort(time[is_seen], kind="stable")
        time, total = time[is_seen][order], np.cumsum(change[is_seen][order])
        is_last = np.append(time[1:] != time[:-1], True)[: len(time)]
        return time[is_last], total[is_last]

    def at(self, time_ns: int) -> BoolArray:
        """Return the mask of the blocks in use right after a time."""
        held: BoolArray = (self.begin.clip(min=0) <= time_ns) & (self.end > time_ns)
        return held


def lifetimes(table: Table) -> tuple[IntArray, IntArray]:
    """Return begin and end of each block or segment; of those not in the profile, the limits."""
    begin, end = table["allocated_ns"], table["freed_ns"]
    return (
        np.where(begin == MISSING_DELTA, ALWAYS_BEFORE, begin),
        np.where(end == MISSING_DELTA, ALWAYS, end),
    )


def moment(index: ProfileIndex, at: str | int) -> int:
    """Return the time that ``"peak"``, ``"end"`` or a number of nanoseconds stands for.

    Raises
    ------
    ValueError
        If `at` is another text.
    """
    if at == "peak":
        return index.cached(InUse).peak_ns
    if at == "end":
        return ALWAYS - 1
    if isinstance(at, str):
        raise ValueError(  # noqa: TRY004 - a text may be right
            f"unknown time {at!r}; choose 'peak', 'end' or nanoseconds since the profile's start"
        )
    return int(at)


def last_ns(index: ProfileIndex) -> int:
    """Return the last time at which the memory in use is known: the end, or a later change."""
    last: list[int] = index.cached(InUse).time[-1:].tolist()
    return max([wall_of(index.profile), *last])
