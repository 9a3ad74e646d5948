"""Contents of the views of a job: processes, utilisation by time, collectives and sentences."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epprof_nb.analysis.base.devices import device_labels, device_names
from epprof_nb.analysis.base.index import ProfileIndex
from epprof_nb.analysis.utilisation.counters import busy_shares, known_mean
from epprof_nb.arrays.intervals import covered_before, union
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.util.format import duration, percent, plural, printable, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.profile_data import ProfileData

    FloatArray = npt.NDArray[np.float64]
    Intervals = tuple[IntArray, IntArray]

BINS = 600
"""Number of equal intervals of the job for which each row has its utilisation."""
MAX_STRIPS = 64
"""Maximum number of strips, the rows of the picture; more processes share strips."""
MAX_COLLECTIVE_LINES = 40
"""Maximum number of lines across the strips: the collectives with the longest waits."""
DAMAGED = "damaged"
"""State of a process whose part cannot be read."""
_MAX_LATE = 8
"""Maximum number of stragglers that have a row of their own among many ranks."""
_MAX_NAME, _MAX_COMMAND, _MAX_HOST, _MAX_REASON = 40, 120, 60, 300


@dataclass(frozen=True, slots=True)
class Process:
    """A process of the job; times in ns, None if they are not known.

    `label` is ``rank 3``, or ``process 8`` if no launcher gave it a rank. `reason` says why it was
    not recorded, or not to its end.
    """

    rank: int
    label: str
    pid: int | None = None
    hostname: str = ""
    command: str = ""
    state: str = "complete"
    reason: str = ""
    busy_ns: int | None = None
    idle_ns: int | None = None
    devices: tuple[str, ...] = ()

    @property
    def busy(self) -> float | None:
        """Share of its devices' time in which they were busy, 0 to 1."""
        if self.busy_ns is None or self.idle_ns is None or self.busy_ns + self.idle_ns <= 0:
            return None
        return self.busy_ns / (self.busy_ns + self.idle_ns)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the picture: one process, or several neighbours.

    Attributes
    ----------
    label
        Name of the processes.
    processes
        The processes.
    busy, waiting
        float64 arrays, one value per bin, 0 to 1: utilisation, and the share of the time in which a
        collective waited for a later rank; means over the processes. NaN where none was recorded.
    busy_share, waiting_share
        Both over the whole row; None if unknown.
    is_late
        Whether the others waited most for this process.
    """

    label: str
    processes: tuple[Process, ...]
    busy: FloatArray
    waiting: FloatArray
    busy_share: float | None
    waiting_share: float | None
    is_late: bool = False


@dataclass(frozen=True, slots=True)
class Front:
    """A collective across the rows: the time when each arrived, ns, or None, and the end."""

    kind: str
    arrivals: tuple[int | None, ...]
    last_ns: int
    waited_ns: int


@dataclass(frozen=True)
class ShownJob:
    """Everything that the views of a job show.

    Attributes
    ----------
    span_ns, end_ns
        Length of the axis, at least 1, and end of the last profile on the job's clock.
    rows
        Rows of the picture.
    fronts
        The collectives with the longest waits, in the order of time.
    headline
        Numbers of the job.
    sentences
        Sentences on stragglers; backticks enclose code.
    notes
        Sentences on missing or omitted parts.
    absent
        Processes that were not recorded, or not to their end.
    """

    span_ns: int
    end_ns: int
    rows: list[Row]
    fronts: list[Front]
    headline: list[str]
    sentences: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    absent: list[Process] = field(default_factory=list)


def shown_job(
    profiles: Mapping[int, ProfileData],
    *,
    bounds: Mapping[int, tuple[int, int]],
    ranks: ResultTable,
    collectives: ResultTable | None = None,
    stragglers: Sequence[int] = (),
    sentences: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> ShownJob:
    """Return the contents of the views of a job.

    Parameters
    ----------
    profiles, bounds, ranks, collectives, stragglers, sentences, notes
        See `epprof_nb.views.job_view.JobView`.
    """
    processes = {process.rank: process for process in _processes(ranks)}
    end = max((end for _, end in bounds.values()), default=0)
    span = max(end, 1)
    edges = np.linspace(0, span, BINS + 1).round().astype(np.int64)
    waits = {} if collectives is None else _waits(collectives)
    recorded = sorted(bounds)
    late = set(stragglers[:_MAX_LATE])
    group = max(-(-len(recorded) // MAX_STRIPS), 1)
    rows = []
    for members in _groups(recorded, late, group):
        strips = []
        for rank in members:
            process = processes.get(rank) or Process(rank, f"rank {rank}")
            try:
                index = ProfileIndex(profiles[rank])
            except ProfileFileError as error:
                process = replace(process, state=DAMAGED, reason=_line(str(error), _MAX_REASON))
                strips.append(_Strip(np.full(BINS, np.nan), np.full(BINS, np.nan), None))
            else:
                process = _with_devices(process, index)
                strips.append(_strip(index, bounds[rank], edges, waits.get(rank)))
            processes[rank] = process
        is_late = members[0] in late
        rows.append(_row([processes[rank] for rank in members], strips, is_late=is_late))
    fronts, of = ([], 0) if collectives is None else _fronts(collectives, rows)
    shown = ShownJob(span, end, rows, fronts, [])
    shown.headline.extend(_headline(processes, recorded, rows, end, collectives))
    shown.sentences.extend(sentences)
    if group > 1:
        shown.notes.append(
            f"{len(recorded):,} ranks in {len(rows)} rows, each the mean of up to {group} "
            "neighbours; `job[rank]` is the profile of one."
        )
    if of > len(fronts):
        shown.notes.append(
            f"{len(fronts)} of {of:,} collectives are drawn: those with the longest waits."
        )
    shown.notes.extend(notes)
    shown.absent.extend(p for p in processes.values() if p.state != "complete" or p.reason)
    return shown


def _processes(ranks: ResultTable) -> Iterator[Process]:
    """Yield the processes by rank, with texts of one line."""
    columns = {
        name: ranks.values(name)
        for name in (
            "rank", "name", "pid", "hostname", "command", "state", "reason", "busy_ns",
            "idle_ns",
        )
        if name in ranks
    }  # fmt: skip
    order = np.argsort(np.asarray(columns["rank"]), kind="stable").tolist() if columns else []
    for row in order:
        values: dict[str, Any] = {name: column[row] for name, column in columns.items()}
        rank = int(values.pop("rank"))
        label = _line(values.pop("name", f"rank {rank}"), _MAX_NAME)
        command = values.get("command")
        if isinstance(command, list | tuple):
            values["command"] = " ".join(map(str, command))
        for name, limit in (
            ("hostname", _MAX_HOST),
            ("command", _MAX_COMMAND),
            ("reason", _MAX_REASON),
            ("state", 40),
        ):
            if name in values:
                values[name] = _line(str(values[name] or ""), limit)
        values["state"] = values.get("state") or "complete"
        yield Process(rank, label, **values)


def _line(text: str, limit: int) -> str:
    return shorten(printable(text), limit)


def _with_devices(process: Process, index: ProfileIndex) -> Process:
    info = index.profile.info
    devices = [device for device in index.device_ids if device >= 0]
    names, labels = device_names(info), device_labels(info, devices)
    shown = tuple(names.get(device, labels[device]) for device in devices)
    return replace(process, devices=shown)


def _groups(ranks: Sequence[int], alone: set[int], size: int) -> Iterator[Sequence[int]]:
    """Yield the ranks of each row: `size` neighbours, but some ranks alone."""
    group: list[int] = []
    for rank in ranks:
        if group and (len(group) == size or rank in alone or group[-1] in alone):
            yield group
            group = []
        group.append(rank)
    if group:
        yield group


class _Strip(NamedTuple):
    busy: FloatArray
    waiting: FloatArray
    waiting_share: float | None


def _strip(
    index: ProfileIndex, bounds: tuple[int, int], edges: IntArray, waits: Intervals | None
) -> _Strip:
    """Return the mean utilisation of a process's devices; NaN where it was not recorded."""
    devices = [device for device in index.device_ids if device >= 0]
    shares = [busy_shares(index, device, edges - bounds[0]) for device in devices]
    busy = known_mean(shares) if shares else np.zeros(len(edges) - 1)
    busy[(edges[1:] <= bounds[0]) | (edges[:-1] >= bounds[1])] = np.nan
    if waits is None:
        return _Strip(busy, 0 * busy, None)
    waited = np.diff(covered_before(*waits, edges))
    share = int((waits[1] - waits[0]).sum()) / max(bounds[1] - bounds[0], 1)
    return _Strip(busy, waited / np.maximum(np.diff(edges), 1), share)


def _row(members: list[Process], strips: Sequence[_Strip], *, is_late: bool) -> Row:
    first, last = members[0], members[-1]
    label = first.label if len(members) == 1 else f"ranks {first.rank}\N{EN DASH}{last.rank}"
    busy, waiting = known_mean([s.busy for s in strips]), known_mean([s.waiting for s in strips])
    shares = _known_mean(p.busy for p in members), _known_mean(s.waiting_share for s in strips)
    return Row(label, tuple(members), busy, waiting, *shares, is_late=is_late)


def _known_mean(shares: Iterable[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return sum(known) / len(known) if known else None


def _waits(collectives: ResultTable) -> dict[int, Intervals]:
    """Return, by rank, the intervals in which a collective waited for a later rank."""
    rank, arrive, waited = (collectives[name] for name in ("rank", "arrive_ns", "waited_ns"))
    waited = np.maximum(waited, 0)
    return {
        int(one): union(arrive[rank == one], (arrive + waited)[rank == one])
        for one in np.unique(rank)
    }


def _fronts(collectives: ResultTable, rows: Sequence[Row]) -> tuple[list[Front], int]:
    """Return the collectives with the longest waits, and the number of all."""
    number, rank, arrive = (collectives[name] for name in ("collective", "rank", "arrive_ns"))
    if not len(number):
        return [], 0
    waited = np.maximum(collectives["waited_ns"], 0)
    kinds = collectives.values("kind")
    found, group = np.unique(number, return_inverse=True)
    longest = np.zeros(len(found), np.int64)
    np.maximum.at(longest, group, waited)
    chosen = np.sort(np.argsort(-longest, kind="stable")[:MAX_COLLECTIVE_LINES])
    row_of = {p.rank: at for at, row in enumerate(rows) for p in row.processes}
    fronts = []
    for one in chosen.tolist():
        members = np.flatnonzero(group == one)
        arrivals: list[int | None] = [None] * len(rows)
        for member in members.tolist():
            at = row_of.get(int(rank[member]))
            if at is not None:
                arrivals[at] = max(arrivals[at] or 0, int(arrive[member]))
        last = int(arrive[members].max())
        kind = _line(str(kinds[members[0]] or "collective"), 40)
        fronts.append(Front(kind, tuple(arrivals), last, int(longest[one])))
    fronts.sort(key=lambda front: front.last_ns)
    return fronts, len(found)


def noun_of(processes: Iterable[Process]) -> tuple[str, str]:
    """Return the word for these members of a job, and its plural: ranks if any has a rank."""
    if all(process.label.startswith("process") for process in processes):
        return "process", "processes"
    return "rank", "ranks"


def _headline(
    processes: Mapping[int, Process],
    recorded: Sequence[int],
    rows: Sequence[Row],
    end: int,
    collectives: ResultTable | None,
) -> Iterator[str]:
    hosts = {processes[rank].hostname for rank in recorded} - {""}
    noun = noun_of(processes[rank] for rank in recorded)
    text = plural(len(recorded), *noun)
    if len(processes) > len(recorded):
        of = plural(len(processes), "process", "processes")
        text = f"{len(recorded):,} of {of} recorded"
    if len(hosts) > 1:
        text += f" on {plural(len(hosts), 'host')}"
    yield text
    yield duration(end)
    known = [share for rank in recorded if (share := processes[rank].busy) is not None]
    if known:
        low, high = percent(min(known)), percent(max(known))
        spread = f" ({low} to {high} by {noun[0]})" if low != high else ""
        yield f"devices busy {percent(sum(known) / len(known))}{spread}"
    if collectives is not None and len(collectives):
        yield plural(len(np.unique(collectives["collective"])), "collective")
        waiting = [row.waiting_share or 0 for row in rows for _ in row.processes]
        if any(waiting):
            yield f"waiting for later ranks {percent(sum(waiting) / len(waiting))}"
