"""Time that profiling added to a profile, as runs that were not profiled have shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray


@dataclass(frozen=True, slots=True)
class AddedTime:
    """Time that profiling added to the wall time.

    Attributes
    ----------
    total_ns
        Its sum.
    wall_ns
        Wall time of the profile.
    """

    total_ns: int
    wall_ns: int

    def share(self) -> float | None:
        """Return it as a share of the unprofiled wall time; None if it is all of the wall time."""
        unprofiled = self.wall_ns - self.total_ns
        return self.total_ns / unprofiled if unprofiled > 0 else None

    def between(self, start: IntArray, end: IntArray) -> IntArray:
        """Return what was added in intervals (int64 arrays of one length, ns): their share of it.

        Where in the code it was added is not known.
        """
        added: IntArray = np.rint(self.total_ns * ((end - start) / max(self.wall_ns, 1))).astype(
            np.int64
        )
        return added


def added_time(index: ProfileIndex) -> AddedTime | None:
    """Return what profiling added to a profile; None if it was not measured."""
    total = (index.profile.info.get("added_ns") or {}).get("total")
    return None if total is None else AddedTime(total, index.profile.wall_ns)


def reason_without_added_time(info: dict[str, Any]) -> str:
    """Return why what profiling added could not be measured; empty if nobody asked for it."""
    return str((info.get("added_ns") or {}).get("reason", ""))
