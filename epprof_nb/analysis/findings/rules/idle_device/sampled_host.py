"""The function that the host ran in intervals of time, by samples of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.analysis.utilisation.host_activity import functions_of_host
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

_FEWEST = 3
"""Samples below which chance chooses the function."""
_MAIN = 0.5
"""Minimum share of one function in the samples for it to be named."""


def sampled_host(index: ProfileIndex, start_ns: IntArray, end_ns: IntArray) -> int:
    """Return the main line of the user's function that the host ran for most of some intervals.

    It is a row of ``stacks``; `MISSING` if there are too few samples, or no function has half of
    them.
    """
    found = functions_of_host(index, start_ns, end_ns)
    if found.samples.sum() < _FEWEST or found.share[0] < _MAIN:
        return MISSING
    return int(found.stack[0])
