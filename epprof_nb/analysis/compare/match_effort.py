"""Limit of the work that a comparison spends on matching ops."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Effort:
    """Remaining work, in units of the caller.

    Examples
    --------
    >>> effort = Effort(100)
    >>> effort.affords([90, 20, 30])
    [False, True, True]
    >>> effort.affords([60, 50])
    [False, True]
    """

    def __init__(self, units: int) -> None:
        self._left = units

    def affords(self, costs: Sequence[int]) -> list[bool]:
        """Return which tasks to do, and subtract their work.

        The cheapest tasks come first. Tasks of equal cost get the same answer, so their order does
        not matter.
        """
        greatest = -1
        for cost, count in sorted(Counter(costs).items()):
            if cost * count > self._left:
                break
            self._left -= cost * count
            greatest = cost
        return [cost <= greatest for cost in costs]
