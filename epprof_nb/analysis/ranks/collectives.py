"""Collectives across ranks: which ones belong together, when each rank arrived, and who waited."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.result_table import OptionalColumn, ResultTable, categorical, optional
from epprof_nb.analysis.ranks.collective_kinds import WAIT_FOR_ALL
from epprof_nb.analysis.ranks.collectives_of_rank import NOT_ENDED, POINT_TO_POINT, Collective
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from epprof_nb.analysis.ranks.ranks_on_one_clock import Ranks

_SLACK_NS = 5_000
"""Tolerated difference between the end of a collective on one rank and the arrival of another."""


@dataclass(slots=True)
class Group:
    """One collective of several ranks.

    Attributes
    ----------
    members
        Rank to its part of the collective.
    how
        How the parts were matched: ``communicator`` (its number or order in it) or ``order`` on
        the stream; None for a part without a counterpart.
    is_whole
        Whether all ranks of the communicator are among the members.
    """

    members: dict[int, Collective]
    how: str | None
    is_whole: bool = True

    @property
    def first(self) -> Collective:
        """The part of the lowest rank."""
        return self.members[min(self.members)]

    @property
    def waits_for_all(self) -> bool:
        """Whether it is known when all ranks had arrived, and that none ended before."""
        known = self.how is not None and self.is_whole and len(self.members) > 1
        return known and self.first.kind in WAIT_FOR_ALL


@dataclass(slots=True)
class Matched:
    """The collectives of all ranks, by time, and what could not be matched."""

    groups: list[Group] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def matched(ranks: Ranks) -> Matched:
    """Match the collectives of the ranks; for `Ranks.cached`.

    Collectives of a communicator are matched by their number in it or, if it is unknown, by their
    order. Without a communicator, collectives of a stream are matched by their order. Counts and
    kinds must agree.
    """
    result = Matched()
    streams: defaultdict[str, dict[int, list[Collective]]] = defaultdict(dict)
    unknown: defaultdict[int, defaultdict[str, list[Collective]]] = defaultdict(
        lambda: defaultdict(list)
    )
    numbered_apart = set()
    for rank in ranks:
        for part in ranks.facts(rank).collectives:
            if part.kind in POINT_TO_POINT:
                result.groups.append(Group({rank: part}, None))
                numbered_apart.add(part.communicator)
            elif part.communicator is not None:
                key = f"{'device' if part.on_device else 'host'} {part.communicator}"
                streams[key].setdefault(rank, []).append(part)
            else:
                unknown[rank][part.stream].append(part)
    for parts in streams.values():
        name = next(iter(parts.values()))[0].communicator
        _match_communicator(ranks, parts, name not in numbered_apart, result)
    _match_by_order(ranks, unknown, result)
    result.groups.sort(key=lambda group: _begin(ranks, group))
    return result


def _begin(ranks: Ranks, group: Group) -> int:
    return min(part.start_ns + ranks.offset_ns(rank) for rank, part in group.members.items())


def _alone(parts: Mapping[int, Iterable[Collective]]) -> Iterable[Group]:
    return (Group({rank: part}, None) for rank, known in parts.items() for part in known)


def _match_communicator(
    ranks: Ranks,
    parts: dict[int, list[Collective]],
    has_numbers: bool,  # noqa: FBT001 - of all ranks alike: sends and receives count, too
    result: Matched,
) -> None:
    every = [part for known in parts.values() for part in known]
    name = every[0].communicator
    size = max(part.ranks for part in every)
    if size > len(parts) or (size == MISSING and len(parts) < 2):
        if size > len(parts):
            result.notes.append(
                f"Communicator {name} has {size} ranks, of which {len(parts)} were recorded: its "
                "collectives have no waiting times."
            )
        result.groups += [Group({r: p}, None, is_whole=False) for r, k in parts.items() for p in k]
        return
    if has_numbers and all(part.number != MISSING for part in every):
        groups = _by_number(parts)
    else:
        counts = {rank: len(known) for rank, known in parts.items()}
        if len(set(counts.values())) > 1:
            result.notes.append(f"{_differing(f'communicator {name}', counts)}")
            result.groups += _alone(parts)
            return
        groups = [Group(members, "communicator") for members in _in_order(parts)]
    _add_checked(ranks, groups, f"communicator {name}", result)


def _differing(where: str, counts: Mapping[int, int]) -> str:
    few, many = min(counts.values()), max(counts.values())
    fewest = ", ".join(str(rank) for rank, count in counts.items() if count == few)
    return (
        f"The ranks recorded different numbers of collectives of {where} ({few} on rank {fewest}, "
        f"{many} on others): these are not matched. Begin and end the recording of all ranks at "
        "the same collective."
    )


def _by_number(parts: Mapping[int, Sequence[Collective]]) -> list[Group]:
    """Match by the number in the communicator; parts without a counterpart are not whole."""
    numbered: defaultdict[int, dict[int, Collective]] = defaultdict(dict)
    for rank, known in parts.items():
        for part in known:
            numbered[part.number].setdefault(rank, part)
    return [
        Group(members, "communicator" if len(members) > 1 else None, len(members) == len(parts))
        for members in numbered.values()
    ]


def _in_order(parts: Mapping[int, Sequence[Collective]]) -> Iterable[dict[int, Collective]]:
    for members in zip(*parts.values(), strict=True):
        yield dict(zip(parts, members, strict=True))


def _match_by_order(
    ranks: Ranks,
    unknown: Mapping[int, Mapping[str, Sequence[Collective]]],
    result: Matched,
) -> None:
    """Match collectives without a communicator by the order on their streams."""
    if not unknown:
        return
    everywhere = set(ranks) == set(unknown) and len(unknown) > 1
    # Streams and devices have other numbers on other ranks. Streams are matched by their order.
    ordered = {rank: list(streams.values()) for rank, streams in unknown.items()}
    if not everywhere or len({len(streams) for streams in ordered.values()}) > 1:
        result.notes.append(
            "Collectives without a communicator are not matched, because not all ranks have them "
            "on as many streams. Record NCCL's NVTX ranges (frameworks=['nvtx'])."
        )
        result.groups += [
            group for rank, known in ordered.items() for s in known for group in _alone({rank: s})
        ]
        return
    for number in range(len(next(iter(ordered.values())))):
        parts = {rank: streams[number] for rank, streams in ordered.items()}
        counts = {rank: len(known) for rank, known in parts.items()}
        if len(set(counts.values())) > 1:
            result.notes.append(_differing("a stream without a known communicator", counts))
            result.groups += _alone(parts)
            continue
        groups = [Group(members, "order") for members in _in_order(parts)]
        _add_checked(ranks, groups, "a stream without a known communicator", result)


def _add_checked(ranks: Ranks, groups: list[Group], where: str, result: Matched) -> None:
    """Add groups of which all parts have one kind, and none ended before all had arrived."""
    reason = None
    if any(len({part.kind for part in group.members.values()}) > 1 for group in groups):
        reason = "their kinds differ"
    elif any(_ends_too_early(ranks, group) for group in groups):
        reason = "some ended before all ranks had arrived, so that they are not the same ones"
    if reason is None:
        result.groups += groups
        return
    result.notes.append(f"Collectives of {where} are not matched, because {reason}.")
    result.groups += [Group({r: p}, None) for group in groups for r, p in group.members.items()]


def _ends_too_early(ranks: Ranks, group: Group) -> bool:
    if not group.waits_for_all:
        return False
    ends = [
        part.end_ns + ranks.offset_ns(rank)
        for rank, part in group.members.items()
        if part.end_ns != NOT_ENDED
    ]
    starts = [part.start_ns + ranks.offset_ns(rank) for rank, part in group.members.items()]
    return bool(ends) and min(ends) + _SLACK_NS + ranks.clock_error_ns() < max(starts)


def collectives_table(ranks: Ranks) -> ResultTable:
    """Return the columns of `Job.collectives`."""
    groups = ranks.cached(matched).groups
    error = ranks.clock_error_ns()
    columns: defaultdict[str, list[int]] = defaultdict(list)
    kinds, names, hows = [], [], []
    for number, group in enumerate(groups):
        starts = {r: part.start_ns + ranks.offset_ns(r) for r, part in group.members.items()}
        last = max(starts.values())
        for rank in sorted(group.members):
            part = group.members[rank]
            offset = ranks.offset_ns(rank)
            kinds.append(part.kind)
            names.append(part.communicator)
            hows.append(group.how)
            has_end = part.end_ns != NOT_ENDED
            late = waited = transfer = NOT_ENDED
            if group.waits_for_all:
                others = [start for other, start in starts.items() if other != rank]
                late = max(starts[rank] - int(np.median(others)), 0)
                waited = last - starts[rank]
                # An order that is closer than the error of the clocks is not known.
                late, waited = (NOT_ENDED if 0 < ns <= error else ns for ns in (late, waited))
                if has_end and error <= part.end_ns - part.start_ns:
                    transfer = max(part.end_ns + offset - last, 0)
            for name, value in (
                ("collective", number),
                ("rank", rank),
                ("ranks", len(group.members)),
                ("bytes", part.size),
                ("arrive_ns", starts[rank]),
                ("end_ns", part.end_ns + offset if has_end else NOT_ENDED),
                ("duration_ns", part.end_ns - part.start_ns if has_end else NOT_ENDED),
                ("waited_ns", waited),
                ("transfer_ns", transfer),
                ("late_ns", late),
                ("op_id", part.op_id),
            ):
                columns[name].append(value)
    integers = {name: np.array(columns[name], np.int64) for name in _INTEGERS}
    times = {
        name: OptionalColumn(values, values == NOT_ENDED)
        for name in ("end_ns", "duration_ns", "waited_ns", "transfer_ns", "late_ns")
        for values in [np.array(columns[name], np.int64)]
    }
    return ResultTable(
        {
            "collective": integers["collective"],
            "rank": integers["rank"],
            "kind": categorical(kinds),
            "communicator": categorical(names),
            "ranks": integers["ranks"],
            "bytes": optional(columns["bytes"]),
            "arrive_ns": integers["arrive_ns"],
            **times,
            "matched_by": categorical(hows),
            "op_id": optional(columns["op_id"]),
        }
    )


_INTEGERS = ("collective", "rank", "ranks", "arrive_ns")


def clock_residuals(ranks: Ranks) -> dict[int, int]:
    """Return how much later collectives end on each rank than on the median of the ranks.

    Kernels of a collective that waits for all end almost together, so that a difference between
    ranks in the median of all collectives comes from their clocks, or from their links. It is
    reported, and shifts no time.

    Returns
    -------
    dict
        Rank to nanoseconds; empty without such collectives.
    """
    late: defaultdict[int, list[float]] = defaultdict(list)
    for group in ranks.cached(matched).groups:
        if not group.waits_for_all or not all(p.on_device for p in group.members.values()):
            continue
        ends = {rank: part.end_ns + ranks.offset_ns(rank) for rank, part in group.members.items()}
        middle = float(np.median(list(ends.values())))
        for rank, end in ends.items():
            late[rank].append(end - middle)
    return {rank: round(float(np.median(values))) for rank, values in sorted(late.items())}


def collective_notes(ranks: Ranks) -> list[str]:
    """Return what `collectives_table` leaves out and why, and the residual of the clocks."""
    notes = list(ranks.cached(matched).notes)
    residuals = clock_residuals(ranks)
    if residuals:
        spread = max(residuals.values()) - min(residuals.values())
        notes.append(
            f"The ends of {plural(len(residuals), 'rank')} differ by {spread:,} ns in the median: "
            "the residual of the clocks. No time is shifted by it."
        )
    return notes
