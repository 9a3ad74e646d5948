"""IndexInPieces: sums of a profile whose activities are read piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.activity_sums import MEASURES, add_activities
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.arrays.intervals import CoveredUntil
from epprof_nb.data.profile_data import ProfileData

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table

COLUMNS = ("kind", "start_ns", "end_ns", "duration_ns", "op_id", "bytes")
"""Columns of the activities that the index reads."""


class NotInOnePassError(ValueError):
    """The activities cannot be summed piece by piece: all of them are needed at once."""


class IndexInPieces(ProfileIndex):
    """Index of a profile with more activities than memory, of which only sums are kept.

    It has the tree of the ops, the sums by op (without launch delays) and `busy_until`.

    Parameters
    ----------
    profile
        The profile without its activities and API calls.
    pieces
        The activities in the order of their starts, with `COLUMNS`.
    times
        int64 array: the times for which `busy_until` is called, in any order; none if left out.
        Then the activities may be in any order, too.

    Raises
    ------
    NotInOnePassError
        If the activities are not in that order, or if a graph launch may count or not, depending
        on other activities.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> prof = synthetic_profile(activities=100)
    >>> activities = prof.tables["activities"]
    >>> pieces = [activities.take(np.arange(i, i + 50)) for i in (0, 50)]
    >>> index = IndexInPieces(ProfileData({"ops": prof.tables["ops"]}, prof.info), pieces)
    >>> int(index.op_sums("launch")["kernels"].sum())
    97
    """

    def __init__(
        self, profile: ProfileData, pieces: Iterable[Table], times: IntArray | None = None
    ) -> None:
        super().__init__(profile)
        self._sums = np.zeros((len(MEASURES), len(self.tree) + 1), np.int64)
        self._covered = None if times is None else CoveredUntil(times)
        for piece in pieces:
            self._add(piece)

    def _add(self, activities: Table) -> None:
        if activities.names("kind").equals("graph_launch").any():
            raise NotInOnePassError("a graph launch counts if none of its nodes was recorded")
        piece = ProfileIndex(ProfileData({"activities": activities}, self.profile.info))
        ops: npt.NDArray[np.int32] = self.tree.rows(activities["op_id"]).astype(np.int32)
        add_activities(self._sums, piece, ops)
        if self._covered is not None:
            work = piece.is_device_work
            try:
                self._covered.add(activities["start_ns"][work], activities["end_ns"][work])
            except ValueError as error:
                raise NotInOnePassError(str(error)) from error

    def _compute_op_sums(self, attribution: Attribution) -> dict[str, IntArray]:
        if attribution != "launch":
            raise NotInOnePassError("only the sums by the op of the launch are known")
        return dict(zip(MEASURES, self._sums, strict=True))

    def busy_until(self, times: IntArray) -> IntArray:
        """Return `ProfileIndex.busy_until`, for times that were given."""
        if self._covered is None:
            raise NotInOnePassError("no times were given")
        return self._covered.until(times)
