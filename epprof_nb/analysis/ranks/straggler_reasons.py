"""Reasons of stragglers: what took longer on the ranks that the others waited for."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.result_table import ResultTable, categorical, optional
from epprof_nb.analysis.ranks.device_time import DeviceTime
from epprof_nb.analysis.ranks.host_time import NOWHERE, SYNCHRONIZATION, HostTime, Place, Sampled
from epprof_nb.analysis.ranks.stragglers import Judged, judged_collectives, stragglers_of
from epprof_nb.arrays.types import MISSING
from epprof_nb.util.format import base_name, duration, plural

if TYPE_CHECKING:
    from collections.abc import Mapping

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.ranks.ranks_on_one_clock import Ranks
    from epprof_nb.analysis.ranks.stragglers import Straggler

UNEXPLAINED = "unexplained"
_KINDS = {
    "gc": "garbage collection",
    "data": "data loading",
    SYNCHRONIZATION: SYNCHRONIZATION,
    "compile": "compilation",
    "collective": "communication",
    "collective_wait": "communication",
}
"""Kinds of reasons by the type of the op; other types have the kind ``op``."""
_MOST_NAMED = 3
"""Reasons in the sentence if none explains half of the waiting."""
_LEAST_SHARE = 0.02
"""Reasons that explain less count as unexplained."""
_LEAST_SAMPLED = 0.5
"""Least share of the time of a reason that samples of its lines may have found."""
_ERRORS = 2.0
"""Standard errors of the time that samples found, up to which it may have been more."""
_LEAST_LINE = 0.1
"""Lines with a smaller share of the time of a reason are left out."""


class Reason(NamedTuple):
    """Cause of lateness: a place that took longer on a rank than on the others."""

    side: str
    place: Place
    function: str | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """A straggler, and its reasons: each with the waiting that it explains, in nanoseconds."""

    straggler: Straggler
    reasons: dict[Reason, float]


def explained(ranks: Ranks) -> list[Explained]:
    """Return the stragglers with their reasons; for `Ranks.cached`."""
    stragglers = ranks.cached(stragglers_of)
    times: list[dict[int, _Times]] = [{} for _ in stragglers]
    # One rank after the other, as its profile may be read for it.
    for rank in ranks:
        involved = [
            (straggler, of_ranks)
            for straggler, of_ranks in zip(stragglers, times, strict=True)
            if any(rank in judged.spent_ns for judged in straggler.late)
        ]
        if involved:
            index = ranks.index(rank)
            for straggler, of_ranks in involved:
                of_ranks[rank] = _times(ranks, index, rank, straggler)
            del index
    return [
        Explained(straggler, _reasons(straggler, of_ranks))
        for straggler, of_ranks in zip(stragglers, times, strict=True)
    ]


_Lines = dict[Place, dict[tuple[str, str, int], Sampled]]


class _Times(NamedTuple):
    """Time of a rank before the collectives at which a straggler was late.

    ``device`` and ``host`` have the time by place for each of them, and ``lines`` the time that
    samples found on each line, in sum.
    """

    device: list[dict[Place, int]]
    host: list[dict[Place, int]]
    lines: _Lines


def _times(ranks: Ranks, index: ProfileIndex, rank: int, straggler: Straggler) -> _Times:
    on_device, on_host = index.cached(DeviceTime), index.cached(HostTime)
    known: dict[Place, Place] = {}
    device: list[dict[Place, int]] = []
    host: list[dict[Place, int]] = []
    lines: defaultdict[Place, defaultdict[tuple[str, str, int], Sampled]] = defaultdict(
        lambda: defaultdict(Sampled)
    )
    for judged in straggler.late:
        if rank not in judged.spent_ns:
            device.append({})
            host.append({})
            continue
        is_kernel = judged.group.first.on_device
        worked = on_device.times(*_window(ranks, judged, rank)) if is_kernel else {}
        threads, begin, end = _host_window(ranks, on_host, judged, rank)
        ran = on_host.times(threads, begin, end) if threads else {}
        # The same place is one object, as there may be many collectives.
        device.append({known.setdefault(place, place): ns for place, ns in worked.items()})
        host.append({known.setdefault(place, place): ns for place, ns in ran.items()})
        for place, of_line in on_host.lines(threads, [(begin, end)]).items():
            for line, sampled in of_line.items():
                lines[place][line] = lines[place][line].plus(sampled)
    return _Times(device, host, {place: dict(of_line) for place, of_line in lines.items()})


def _reasons(straggler: Straggler, times: Mapping[int, _Times]) -> dict[Reason, float]:
    """Return the waiting that each reason explains."""
    total: defaultdict[Reason, float] = defaultdict(float)
    took: defaultdict[Reason, float] = defaultdict(float)
    for number, judged in enumerate(straggler.late):
        longer = _longer(judged, straggler.rank, number, times)
        whole = max(sum(longer.values()), judged.excess_ns(straggler.rank), 1.0)
        for reason, ns in longer.items():
            took[reason] += ns
            total[reason] += judged.caused_ns(straggler.rank) * ns / whole
    found: defaultdict[Reason, float] = defaultdict(float)
    lines = _lines(straggler.rank, times)
    for reason, ns in total.items():
        for part, share in _by_line(reason, lines, took[reason]).items():
            found[part] += ns * share
    least = _LEAST_SHARE * straggler.waited_ns
    return dict(
        sorted(
            ((reason, ns) for reason, ns in found.items() if ns >= least), key=lambda item: -item[1]
        )
    )


def _longer(
    judged: Judged, rank: int, number: int, times: Mapping[int, _Times]
) -> dict[Reason, float]:
    """Return what took longer on a rank than in the median of the others, and by how much.

    ``number`` is the number of the collective in `times`.
    """
    members = judged.spent_ns
    longer = _excess("device", {m: times[m].device[number] for m in members}, rank)
    left = max(judged.excess_ns(rank) - sum(longer.values()), 0.0)
    on_host = _excess("host", {m: times[m].host[number] for m in members}, rank)
    if longer:
        # A wait for the device, and for what takes longer there, is not another reason.
        on_host = {r: ns for r, ns in on_host.items() if r.place.op_type != SYNCHRONIZATION}
        scale = min(left / max(sum(on_host.values()), 1.0), 1.0)
        on_host = {reason: ns * scale for reason, ns in on_host.items()}
    return longer | on_host


def _window(ranks: Ranks, judged: Judged, rank: int) -> tuple[int, int]:
    """Return the time from the common point to the arrival of a rank, on its own clock."""
    begin = judged.common_ns - ranks.offset_ns(rank)
    return begin, begin + judged.spent_ns[rank]


def _host_window(
    ranks: Ranks, host: HostTime, judged: Judged, rank: int
) -> tuple[list[int], int, int]:
    """Return the threads that led to a collective, and the time from the common point to it."""
    part = judged.group.members[rank]
    begin, end = _window(ranks, judged, rank)
    # The host is ahead of the device by the time between the call and the start of the kernel.
    ahead = part.start_ns - part.issued_ns if part.on_device else 0
    threads = list(dict.fromkeys([part.thread_id, host.main_thread()]))
    return [thread for thread in threads if thread != MISSING], begin, max(end - ahead, begin)


def _excess(side: str, times: Mapping[int, Mapping[Place, int]], rank: int) -> dict[Reason, float]:
    """Return the places at which a rank spent more time than the median of the others."""
    others = [spent for other, spent in times.items() if other != rank]
    found = {}
    for place, ns in times[rank].items():
        more = ns - float(np.median([spent.get(place, 0) for spent in others]))
        if more > 0:
            found[Reason(side, place)] = more
    return found


def _lines(rank: int, times: Mapping[int, _Times]) -> _Lines:
    """Return the lines on which samples found a rank for longer than other ranks."""
    own, others = times[rank].lines, [of.lines for other, of in times.items() if other != rank]
    longer: _Lines = {}
    for place, of_line in own.items():
        usual = {
            line: float(np.median([o.get(place, {}).get(line, Sampled()).ns for o in others]))
            for line in of_line
        }
        longer[place] = {
            line: sampled._replace(ns=sampled.ns - usual[line])
            for line, sampled in of_line.items()
            if sampled.ns > usual[line]
        }
    return longer


def _by_line(reason: Reason, lines: _Lines, took_ns: float) -> dict[Reason, float]:
    """Return the parts of a reason by line, each with its share.

    Samples miss code that calls and returns too quickly. If they found less than half of the time,
    by more than chance, the line of the rest is not known. The number of samples of a line has a
    Poisson distribution, with its square root as the standard error.
    """
    place = reason.place
    known = lines.get(place, {}) if reason.side == "host" and place.line == MISSING else {}
    found = sum(sampled.ns for sampled in known.values())
    count = sum(sampled.samples for sampled in known.values())
    known = {line: s for line, s in known.items() if s.ns >= _LEAST_LINE * found}
    whole = sum(sampled.ns for sampled in known.values())
    if not whole:
        return {reason: 1.0}
    rest = {}
    if found * (1 + _ERRORS / count**0.5) < _LEAST_SAMPLED * took_ns:
        rest = {reason: 1.0 - whole / took_ns}
        whole = took_ns
    return rest | {
        Reason("host", place._replace(file=file, line=line), function): sampled.ns / whole
        for (file, function, line), sampled in known.items()
    }


def stragglers_table(ranks: Ranks) -> ResultTable:
    """Return the columns of `Job.stragglers`."""
    rows = []
    for found in ranks.cached(explained):
        straggler = found.straggler
        rest = straggler.waited_ns - sum(found.reasons.values())
        parts: list[tuple[Reason | None, float]] = list(found.reasons.items())
        if rest > 0:
            parts.append((None, rest))
        rows += [(straggler, reason, round(ns)) for reason, ns in parts]
    reasons = [reason for _, reason, _ in rows]
    return ResultTable(
        {
            "rank": np.array([s.rank for s, _, _ in rows], np.int64),
            "reason": categorical([name_of(reason) for reason in reasons]),
            "kind": categorical([kind_of(reason) for reason in reasons]),
            "side": categorical([None if r is None else r.side for r in reasons]),
            "op": categorical([None if r is None else r.place.name for r in reasons]),
            "function": categorical([None if r is None else r.function for r in reasons]),
            "file": categorical([None if r is None else r.place.file for r in reasons]),
            "line": optional([MISSING if r is None else r.place.line for r in reasons]),
            "waited_ns": np.array([ns for _, _, ns in rows], np.int64),
            "share": np.array([ns / max(s.waited_ns, 1) for s, _, ns in rows], np.float64),
            "late": np.array([len(s.late) for s, _, _ in rows], np.int64),
            "collectives": np.array([s.judged for s, _, _ in rows], np.int64),
        }
    )


def kind_of(reason: Reason | None) -> str:
    """Return the kind of a reason."""
    if reason is None or (reason.place == NOWHERE):
        return UNEXPLAINED
    if reason.side == "device":
        return "device work"
    if reason.place.op_type is None:
        return "line"
    return _KINDS.get(reason.place.op_type, "op")


def name_of(reason: Reason | None) -> str:
    """Return the name of a reason: of the op or the function, and its line.

    Examples
    --------
    >>> name_of(Reason("host", Place("range", "augment", "/home/ada/train.py", 31), "load"))
    'augment in train.py line 31'
    """
    if reason is None or reason.place == NOWHERE:
        return UNEXPLAINED
    place = reason.place
    name = place.name or reason.function or "code"
    if place.op_type == "backward":
        name += " (backward)"
    if place.line == MISSING:
        return name
    return f"{name} in {base_name(place.file or '')} line {place.line}"


def straggler_sentence(ranks: Ranks) -> str | None:
    """Return a sentence on the rank that the others waited for most; None if there is none.

    Without a straggler, but with collectives that were compared, the sentence says so.
    """
    judged = ranks.cached(judged_collectives)
    if not judged:
        return None
    found = ranks.cached(explained)
    if not found:
        waited = sum(sum(one.blame_ns.values()) for one in judged)
        text = (
            f"No rank was late at {plural(len(judged), 'collective')} more than by chance; the "
            f"ranks waited {duration(waited)} for each other"
        )
        # An order that is closer than the error of the clocks blames nobody.
        known = [one for one in judged if any(one.blame_ns.values())]
        if not known:
            return f"{text}."
        longest = max(known, key=Judged.longest_wait_ns)
        return (
            f"{text}. The longest wait, {duration(longest.longest_wait_ns())}, was for rank "
            f"{max(longest.blame_ns, key=longest.blame_ns.__getitem__)}."
        )
    first = found[0].straggler
    text = (
        f"Rank {first.rank} was late at {len(first.late)} of "
        f"{plural(first.judged, 'collective')}; the others waited {duration(first.waited_ns)}"
    )
    named = [(r, ns) for r, ns in found[0].reasons.items() if kind_of(r) != UNEXPLAINED]
    if not named:
        return f"{text}."
    shown = 1 if named[0][1] >= first.waited_ns / 2 else _MOST_NAMED
    parts = [f"{duration(ns)} of it is {name_of(reason)}" for reason, ns in named[:1]]
    parts += [f"{duration(ns)} {name_of(reason)}" for reason, ns in named[1:shown]]
    return f"{text}; {', '.join(parts)}."
