"""Stragglers: the ranks that the others waited for at collectives, and not only by chance.

A rank that is late by chance is late as often as any other, by little, or while its threads waited
for a core of the host. Only ranks that are late far more often than by chance, or once by far more
than the ranks usually differ, are stragglers.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import comb, exp
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.ranks.collectives import matched
from epprof_nb.analysis.ranks.collectives_of_rank import NOT_ENDED

if TYPE_CHECKING:
    from epprof_nb.analysis.ranks.collectives import Group
    from epprof_nb.analysis.ranks.ranks_on_one_clock import Ranks
    from epprof_nb.arrays.types import BoolArray, IntArray

_CHANCE = 1e-3
"""Largest probability by chance of how often a straggler was the last one."""
_CHANCE_IF_LONG, _LONG_SHARE = 1e-2, 0.2
"""The same for much waiting, and its least share of the time."""
_SYSTEMATIC_SHARE = 0.02
"""Least waiting for a rank that is late again and again, as a share of the time."""
_SINGLE_SHARE = 0.05
"""Least waiting for a rank that was late once, as a share of the time."""
_CLEAR = 0.1
"""Least waiting at a collective for which a rank is late, as a share of the mean."""
_OUTLIER = 10.0
"""Least ratio of a single lateness to the lateness at the other collectives."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A collective that waits for all, with a common point before it.

    Attributes
    ----------
    group
        The collective.
    common_ns
        The last common point: when the last rank arrived at the collective before it.
    spent_ns
        Rank to the time from then to its arrival.
    blame_ns
        Rank to the total time that the other ranks waited for it here. A rank that came late
        because it had waited for another one passes that part on.
    further_ns
        Rank to the time that ranks waited elsewhere, because others had waited for it here.
    """

    group: Group
    common_ns: int
    spent_ns: dict[int, int]
    blame_ns: dict[int, float]
    further_ns: defaultdict[int, float]

    def excess_ns(self, rank: int) -> float:
        """Return how much longer a rank took than the median of the others."""
        others = [spent for other, spent in self.spent_ns.items() if other != rank]
        return self.spent_ns[rank] - float(np.median(others))

    def longest_wait_ns(self) -> int:
        """Return how long the first rank waited for the last one."""
        return max(self.spent_ns.values()) - min(self.spent_ns.values())

    def caused_ns(self, rank: int) -> float:
        """Return how long ranks waited for a rank, here and because of that elsewhere."""
        return self.blame_ns[rank] + self.further_ns[rank]


@dataclass(frozen=True, slots=True)
class Straggler:
    """A rank that the others waited for.

    Attributes
    ----------
    rank, waited_ns
        The rank, and the total time that the others waited for it.
    late
        The collectives at which they waited for it.
    judged
        Number of collectives that count.
    """

    rank: int
    waited_ns: int
    late: list[Judged]
    judged: int


def judged_collectives(ranks: Ranks) -> list[Judged]:
    """Return the collectives that wait for all, except the first one; for `Ranks.cached`.

    A rank that is late at a collective arrives late at those that follow, if the others have issued
    them already. Each delay counts once, because the time before the last common point is left out.
    """
    found: list[Judged] = []
    common: dict[frozenset[int], int] = {}
    error = ranks.clock_error_ns()
    groups = [group for group in ranks.cached(matched).groups if group.waits_for_all]
    arrivals = [
        {rank: part.start_ns + ranks.offset_ns(rank) for rank, part in group.members.items()}
        for group in groups
    ]
    order = sorted(range(len(groups)), key=lambda number: max(arrivals[number].values()))
    for group, arrived in ((groups[number], arrivals[number]) for number in order):
        members = frozenset(arrived)
        before = [at for known, at in common.items() if members <= known]
        common[members] = max(*arrived.values(), common.get(members, 0))
        if not before:
            continue
        since = max(before)
        spent = {rank: max(at - since, 0) for rank, at in arrived.items()}
        # An order that is closer than the error of the clocks is not known.
        blame = {rank: ns if ns > error else 0.0 for rank, ns in _blame(spent).items()}
        judged = Judged(group, since, spent, blame, defaultdict(float))
        _pass_on(ranks, judged, found)
        found.append(judged)
    return found


def _pass_on(ranks: Ranks, judged: Judged, earlier: list[Judged]) -> None:
    """Blame the ranks that a late rank had waited for at collectives of other communicators."""
    waits: dict[int, list[tuple[Judged, int]]] = {rank: [] for rank in judged.spent_ns}
    for other in reversed(earlier):
        last = other.common_ns + max(other.spent_ns.values())
        if last <= judged.common_ns:
            break
        for rank in other.spent_ns.keys() & waits.keys():
            blocked = other.group.members[rank].blocked_ns
            if blocked == NOT_ENDED:
                continue
            begin = max(blocked + ranks.offset_ns(rank), judged.common_ns)
            until = min(last, judged.common_ns + judged.spent_ns[rank])
            if until > begin:
                waits[rank].append((other, until - begin))
    total = {rank: sum(ns for _, ns in of_rank) for rank, of_rank in waits.items()}
    for rank, of_rank in waits.items():
        usual = float(np.median([ns for other, ns in total.items() if other != rank]))
        excess = judged.excess_ns(rank)
        if total[rank] <= usual or excess <= 0:
            continue
        moved = judged.blame_ns[rank] * min((total[rank] - usual) / excess, 1.0)
        judged.blame_ns[rank] -= moved
        for other, ns in of_rank:
            whole = sum(other.blame_ns.values()) + sum(other.further_ns.values())
            for cause in other.spent_ns if whole else ():
                share = (other.blame_ns[cause] + other.further_ns[cause]) / whole
                other.further_ns[cause] += moved * ns / total[rank] * share


def _blame(spent: dict[int, int]) -> dict[int, float]:
    """Return the total time that the others waited for each rank.

    While several ranks are missing, they share the waiting of the others.
    """
    order = sorted(spent, key=spent.__getitem__)
    blame = dict.fromkeys(spent, 0.0)
    for number in range(1, len(order)):
        step = spent[order[number]] - spent[order[number - 1]]
        missing = order[number:]
        for rank in missing:
            blame[rank] += step * number / len(missing)
    return blame


def stragglers_of(ranks: Ranks) -> list[Straggler]:
    """Return the ranks that the others waited for, and not by chance; for `Ranks.cached`."""
    of_members: defaultdict[frozenset[int], list[Judged]] = defaultdict(list)
    for judged in ranks.cached(judged_collectives):
        of_members[frozenset(judged.spent_ns)].append(judged)
    late: defaultdict[int, list[Judged]] = defaultdict(list)
    count: defaultdict[int, int] = defaultdict(int)
    for members, known in of_members.items():
        for rank in sorted(members):
            count[rank] += len(known)
            late[rank] += _late_of(ranks, rank, known)
    found = [
        Straggler(rank, round(sum(j.caused_ns(rank) for j in known)), known, count[rank])
        for rank, known in late.items()
        if known
    ]
    return sorted(found, key=lambda straggler: -straggler.waited_ns)


def _late_of(ranks: Ranks, rank: int, known: list[Judged]) -> list[Judged]:
    """Return the collectives of some ranks at which one of them was a straggler."""
    excess = np.array([judged.excess_ns(rank) for judged in known])
    blame = np.array([judged.blame_ns[rank] for judged in known])
    waiting = len(known[0].spent_ns) - 1
    span = sum(max(judged.spent_ns.values()) for judged in known)
    late = np.flatnonzero((excess > 0) & (blame > 0))
    share = blame.sum() / waiting / max(span, 1)
    chance = _CHANCE_IF_LONG if share >= _LONG_SHARE else _CHANCE
    if share >= _SYSTEMATIC_SHARE and _by_chance(known, rank) < chance / (waiting + 1):
        return [known[i] for i in late.tolist()]
    single = late[_is_outlier(excess, known)[late]]
    # Waits for a core are known for the whole profile only: those while it imports do not count.
    lost = blame[single].sum() / waiting - ranks.facts(rank).waiting_cores * span
    return [known[i] for i in single.tolist()] if lost >= _SINGLE_SHARE * span else []


def _by_chance(known: list[Judged], rank: int) -> float:
    """Return the probability that a rank is late so often, or for so long, by chance.

    By chance, each rank is equally likely to be the one to blame at a collective. The number of
    collectives has a binomial distribution then, and Hoeffding's inequality bounds the
    probability of the waiting in sum, which no single collective can make improbable.
    """
    members = len(known[0].spent_ns)
    share = 1 / members
    most = np.array([max(judged.blame_ns.values()) for judged in known])
    is_blamed = np.array([judged.blame_ns[rank] for judged in known]) == most
    clear = most > _CLEAR * most.mean()
    n, late = int(clear.sum()), int((clear & is_blamed).sum())
    by_number = sum(comb(n, k) * share**k * (1 - share) ** (n - k) for k in range(late, n + 1))
    beyond = max(float(most[is_blamed].sum() - most.sum() * share), 0.0)
    by_time = exp(-2 * beyond**2 / max(float((most**2).sum()), 1.0))
    return min(by_number, by_time) if n else 1.0


def _is_outlier(excess: IntArray, known: list[Judged]) -> BoolArray:
    """Return the mask of the values that are far above the median of all ranks and collectives."""
    every = np.abs([[judged.excess_ns(rank) for rank in judged.spent_ns] for judged in known])
    return np.asarray(excess > _OUTLIER * max(float(np.median(every)), 1.0))
