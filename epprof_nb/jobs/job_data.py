"""JobData: the profiles of a job by rank, and what its tables share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from epprof_nb.analysis.base.wall_time import wall_of
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.jobs.by_device import devices_of, total, used_devices
from epprof_nb.jobs.by_op import by_op_table
from epprof_nb.jobs.clocks import Placement, placed_by_system_clock, placements
from epprof_nb.jobs.process_numbers import Process, given
from epprof_nb.jobs.ranks_of_job import ranks_of
from epprof_nb.jobs.ranks_table import counts_of
from epprof_nb.profiles import Profile
from epprof_nb.util.format import duration, plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.analysis.ranks.ranks_on_one_clock import Ranks
    from epprof_nb.data.profile_data import ProfileData
    from epprof_nb.data.table import Table
    from epprof_nb.files.dataset.manifest import Manifest


_MAX_NAMED = 5
"""Processes that a sentence names."""


class JobData(Mapping[int, Profile]):
    """Profiles of several processes, by rank; `epprof_nb.Job` adds the methods that users call."""

    def __init__(
        self,
        profiles: Mapping[int, Profile],
        manifests: Mapping[int, Manifest] | None = None,
        *,
        processes: Collection[Process] | None = None,
        notes: Collection[str] = (),
    ) -> None:
        self._profiles = profiles
        self.processes: list[Process] = (
            given(manifests or {}, profiles) if processes is None else list(processes)
        )
        self._by_number = {process.number: process for process in self.processes}
        self.notes = list(notes)
        self.damage: dict[int, str] = {}
        self._totals: dict[int, ResultTable] | None = None
        self.communication: dict[int, tuple[int, int] | None] = {}
        self._begins: dict[int, Placement] | None = None
        self._ops: ResultTable | None = None
        self._across: Ranks | None = None
        self._order = [p.number for p in self.processes if p.number in profiles]

    def __getitem__(self, rank: int) -> Profile:
        """Return the profile of a process.

        Raises
        ------
        KeyError
            If the job has no profile of it; the message says why.
        ProfileFileError
            If its part is damaged.
        """
        if rank in self._profiles:
            return self._profiles[rank]
        process = self._by_number.get(rank)
        if process is None:
            shown = repr(rank) if isinstance(rank, str) else rank
            raise KeyError(f"this job has no rank {shown}; it has {ranks_text(self._order)}")
        raise KeyError(f"rank {rank} has no profile ({process.state}): {process.reason}")

    def __iter__(self) -> Iterator[int]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, rank: object) -> bool:
        return rank in self._profiles

    # Comparing the tables of two jobs would read all of both.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return self.headline

    @property
    def profiles(self) -> Mapping[int, Profile]:
        """The profiles as they were given: some mappings read them on demand."""
        return self._profiles

    @property
    def headline(self) -> str:
        """The job as one line of text."""
        expected = len(self.processes)
        count = plural(len(self), "process", "processes")
        if expected > len(self):
            count = f"{len(self):,} of {plural(expected, 'process', 'processes')}"
        busy = sum(total(t, "busy_ns") for t in self.device_totals.values())
        kernels = sum(total(t, "kernels") for t in self.device_totals.values())
        devices = sum(used_devices(t) for t in self.device_totals.values())
        worked = [f"{plural(devices, 'device')} busy {duration(busy)}", plural(kernels, "kernel")]
        parts = [f"job of {count}", f"{duration(self.end_ns)} wall"]
        dropped = sum(self.dropped_records.values())
        if dropped:
            worked.append(f"{plural(dropped, 'record')} dropped")
        return "   ".join([*parts, *(worked if devices else ["no device work"])])

    @property
    def is_complete(self) -> bool:
        """Whether each known process has a whole profile."""
        whole = all(p.has_profile and p.state == "complete" for p in self.processes)
        return whole and not self.damage

    def name(self, rank: int) -> str:
        """Name of a process: ``rank 3``, or ``process 3`` if no launcher gave it a rank."""
        process = self._by_number.get(rank)
        is_rank = process is None or process.launched or process.is_given
        return f"rank {rank}" if is_rank else f"process {rank}"

    def info(self, rank: int) -> Mapping[str, Any]:
        """Return the info of a profile without reading its tables."""
        process = self._by_number.get(rank)
        if process is not None and process.manifest is not None and process.manifest.info:
            return process.manifest.info
        return self[rank].info

    def read(self, rank: int) -> Profile:
        """Return the profile of a process for one pass over all of them: it is not kept."""
        read = getattr(self._profiles, "read", None)
        found: Profile = self[rank] if read is None else read(rank)
        return found

    def columns(self, rank: int, columns: Mapping[str, Collection[str]]) -> ProfileData:
        """Return a profile of which only some columns need to be read; others may be filled."""
        read = getattr(self._profiles, "columns", None)
        found: ProfileData = self[rank] if read is None else read(rank, columns)
        return found

    def pieces(self, rank: int, table: str, columns: Collection[str]) -> Iterable[Table]:
        """Return a table of a profile in pieces, of which only some columns need to be read."""
        read = getattr(self._profiles, "pieces", None)
        found: Iterable[Table] = (
            [self[rank].tables[table]] if read is None else read(rank, table, columns)
        )
        return found

    def stretch(self, rank: int, begin_ns: int, end_ns: int) -> ProfileData:
        """Return the profile of a process, of which only a stretch of time needs to be there."""
        read = getattr(self._profiles, "stretch", None)
        found: ProfileData = self[rank] if read is None else read(rank, begin_ns, end_ns)
        return found

    @property
    def placements(self) -> dict[int, Placement]:
        """Begin of each profile on the job's clock, and how far it can be off."""
        if self._begins is None:
            manifests = {p.number: p.manifest for p in self.processes if p.number in self._profiles}
            self._begins = (
                placements(manifests)
                if any(manifests.values())
                else placed_by_system_clock({number: self[number].info for number in manifests})
            )
        return self._begins

    @property
    def end_ns(self) -> int:
        """End of the last profile on the job's clock, nanoseconds."""
        # Totals are read only where a length is not stated.
        numbers = self if all(self._stated_wall_ns(n) for n in self) else self.device_totals
        placed = self.placements
        return max((placed[n].offset_ns + self.wall_ns(n) for n in numbers), default=0)

    def wall_ns(self, rank: int) -> int:
        """Length of the profile of a process, nanoseconds."""
        return self._stated_wall_ns(rank) or wall_of(self[rank])

    def _stated_wall_ns(self, rank: int) -> int:
        try:
            stated = self.info(rank).get("wall_ns", 0)
        except ProfileFileError:  # it is damaged, and has no totals either
            return 0
        return max(stated, 0) if isinstance(stated, int) else 0

    @property
    def device_totals(self) -> dict[int, ResultTable]:
        """Devices of each process with their work, as in `Profile.by_device`."""
        if self._totals is None:
            found = {}
            for number in self:
                try:
                    found[number], self.communication[number] = devices_of(self, number)
                except ProfileFileError as error:
                    self.damage[number] = str(error)
            self._totals = found
        return self._totals

    @property
    def ops_table(self) -> ResultTable:
        """The columns of `by_op`."""
        if self._ops is None:
            self._ops = by_op_table(self)
        return self._ops

    @property
    def across(self) -> Ranks:
        """The ranks for analyses across them, kept with their results."""
        if self._across is None:
            self._across = ranks_of(self)
        return self._across

    @property
    def dropped_records(self) -> dict[int, int]:
        """Number of each process that lacks records to how many it lacks."""
        found = {}
        for number in self:
            with suppress(ProfileFileError):  # it is damaged
                found[number] = counts_of(self.info(number))[1]
        return {number: count for number, count in found.items() if count > 0}

    def dropped_notes(self) -> list[str]:
        """Return the sentence on dropped records; empty without any."""
        dropped = self.dropped_records
        if not dropped:
            return []
        most = sorted(dropped, key=lambda number: -dropped[number])
        named = [f"{dropped[number]:,} of {self.name(number)}" for number in most[:_MAX_NAMED]]
        named += ["..."] if len(most) > _MAX_NAMED else []
        total = sum(dropped.values())
        note = (
            f"{plural(total, 'record')} {'was' if total == 1 else 'were'} dropped "
            f"({', '.join(named)}), so totals do not include all work: raise max_records, or "
            "profile a smaller part of the code."
        )
        return [note]

    def all_notes(self) -> list[str]:
        """Return the notes and the sentences on what the tables of the job lack."""
        return list(dict.fromkeys([*self.notes, *self.incomplete_notes()]))

    def incomplete_notes(self) -> list[str]:
        """Return the sentences on processes without a profile, and on dropped records."""
        return [*self._unrecorded_notes(), *self.dropped_notes()]

    def _unrecorded_notes(self) -> list[str]:
        lacking = [p for p in self.processes if p.number in self.damage or not p.has_profile]
        lacking = [p for p in lacking if p.number not in self._profiles or p.number in self.damage]
        if not lacking:
            return []
        have = "has" if len(lacking) == 1 else "have"
        note = (
            f"{len(lacking):,} of {plural(len(self.processes), 'process', 'processes')} {have} no "
            f"profile ({ranks_text([p.number for p in lacking])}), so totals do not cover the "
            "whole job: see job.ranks."
        )
        return [note]

    def __getstate__(self) -> dict[str, Any]:
        """Return the job with all its profiles: a pickle does not need the folder."""
        state, profiles = dict(self.__dict__), {}
        damage = dict(self.damage)
        for number in self:
            try:
                profiles[number] = self._profiles[number]
            except ProfileFileError as error:
                damage[number] = str(error)
        return state | {
            "_profiles": profiles,
            "_order": list(profiles),
            "damage": damage,
            "processes": [replace(process, part=None) for process in self.processes],
        }


def ranks_text(numbers: Collection[int]) -> str:
    """Return some numbers as text, with runs of them joined.

    Examples
    --------
    >>> ranks_text([0, 1, 2, 7])
    'ranks 0 to 2, 7'
    """
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [str(a) if a == b else f"{a} to {b}" for a, b in runs[:10]]
    return ("ranks " if len(numbers) != 1 else "rank ") + ", ".join(
        [*texts, *(["..."] if len(runs) > 10 else [])] or ["none"]
    )
