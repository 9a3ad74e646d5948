"""Manifest of a part: its process, its clock and its tables."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from epprof_nb.data.schema import TABLES
from epprof_nb.files.dataset.part_name import part_name
from epprof_nb.files.epprof import manifest_checks
from epprof_nb.files.epprof.info_schema import is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

FORMAT = "epprof-part"
VERSION = (1, 0)
MANIFEST = "manifest.json"
"""Name of the file in the folder of a part. It is written last, so a part without it has no end."""
FILES = {*(f"{table.name}.parquet" for table in TABLES), MANIFEST}
"""Names of all files of a part."""

Followed = Literal["run", "subprocess", "fork", "forkserver", "running", "cell", "dask"]
"""How the order to record reached the process."""
State = Literal["complete", "killed", "not recorded"]
"""How the recording ended."""

_MAX_ARGUMENTS = 10_000
_MAX_TEXT = 100_000
_MAX_SAMPLES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Facts about the part of one process.

    Parameters
    ----------
    job_id
        Random text that all parts of a job share.
    pid, parent_pid
        The process and its parent.
    rank, local_rank, world_size
        Place in the job as its launcher stated it; None if it did not.
    run_id
        Text that the ranks of one run share, also those on other hosts; "" if unknown.
    hostname
        Name of the host.
    address
        Address of the worker in a Dask cluster; None for other processes.
    command
        Command line, one text per argument.
    followed
        How the order to record reached the process.
    state, reason
        How the recording ended, and why if it did not end as it should.
    begin_ns, end_ns
        Begin and end of the profile on the process's CLOCK_MONOTONIC, nanoseconds.
    clock
        The clock: ``boot_id`` and ``time_namespace`` (texts, or None if the system lacks them),
        and ``error_ns`` (None if unknown) against other processes with the same two. A process on
        another host than the notebook also has ``samples``: rows of a time, what to add to it for
        the clock of the notebook, and the error of that; ``reference``, that clock with its
        ``boot_id`` and ``time_namespace``; and ``compared_by``: ``udp`` or ``messages``.
    tables
        Rows (``rows``) and digest (``sha256``) of each table by its name; `write_part` sets them.
    info, sources
        Info and sources of the profile; `write_part` sets them.
    format_version
        Version of the ``.epprof`` format in which the tables are stored.

    Examples
    --------
    >>> manifest = Manifest(job_id="a1", pid=40, parent_pid=39, rank=3)
    >>> Manifest.from_json(manifest.to_json()) == manifest
    True
    >>> manifest.folder_name
    'rank-00003-40'
    """

    job_id: str
    pid: int
    parent_pid: int
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    run_id: str = ""
    hostname: str = ""
    address: str | None = None
    command: Sequence[str] = ()
    followed: Followed = "run"
    state: State = "complete"
    reason: str = ""
    begin_ns: int = 0
    end_ns: int = 0
    clock: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    format_version: tuple[int, int] = (1, 0)

    def __post_init__(self) -> None:
        """Make the sequences tuples, as which they are compared."""
        object.__setattr__(self, "command", tuple(self.command))

    @property
    def folder_name(self) -> str:
        """Name of the part's folder, if the process has one part."""
        return part_name(self.rank, self.pid)

    def to_json(self) -> bytes:
        """Return the manifest as JSON; lone surrogates, as of file names, become escapes."""
        return manifest_checks.to_json({"format": FORMAT, "version": VERSION, **asdict(self)})

    @classmethod
    def from_json(cls, text: bytes | str) -> Self:
        """Read a manifest, which may be from an untrusted source.

        Raises
        ------
        ValueError
            If it is not a manifest, or one of its fields is not as described; the message names it.
        """
        try:
            stated = json.loads(text)
        except RecursionError as error:
            raise ValueError(f"{MANIFEST} is nested too deeply") from error
        if not isinstance(stated, dict) or stated.get("format") != FORMAT:
            raise ValueError(f"{MANIFEST} does not specify the format {FORMAT!r}")
        if not _is_version(stated.get("version")):
            raise ValueError(f"{MANIFEST} does not specify the version of the format")
        if stated["version"][0] != VERSION[0]:
            raise ValueError(
                f"it has version {stated['version'][0]} of the format, but this version of "
                f"epprof_nb reads {VERSION[0]}. Upgrade with: pip install --upgrade epprof-nb"
            )
        # A newer minor version may have more fields.
        known = {f.name: stated[f.name] for f in fields(cls) if f.name in stated}
        for name, matches in _FIELDS.items():
            if not matches(known.get(name)):
                raise ValueError(f"{name} in {MANIFEST} has the wrong type or is out of range")
        if known["begin_ns"] > known["end_ns"]:
            raise ValueError(f"{MANIFEST} ends before it begins")
        manifest_checks.stated(known["tables"])
        manifest_checks.check_texts(known.get("info"), known.get("sources"))
        return cls(**{**known, "format_version": tuple(known["format_version"])})


def _is_version(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_integer(1_000), value))


def _integer(limit: int, lowest: int = 0) -> Callable[[object], bool]:
    """Return whether a value is an integer below a limit; JSON's true is none."""
    return lambda value: type(value) is int and lowest <= value < limit


def _optional(matches: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or matches(value)


def _short_text(value: object) -> bool:
    return is_text(value) and len(str(value)) <= _MAX_TEXT


def _texts(value: object) -> bool:
    return isinstance(value, list) and len(value) <= _MAX_ARGUMENTS and all(map(is_text, value))


def _identity(value: object) -> bool:
    return isinstance(value, dict) and all(
        _optional(_short_text)(value.get(key)) for key in ("boot_id", "time_namespace")
    )


def _clock(value: object) -> bool:
    return (
        _identity(value)
        and isinstance(value, dict)
        and _optional(_integer(2**62))(value.get("error_ns"))
        and _optional(_samples)(value.get("samples"))
        and _optional(_identity)(value.get("reference"))
    )


def _samples(value: object) -> bool:
    is_time = _integer(2**60, -(2**60))
    return (
        isinstance(value, list)
        and 0 < len(value) <= _MAX_SAMPLES
        and all(
            isinstance(row, list) and len(row) == 3 and all(map(is_time, row)) and row[2] >= 0
            for row in value
        )
    )


_FIELDS: dict[str, Callable[[object], bool]] = {
    "job_id": _short_text,
    "pid": _integer(2**31),
    "parent_pid": _integer(2**31),
    # The column of the tables is int32.
    "rank": _optional(_integer(2**31)),
    "local_rank": _optional(_integer(2**31)),
    "world_size": _optional(_integer(2**31, 1)),
    "run_id": _optional(_short_text),
    "hostname": _short_text,
    "address": _optional(_short_text),
    "command": _texts,
    "followed": lambda value: value in get_args(Followed),
    "state": lambda value: value in get_args(State),
    "reason": _short_text,
    "begin_ns": _integer(2**62),
    "end_ns": _integer(2**62),
    "clock": _clock,
    "tables": lambda value: isinstance(value, dict),
    "format_version": _is_version,
}
"""Condition of each field that `manifest_checks` does not check."""
