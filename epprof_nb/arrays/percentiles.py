"""Mean, extremes and percentiles of the values of groups, by one sort without a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from epprof_nb.arrays.groups import sum_by_group

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.arrays.types import IntArray

_Number = TypeVar("_Number", bound=np.signedinteger[Any])
_LARGEST = np.nextafter(2.0**63, 0)
"""The largest float that int64 holds."""
_FEW_MORE = 2
"""Values are repeated by their weights if there are then at most this many times as many."""


class GroupStatistics:
    """Mean and percentiles of the values of each group.

    Parameters
    ----------
    groups
        Integer array: the group of each value, from 0.
    values
        int64 array of the same length.
    n
        Number of groups; all statistics of a group without values are 0.
    weights
        int64 array, at least 1: how often each value counts; once if None.

    Attributes
    ----------
    count, total
        int64 arrays, shape ``(n,)``: number of values of each group, and their sum.

    Examples
    --------
    >>> statistics = GroupStatistics(np.array([0, 0, 1]), np.array([10, 20, 5]), 2)
    >>> statistics.mean.tolist(), statistics.percentile(100).tolist()
    ([15, 5], [20, 5])
    """

    __slots__ = ("_begin", "_cumulative", "_low", "_sorted", "_span", "count", "total")

    def __init__(
        self,
        groups: npt.NDArray[np.signedinteger[Any]],
        values: IntArray,
        n: int,
        weights: IntArray | None = None,
    ) -> None:
        # Sorting a few values more is many times faster than sorting rows by two columns. The sum
        # is a float, because weights of damaged files may overflow.
        if weights is not None and weights.sum(dtype=float) <= _FEW_MORE * len(weights):
            groups, values = _repeated(groups, weights), _repeated(values, weights)
            weights = None
        # Each value may be stored with its group in one integer; see `_sorted_by_group`.
        self._low, self._span = 0, 0
        if weights is None:
            self.total = sum_by_group(groups, values, n)[:-1]
            self._sorted, self._low, self._span = _sorted_by_group(groups, values, n)
            if self._span:
                bounds = np.arange(n + 1, dtype=self._sorted.dtype) * self._span
                self.count = np.diff(np.searchsorted(self._sorted, bounds))
            else:
                self.count = np.bincount(groups, minlength=n)
            self._cumulative = None
        else:
            self.count = sum_by_group(groups, weights, n)[:-1]
            self.total = sum_by_group(groups, values * weights, n)[:-1]
            order = np.lexsort((values, groups))
            self._sorted = values[order]
            self._cumulative = np.cumsum(weights[order])
        self._begin = np.cumsum(self.count) - self.count

    @property
    def mean(self) -> IntArray:
        """Rounded mean of each group, int64."""
        means = np.rint(self.total / np.maximum(self.count, 1))
        return np.minimum(means, _LARGEST).astype(np.int64)

    def percentile(self, percent: int) -> IntArray:
        """Return the smallest value that at least `percent` of a group's values do not exceed.

        The result (int64) is one of the values: 0 gives the smallest, 100 the largest.
        """
        if not len(self._sorted):
            return np.zeros(len(self.count), np.int64)
        rank = self._begin + np.maximum((self.count * percent + 99) // 100, 1)
        at = rank - 1
        if self._cumulative is not None:
            at = np.searchsorted(self._cumulative, rank)
        at = np.minimum(at, len(self._sorted) - 1)
        values = self._sorted[at].astype(np.int64)
        if self._span:
            values = values % self._span + self._low
        return np.where(self.count > 0, values, 0)


def _repeated(column: npt.NDArray[_Number], weights: IntArray) -> npt.NDArray[_Number]:
    more = np.flatnonzero(weights > 1)
    if not len(more):
        return column
    # The values are sorted afterwards, so their order does not matter.
    return np.concatenate([column, np.repeat(column[more], weights[more] - 1)])


def _sorted_by_group(
    groups: npt.NDArray[np.signedinteger[Any]], values: IntArray, n: int
) -> tuple[npt.NDArray[np.integer[Any]], int, int]:
    """Return the values in order of group and value, or integers that hold both.

    In such an integer, the value is ``integer % span + low``; `low` and `span` are returned second
    and third. A `span` of 0 means plain values.
    """
    low = int(values.min(initial=0))
    span = int(values.max(initial=0)) - low + 1
    if n * span < 2**62:
        # Sorting one integer is many times faster than sorting an index by two columns, and half as
        # many bytes take half the time.
        dtype: type[np.integer[Any]] = np.uint32 if n * span < 2**32 else np.int64
        keys = (values - low).astype(dtype)
        keys += groups.astype(dtype) * span
        keys.sort()
        return keys, low, span
    return values[np.lexsort((values, groups))], 0, 0
