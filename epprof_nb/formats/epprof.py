"""``.epprof``: a whole profile in one file.

A zip archive whose members are stored as they are: one Parquet file a table, compressed with zstd,
and ``manifest.json``, which names the format and its version and holds the info, the sources of
the cells, and the rows and the SHA-256 of each table. A new column or table raises the minor
version; anything that an older reader would misread raises the major one.

Files come from anywhere, so everything is bounded before it is read, nothing is unpacked to disk,
and nothing in a file is ever run.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from epprof_nb.core.errors import ProfileFileError
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.schema import TABLES
from epprof_nb.formats import parquet
from epprof_nb.formats.atomic_file import replacing
from epprof_nb.util.progress_bar import steps

FORMAT = "epprof"
VERSION = (1, 0)
_MANIFEST = "manifest.json"
_MAX_MEMBERS = 64
_MAX_DIRECTORY_BYTES = 16_384
_MAX_MANIFEST_BYTES = 64 * 2**20
_MAX_RATIO, _SMALL_BYTES = 2_000, 64 * 2**20
_ZIP64_BYTES = 2**31
_INFO_TYPES: dict[str, type | tuple[type, ...]] = {
    "wall_ns": int,
    "devices": list,
    "recorded": dict,
    "attribution": dict,
    "profiling_cost": dict,
    "notes": list,
    "versions": dict,
}
# What reading damaged or hostile bytes makes zipfile, json and pyarrow raise.
_DAMAGE = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    pa.ArrowException,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


def save(profile: ProfileData, path: str | os.PathLike[str]) -> None:
    """Write a profile to one ``.epprof`` file, all or nothing.

    Parameters
    ----------
    profile
        The profile.
    path
        The file; one that exists is replaced.

    Raises
    ------
    OSError
        Where it cannot be written.
    """
    rows = sum(map(len, profile.tables.values()))
    with (
        replacing(path) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
        steps(f"Writing {Path(path).name}", rows) as bar,
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
        _add(archive, _MANIFEST, json.dumps(manifest, default=_plain).encode())


def read(path: str | os.PathLike[str], *, max_bytes: int) -> ProfileData:
    """Read a profile from an ``.epprof`` file; the file may come from anywhere.

    Parameters
    ----------
    path
        The file.
    max_bytes
        Most bytes that its tables may need in memory.

    Returns
    -------
    profile
        The profile. What a newer minor version of the format added is left out, and
        ``profile.info["notes"]`` says so.

    Raises
    ------
    ProfileFileError
        For a file that is none, is damaged, is too large or needs a newer version.
    OSError
        Where it cannot be opened.
    """
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
    if file.read(4) != b"PK\3\4":
        raise ProfileFileError(
            f"{path} is not an .epprof file: it is no zip archive. Profiles are written by "
            "prof.save(path); traces of other tools are read by epprof_nb.read_trace(path)."
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
            raise _damaged(path, f"it holds something unknown, {unknown[0]!r}")
        notes = [f"Loading left out {name}: this version does not know it." for name in unknown]
        # What is packed more tightly than any recording is made to fill the memory.
        believable = max(_MAX_RATIO * size, _SMALL_BYTES)
        stated, needed = _stated_tables(manifest, path)
        if needed > believable:
            raise _damaged(path, f"it says that its {size:,} bytes become {needed:,} in memory")
        if needed > max_bytes:
            raise ProfileFileError(
                f"{path} needs {needed:,} bytes of memory, more than the limit of {max_bytes:,}. "
                "If you trust it, load it with a larger max_bytes."
            )
        tables = {}
        rows_in_all = sum(rows for rows, _ in stated.values())
        with steps(f"Reading {path.name}", rows_in_all) as bar:
            for name, schema in expected.items():
                member = members.get(f"{name}.parquet")
                if member is None or name not in stated:
                    if older:
                        continue
                    raise _damaged(path, f"the table {name} is missing")
                rows, digest = stated[name]
                data = archive.read(member)
                if hashlib.sha256(data).hexdigest() != digest:
                    raise _damaged(path, f"the table {name} is not as it was written")
                tables[name], columns = parquet.decode(
                    data,
                    schema,
                    rows=rows,
                    max_bytes=min(max_bytes, believable),
                    allow_missing=older,
                )
                notes += [
                    f"Loading left out the column {name}.{column}: this version does not know it."
                    for column in columns
                ]
                bar.update(rows)
    info = manifest["info"]
    if notes:
        info["notes"] = [*info.get("notes", []), *notes]
    return ProfileData(tables, info, manifest["sources"])


def _check_directory(file: IO[bytes], path: Path, size: int) -> None:
    """Bound the archive's directory before zipfile reads it, entry by entry."""
    file.seek(max(size - 42, 0))
    tail = file.read(42)
    if len(tail) < 42 or tail[20:24] != b"PK\5\6":
        raise _damaged(path, "its end is missing")
    entries, directory_bytes = struct.unpack_from("<HI", tail, 30)
    if tail.startswith(b"PK\6\7"):
        # The numbers are elsewhere: as they must be in a large archive, and never in a small one.
        bounded = size >= _ZIP64_BYTES
    else:
        bounded = entries <= _MAX_MEMBERS and directory_bytes <= _MAX_DIRECTORY_BYTES
    if not bounded:
        raise _damaged(path, "it says that it has too many members")


def _members(archive: zipfile.ZipFile, path: Path, size: int) -> dict[str, zipfile.ZipInfo]:
    """Return the members by name, each of which is plain, and no larger than the file."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename
        if name != _MANIFEST and not re.fullmatch(r"[a-z_]{1,64}\.parquet", name):
            raise _damaged(path, f"it holds something unknown, {name[:100]!r}")
        if name in members:
            raise _damaged(path, f"it holds {name} twice")
        if member.compress_type != zipfile.ZIP_STORED or member.file_size != member.compress_size:
            raise _damaged(path, f"{name} is compressed, which members of such a file never are")
        members[name] = member
    if len(members) > _MAX_MEMBERS or sum(m.file_size for m in members.values()) > size:
        raise _damaged(path, "it says that it holds more than it can")
    return members


def _manifest(
    archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo], path: Path
) -> dict[str, Any]:
    """Return the manifest, its parts checked for their types; the version is a tuple."""
    member = members.get(_MANIFEST)
    if member is None:
        raise ProfileFileError(
            f"{path} is not an .epprof file: it is a zip archive without {_MANIFEST}. "
            "Profiles are written by prof.save(path)."
        )
    if member.file_size > _MAX_MANIFEST_BYTES:
        raise _damaged(path, f"{_MANIFEST} is larger than {_MAX_MANIFEST_BYTES:,} bytes")
    manifest = json.loads(archive.read(member))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise _damaged(path, f"{_MANIFEST} does not name the format {FORMAT!r}")
    match manifest.get("version"):
        case [int(major), int(minor)]:
            manifest["version"] = (major, minor)
        case _:
            raise _damaged(path, f"{_MANIFEST} does not name the format's version")
    if major != VERSION[0]:
        raise ProfileFileError(
            f"{path} has version {major}.{minor} of the format, and this epprof_nb reads "
            f"{VERSION[0]}.x. Load it with a newer version: pip install --upgrade epprof-nb"
        )
    info, sources = manifest.get("info"), manifest.get("sources")
    if not isinstance(info, dict) or not isinstance(sources, dict):
        raise _damaged(path, f"{_MANIFEST} lacks the info or the sources")
    for key, kind in _INFO_TYPES.items():
        if key in info and not isinstance(info[key], kind):
            raise _damaged(path, f"the info's {key} is not of the kind it must be")
    if not 0 <= info.get("wall_ns", 0) < 2**63:
        raise _damaged(path, "the info's wall_ns is out of range")
    if not all(isinstance(source, str) for source in sources.values()):
        raise _damaged(path, "a cell's source is not text")
    return manifest


def _stated_tables(manifest: dict[str, Any], path: Path) -> tuple[dict[str, tuple[int, str]], int]:
    """Return rows and digest of each known table, and the bytes that all rows need in memory."""
    tables = manifest.get("tables")
    stated: dict[str, tuple[int, str]] = {}
    needed = 0
    for schema in TABLES:
        match tables.get(schema.name) if isinstance(tables, dict) else None:
            case {"rows": int(rows), "sha256": str(digest)} if rows >= 0:
                stated[schema.name] = rows, digest
                needed += rows * parquet.row_bytes(schema)
            case None:
                continue
            case _:
                raise _damaged(path, f"{_MANIFEST} does not describe the table {schema.name}")
    return stated, needed


def _damaged(path: Path, why: str) -> ProfileFileError:
    return ProfileFileError(
        f"{path} could not be loaded: {why}. It is damaged, was cut short or was not written by "
        "epprof_nb; copy it again from where it came, or save the profile again."
    )


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    # A fixed date: the same profile gives the same bytes.
    archive.writestr(zipfile.ZipInfo(name), data)


def _plain(value: object) -> object:
    """Make something of what JSON does not know, so that a result is never lost for its info."""
    return value.item() if isinstance(value, np.generic) else str(value)
