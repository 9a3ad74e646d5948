"""The ``.epprof`` format: a complete profile in one file.

The file is a zip archive with uncompressed members: one Parquet file per table, compressed with
zstd, and ``manifest.json``, which holds the name and version of the format, the info, the sources
of the cells, and the number of rows and SHA-256 of each table.

Files may come from untrusted sources. All sizes are checked before anything is read, nothing is
unpacked to disk, and nothing in a file is executed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import zipfile
from pathlib import Path
from typing import IO, Any

from epprof_nb.core.errors import ProfileFileError
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.schema import TABLES
from epprof_nb.data.stack_table import check_stacks
from epprof_nb.files.atomic_file import replacing
from epprof_nb.files.epprof import manifest_checks, parquet
from epprof_nb.files.epprof.versions import VERSION, upgrade
from epprof_nb.files.foreign_files import START_BYTES, why_no_profile
from epprof_nb.files.impossible_numbers import with_plausible_numbers
from epprof_nb.util.progress_bar import progress_bar

FORMAT = "epprof"
_MANIFEST = "manifest.json"
_MAX_MEMBERS = 64
_MAX_DIRECTORY_BYTES = 16_384
_ZIP64_BYTES = 2**31
_DAMAGE = (*manifest_checks.DAMAGE, zipfile.BadZipFile)


def save(profile: ProfileData, path: str | os.PathLike[str]) -> None:
    """Write a profile to one ``.epprof`` file, atomically.

    Parameters
    ----------
    profile
        The profile.
    path
        Path of the file. An existing file is replaced.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    rows = sum(map(len, profile.tables.values()))
    with (
        replacing(path) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
        progress_bar(f"Writing {Path(path).name}", rows) as bar,
    ):
        tables = {}
        for name, table in profile.tables.items():
            data = parquet.encode(table)
            _add(archive, f"{name}.parquet", data)
            tables[name] = {"rows": len(table), "sha256": hashlib.sha256(data).hexdigest()}
            bar.update(len(table))
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "tables": tables,
            "info": profile.info,
            "sources": profile.sources,
        }
        _add(archive, _MANIFEST, manifest_checks.to_json(manifest))


def read(path: str | os.PathLike[str], *, max_bytes: int) -> ProfileData:
    """Read a profile from an ``.epprof`` file; see `epprof_nb.load`."""
    path = Path(path)
    with path.open("rb") as file:
        try:
            return _read(file, path, max_bytes)
        except ProfileFileError:
            raise
        except _DAMAGE as error:
            raise _damaged(path, f"{error}" or type(error).__name__) from error


def _read(file: IO[bytes], path: Path, max_bytes: int) -> ProfileData:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    start = file.read(START_BYTES)
    if not start.startswith(b"PK\3\4"):
        raise ProfileFileError(f"{path} is not an .epprof file: {why_no_profile(start)}")
    if b"/" in _first_name(file):
        raise ProfileFileError(
            f"{path} is not an .epprof file: it is a zip archive of a folder. If this is the "
            "folder of a job, unzip it first, then load the folder."
        )
    _check_directory(file, path, size)
    with zipfile.ZipFile(file) as archive:
        members = _members(archive, path, size)
        manifest = _manifest(archive, members, path)
        older = manifest["version"] < VERSION
        newer = manifest["version"] > VERSION
        expected = {schema.name: schema for schema in TABLES}
        unknown = sorted(members.keys() - {f"{name}.parquet" for name in expected} - {_MANIFEST})
        if unknown and not newer:
            raise _damaged(path, f"it contains the unknown member {unknown[0]!r}")
        notes = [f"{name} was not loaded: it is not supported by this version." for name in unknown]
        stated, needed = manifest_checks.stated(manifest.get("tables"))
        plausible = manifest_checks.plausible_bytes(size, needed)
        if needed > max_bytes:
            raise ProfileFileError(
                f"{path} needs {needed:,} bytes of memory, more than the limit of {max_bytes:,}. "
                "If you trust it, load it with a larger max_bytes."
            )
        tables = {}
        total_rows = sum(rows for rows, _ in stated.values())
        with progress_bar(f"Reading {path.name}", total_rows) as bar:
            for name, schema in expected.items():
                member = members.get(f"{name}.parquet")
                if member is None or name not in stated:
                    if older:
                        continue
                    raise _damaged(path, f"the table {name} is missing")
                rows, digest = stated[name]
                data = archive.read(member)
                if hashlib.sha256(data).hexdigest() != digest:
                    raise _damaged(path, f"the checksum of the table {name} does not match")
                tables[name], columns = parquet.decode(
                    data,
                    schema,
                    rows=rows,
                    max_bytes=min(max_bytes, plausible),
                    allow_missing=older,
                )
                notes += [
                    f"The column {name}.{column} was not loaded: it is not supported by this "
                    "version."
                    for column in columns
                ]
                bar.update(rows)
    check_stacks(tables)
    info = manifest["info"]
    if notes:
        info["notes"] = [*info.get("notes", []), *notes]
    profile = upgrade(ProfileData(tables, info, manifest["sources"]), manifest["version"])
    return with_plausible_numbers(profile)


def _first_name(file: IO[bytes]) -> bytes:
    """Return the name of the first member, from the header before its contents."""
    file.seek(26)
    length = int.from_bytes(file.read(2), "little")
    file.seek(30)
    return file.read(length)


def _check_directory(file: IO[bytes], path: Path, size: int) -> None:
    """Check the size of the archive's directory before zipfile reads it entry by entry."""
    file.seek(max(size - 42, 0))
    tail = file.read(42)
    if len(tail) < 42 or tail[20:24] != b"PK\5\6":
        raise _damaged(path, "its end is missing")
    entries, directory_bytes = struct.unpack_from("<HI", tail, 30)
    if tail.startswith(b"PK\6\7"):
        # The numbers are in the zip64 record, which only large archives have.
        bounded = size >= _ZIP64_BYTES
    else:
        bounded = entries <= _MAX_MEMBERS and directory_bytes <= _MAX_DIRECTORY_BYTES
    if not bounded:
        raise _damaged(path, "it claims to have too many members")


def _members(archive: zipfile.ZipFile, path: Path, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name, checked to be uncompressed and no larger than the file."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename
        if name != _MANIFEST and not re.fullmatch(r"[a-z_]{1,64}\.parquet", name):
            raise _damaged(path, f"it contains the unknown member {name[:100]!r}")
        if name in members:
            raise _damaged(path, f"it contains {name} twice")
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise _damaged(path, f"its member {name} is compressed")
        members[name] = member
    if len(members) > _MAX_MEMBERS or sum(m.file_size for m in members.values()) > size:
        raise _damaged(path, "its members claim to be larger than the file")
    return members


def _manifest(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], path: Path
) -> dict[str, Any]:
    """Return the manifest with the types of its parts checked and the version as a tuple."""
    member = members.get(_MANIFEST)
    if member is None:
        raise ProfileFileError(
            f"{path} is not an .epprof file: it is a zip archive without {_MANIFEST}. Use a file "
            "written by prof.save(path)."
        )
    if member.file_size > manifest_checks.MAX_MANIFEST_BYTES:
        raise _damaged(
            path, f"{_MANIFEST} is larger than {manifest_checks.MAX_MANIFEST_BYTES:,} bytes"
        )
    manifest = json.loads(archive.read(member))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise _damaged(path, f"{_MANIFEST} does not specify the format {FORMAT!r}")
    match manifest.get("version"):
        case [int(major), int(minor)]:
            manifest["version"] = (major, minor)
        case _:
            raise _damaged(path, f"{_MANIFEST} does not specify the version of the format")
    if major != VERSION[0]:
        raise ProfileFileError(
            f"{path} has version {major}.{minor} of the format, but this version of epprof_nb "
            f"reads {VERSION[0]}.x. Upgrade with: pip install --upgrade epprof-nb"
        )
    manifest_checks.check_texts(manifest.get("info"), manifest.get("sources"))
    return manifest


def _damaged(path: Path, why: str) -> ProfileFileError:
    return ProfileFileError(
        f"{path} could not be loaded: {why}. The file is damaged, truncated or was not written by "
        "epprof_nb. Copy it again from its source, or save the profile again."
    )


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    # ZipInfo has a fixed date, so the same profile gives the same bytes.
    archive.writestr(zipfile.ZipInfo(name), data)
