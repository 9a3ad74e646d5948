"""Redacted copies of jobs, for sharing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from epprof_nb.core.errors import ProfileFileError
from epprof_nb.files.redaction.redacted_columns import Numbers, parts_of, redacted
from epprof_nb.files.redaction.text_filter import Filter
from epprof_nb.profiles import Profile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.files.redaction.redacted_columns import Part
    from epprof_nb.jobs.process_numbers import Process

_PIDS = re.compile(r"(\bpid |\brank-(?:none|\d+)-)\d+")
_COMMANDS = {"source", "paths", "hosts"}
"""Parts that arguments of a command line may have, also where no pattern recognises them."""


class RedactedProfiles(Mapping[int, Profile]):
    """Profiles of a job, each redacted when it is read.

    Parameters
    ----------
    profiles
        The profiles by number.
    redact
        The parts to remove.
    text
        Filter of messages on damaged parts.
    """

    def __init__(
        self, profiles: Mapping[int, Profile], redact: Sequence[Part], text: Callable[[str], str]
    ) -> None:
        self._profiles, self._redact, self._text = profiles, redact, text
        self._numbers = Numbers()

    def __getitem__(self, number: int) -> Profile:
        """Return a redacted profile; ProfileFileError if its part is damaged."""
        try:
            copy = redacted(self._profiles[number], self._redact, self._numbers)
        except ProfileFileError as error:
            # Without its cause, whose message names the folder.
            raise ProfileFileError(self._text(str(error))) from None
        return Profile.from_data(copy)

    def __iter__(self) -> Iterator[int]:
        return iter(self._profiles)

    def __len__(self) -> int:
        return len(self._profiles)

    def __contains__(self, number: object) -> bool:
        return number in self._profiles


class Redaction:
    """Filter of the processes of a job and of texts about them.

    Parameters
    ----------
    processes
        The processes.
    redact
        As for `epprof_nb.Profile.redacted`.

    Raises
    ------
    ValueError
        If a part is unknown.
    """

    def __init__(self, processes: Iterable[Process], redact: bool | str | Iterable[str]) -> None:  # noqa: FBT001
        self.parts = parts_of(redact)
        self._hosts: dict[str, str] = {}
        self._clocks: dict[str, str] = {}
        # Different processes stay different: children refer to their parents.
        self._pids = {p.pid: p.number + 1 for p in reversed(list(processes)) if p.pid is not None}
        self._names = sorted(
            {p.manifest.hostname for p in processes if p.manifest and p.manifest.hostname},
            key=len,
            reverse=True,
        )
        self._filter = Filter(
            paths="paths" in self.parts,
            hosts="hosts" in self.parts,
            shapes="shapes" in self.parts,
            source="source" in self.parts,
            source_pieces=(),
            files=(),
        )

    def text(self, text: str) -> str:
        """Return a sentence without the removed parts."""
        if "hosts" in self.parts:
            for name in self._names:
                text = text.replace(name, "(host)")
            text = _PIDS.sub(r"\1(pid)", text)
        return self._filter(text)

    def process(self, process: Process) -> Process:
        """Return a process without the removed parts."""
        manifest = process.manifest
        pid = process.pid
        if "hosts" in self.parts and pid is not None:
            pid = self._pids[pid]
        if manifest is not None:
            # Info and sources come from the redacted profile.
            manifest = replace(
                manifest, reason=self.text(manifest.reason), info={}, sources={}, tables={}
            )
            if _COMMANDS & set(self.parts):
                manifest = replace(manifest, command=())
            if "hosts" in self.parts:
                clock = {
                    name: self._clocks.setdefault(value, f"clock {len(self._clocks) + 1}")
                    if isinstance(value, str)
                    else value
                    for name, value in manifest.clock.items()
                }
                manifest = replace(
                    manifest,
                    hostname=self._host(manifest.hostname),
                    address=None,
                    run_id="",
                    pid=self._pids.get(manifest.pid, 0),
                    parent_pid=self._pids.get(manifest.parent_pid, 0),
                    clock=clock,
                )
        reason = self.text(process.reason)
        return replace(process, reason=reason, manifest=manifest, pid=pid, part=None)

    def _host(self, name: str) -> str:
        return self._hosts.setdefault(name, f"host {len(self._hosts) + 1}") if name else ""
