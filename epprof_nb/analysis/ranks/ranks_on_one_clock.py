"""Ranks: the profiles of a job's ranks, on one clock."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from epprof_nb.analysis.base.index import index_of
from epprof_nb.analysis.ranks.collectives_of_rank import RankFacts, facts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.data.profile_data import ProfileData

_T = TypeVar("_T")


@dataclass(frozen=True)
class Ranks:
    """The profiles of ranks and their clocks.

    Parameters
    ----------
    profiles
        Rank to profile. A mapping may read them on demand: each is needed once, and again if
        some rank was late.
    begin_ns
        Rank to the start of its profile on the clock of all results, nanoseconds. By default, the
        profiles are placed by `begins_by_system_clock`.
    error_ns
        Rank to the error of its clock, nanoseconds; 0 where it is left out.

    Examples
    --------
    >>> from epprof_nb.testing import synthetic_profile
    >>> profile = synthetic_profile(activities=100)
    >>> Ranks({0: profile, 1: profile}, {0: 5_000, 1: 7_000}).offset_ns(1)
    7000
    """

    profiles: Mapping[int, ProfileData]
    begin_ns: Mapping[int, int] = field(default_factory=dict)
    error_ns: Mapping[int, int] = field(default_factory=dict)
    _facts: dict[int, RankFacts] = field(default_factory=dict, compare=False, repr=False)
    _results: dict[object, object] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.begin_ns:
            begins = begins_by_system_clock({r: p.info for r, p in self.profiles.items()})
            object.__setattr__(self, "begin_ns", begins)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self.profiles))

    def __len__(self) -> int:
        return len(self.profiles)

    def index(self, rank: int) -> ProfileIndex:
        """Return the index of the profile of a rank, which keeps the profile in memory."""
        return index_of(self.profiles[rank])

    def facts(self, rank: int) -> RankFacts:
        """Return the facts of a rank, kept without its profile."""
        if rank not in self._facts:
            self._facts[rank] = facts_of(self.index(rank))
        return self._facts[rank]

    def offset_ns(self, rank: int) -> int:
        """Return the offset from the clock of a rank's profile to the clock of all results, ns."""
        return self.begin_ns[rank]

    def clock_error_ns(self) -> int:
        """Return the largest error of a time difference between two ranks."""
        errors = sorted((int(self.error_ns.get(rank, 0)) for rank in self), reverse=True)
        return min(sum(errors[:2]), sys.maxsize // 4)

    def cached(self, compute: Callable[[Ranks], _T]) -> _T:
        """Return ``compute(ranks)``, computed once."""
        if compute not in self._results:
            self._results[compute] = compute(self)
        return self._results[compute]  # type: ignore[return-value]


def begins_by_system_clock(infos: Mapping[int, Mapping[str, Any]]) -> dict[int, int]:
    """Return where profiles begin after the first of them, by the system clock.

    Parameters
    ----------
    infos
        Rank to the info of its profile.

    Returns
    -------
    begin_ns
        Rank to nanoseconds; all 0 if one of the profiles does not say when it began.
    """
    begins = {rank: info.get("started_at_epoch_ns") for rank, info in infos.items()}
    stated = [begin for begin in begins.values() if isinstance(begin, int)]
    if len(stated) < len(begins):
        return dict.fromkeys(begins, 0)
    first = min(stated, default=0)
    return {rank: begin - first for rank, begin in zip(begins, stated, strict=True)}
