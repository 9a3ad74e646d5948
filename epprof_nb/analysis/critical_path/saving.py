"""Time that a profile would end sooner if some of its work did not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epprof_nb.analysis.critical_path.chain import CriticalPath

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.critical_path.events import Removed


def saving_without(index: ProfileIndex, removed: Removed) -> int:
    """Return how much shorter the critical path is without some work, ns.

    It is less than the time of the work where other work is the next limit.

    Examples
    --------
    >>> from epprof_nb.analysis.base.index import ProfileIndex
    >>> from epprof_nb.analysis.critical_path.events import Removed
    >>> from epprof_nb.testing import synthetic_profile
    >>> index = ProfileIndex(synthetic_profile(activities=100))
    >>> saving_without(index, Removed())
    0
    """
    path = index.cached(CriticalPath, "launch")
    if not path.length_ns:
        return 0
    return max(path.length_ns - path.input.length_without(removed), 0)
