"""Mean, extremes and percentiles of values within groups, by one sort and no loop."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.groups import add_up

_Int = npt.NDArray[np.int64]


class Spread:
    """How the values of each group are spread.

    Parameters
    ----------
    groups
        int64 array: the group of each value, from 0.
    values
        int64 array of the same length.
    n
        Number of groups; those without a value are 0 in every answer.
    weights
        int64 array, at least 1: how often each value counts; once where left out.

    Attributes
    ----------
    count, total
        int64 arrays, shape ``(n,)``: values of each group, and their sum.
    """

    __slots__ = ("_ascending", "_begin", "_low", "_passed", "_span", "count", "total")

    def __init__(self, groups: _Int, values: _Int, n: int, weights: _Int | None = None) -> None:
        if weights is not None and (weights == 1).all():
            weights = None
        # Values may be kept as one integer with their group; see `_sorted_within`.
        self._low, self._span = 0, 0
        if weights is None:
            self.count = np.bincount(groups, minlength=n).astype(np.int64)
            self.total = add_up(groups, values, n)[:-1]
            self._ascending, self._low, self._span = _sorted_within(groups, values, n)
            self._passed = None
        else:
            self.count = add_up(groups, weights, n)[:-1]
            self.total = add_up(groups, values * weights, n)[:-1]
            order = np.lexsort((values, groups))
            self._ascending = values[order]
            self._passed = np.cumsum(weights[order])
        self._begin = np.cumsum(self.count) - self.count

    @property
    def mean(self) -> _Int:
        """Mean of each group, rounded; int64."""
        return np.rint(self.total / np.maximum(self.count, 1)).astype(np.int64)

    def percentile(self, percent: int) -> _Int:
        """Return the least value that `percent` of each group's values do not exceed; int64.

        It is one of the values. 0 gives the smallest, 100 the largest.
        """
        if not len(self._ascending):
            return np.zeros(len(self.count), np.int64)
        wanted = self._begin + np.maximum((self.count * percent + 99) // 100, 1)
        at = wanted - 1
        if self._passed is not None:
            at = np.searchsorted(self._passed, wanted)
        at = np.minimum(at, len(self._ascending) - 1)
        found = self._ascending[at]
        if self._span:
            found = found % self._span + self._low
        return np.where(self.count > 0, found, 0)


def _sorted_within(groups: _Int, values: _Int, n: int) -> tuple[_Int, int, int]:
    """Return the values in order of group, then value; or integers that hold both.

    Of the latter the value is ``integer % span + low``; ``low`` and ``span`` come second and
    third, a span of 0 standing for values as they are.
    """
    low = int(values.min(initial=0))
    span = int(values.max(initial=0)) - low + 1
    if n * span < 2**62:
        # One integer of both sorts many times faster than an index of two columns.
        keys = groups * span
        keys += values
        keys -= low
        keys.sort()
        return keys, low, span
    return values[np.lexsort((values, groups))], 0, 0
