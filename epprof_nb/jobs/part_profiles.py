"""Profiles of a job: in memory, or in parts that are read on demand."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from epprof_nb.core.errors import ProfileFileError
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.files.dataset.part import check_files, read_columns, read_pieces, read_profile
from epprof_nb.files.epprof.manifest_checks import stated
from epprof_nb.files.epprof.versions import VERSION
from epprof_nb.jobs.stretch_of_part import read_stretch
from epprof_nb.profiles import Profile

if TYPE_CHECKING:
    from pathlib import Path

    from epprof_nb.data.table import Table
    from epprof_nb.files.dataset.manifest import Manifest

_KEPT_BYTES = 2**30
_Version = tuple[int, int, int]


class PartProfiles(Mapping[int, Profile]):
    """Profiles of parts by number; each is read on demand.

    The latest ones stay in memory, up to 1 GiB of tables. A profile that is
    still in use is returned again.

    Parameters
    ----------
    parts
        Number to the folder of the part and its manifest.
    max_bytes
        Maximum memory of the tables of one part in bytes.
    """

    def __init__(self, parts: Mapping[int, tuple[Path, Manifest]], max_bytes: int) -> None:
        self._parts = dict(parts)
        self._max_bytes = max_bytes
        self._alive: WeakValueDictionary[int, Profile] = WeakValueDictionary()
        self._latest: dict[int, Profile] = {}
        self._kept_bytes = 0
        self._whole: dict[int, list[_Version | None]] = {}
        self._damaged: dict[int, str] = {}

    def __getitem__(self, number: int) -> Profile:
        """Return the profile of a process; ProfileFileError if its part is damaged."""
        profile = self._alive[number] = self.read(number)
        if self._latest.pop(number, None) is None:
            self._kept_bytes += _size(profile)
        self._latest[number] = profile
        while len(self._latest) > 1 and self._kept_bytes > _KEPT_BYTES:
            self._kept_bytes -= _size(self._latest.pop(next(iter(self._latest))))
        return profile

    def read(self, number: int) -> Profile:
        """Return the profile of a process, which stays in memory only if it was there."""
        profile = self._alive.get(number)
        if profile is not None:
            return profile
        folder, manifest = self._parts[number]
        return Profile.from_data(read_profile(folder, manifest, max_bytes=self._max_bytes))

    def __iter__(self) -> Iterator[int]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __contains__(self, number: object) -> bool:
        # Mapping's own method would read the part.
        return number in self._parts

    def columns(self, number: int, columns: Mapping[str, Collection[str]]) -> ProfileData:
        """Return a profile with some columns as read, and the others filled."""
        profile = self._alive.get(number)
        if profile is not None:
            return profile
        folder, manifest = self._parts[number]
        tables = read_columns(folder, manifest, columns, max_bytes=self._max_bytes)
        return ProfileData(tables, manifest.info)

    def pieces(self, number: int, table: str, columns: Collection[str]) -> Iterator[Table]:
        """Iterate over a table of a process in pieces, of which only some columns are read."""
        profile = self._alive.get(number)
        if profile is not None:
            return iter([profile.tables[table]])
        folder, manifest = self._parts[number]
        return read_pieces(folder, manifest, table, columns, max_bytes=self._max_bytes)

    def files(self, number: int) -> dict[str, Path]:
        """Return the files of a process by table; ProfileFileError if its part is damaged.

        They are checked once, and again if they changed. A damaged part stays damaged.
        """
        folder, manifest = self._parts[number]
        files = {name: folder / f"{name}.parquet" for name in stated(manifest.tables)[0]}
        versions = [_version(path) for path in files.values()]
        if number not in self._damaged and self._whole.get(number) != versions:
            try:
                check_files(folder, manifest)
            except ProfileFileError as error:
                self._damaged[number] = str(error)
            self._whole[number] = versions
        if number in self._damaged:
            raise ProfileFileError(self._damaged[number])
        return files

    def stretch(self, number: int, begin_ns: int, end_ns: int) -> ProfileData:
        """Return a process with at least the rows that a window of this time needs."""
        profile = self._alive.get(number)
        folder, manifest = self._parts[number]
        # Without a stated length, all events determine it.
        if profile is None and manifest.format_version >= VERSION and _states_wall(manifest):
            return read_stretch(folder, manifest, begin_ns, end_ns, max_bytes=self._max_bytes)
        return self[number] if profile is None else profile


def _version(path: Path) -> _Version | None:
    """Return what changes with the content of a file; None without the file."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_ctime_ns


def _states_wall(manifest: Manifest) -> bool:
    return ProfileData({}, manifest.info).wall_ns > 0


def _size(profile: Profile) -> int:
    return sum(table.nbytes for table in profile.tables.values())
