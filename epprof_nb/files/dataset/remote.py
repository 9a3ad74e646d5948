"""Folders of jobs, and profiles, on storage that fsspec opens: s3://, gs://, memory:// and so on.

A job is copied part by part, the manifest of each last, so that half a part is none.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from epprof_nb.core.errors import ProfileFileError
from epprof_nb.files.dataset.manifest import FILES, MANIFEST
from epprof_nb.files.dataset.part import MAX_PARTS
from epprof_nb.files.dataset.part_name import PART_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator

_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+(://|::)")


def is_url(path: object) -> bool:
    """Whether a path is the URL of a storage, such as ``s3://bucket/run``.

    Examples
    --------
    >>> is_url("s3://bucket/run/"), is_url("run/"), is_url("C:/run")
    (True, False, False)
    """
    return isinstance(path, str) and _URL.match(path) is not None


def storage(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it.

    Raises
    ------
    ImportError
        If fsspec, or what it needs for this storage, is not installed; the message says so.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise ImportError(
            f"{url} needs fsspec, which is not installed. Install it with: pip install fsspec, and "
            "what the storage needs, such as s3fs"
        ) from error
    system, path = url_to_fs(url)
    return system, path


def not_a_folder(target: object, kind: str = "a file") -> str:
    """Return the message of the error that a job cannot be saved there."""
    return (
        f"{target} is {kind}, and a job is saved as a folder with a part of each process: name a "
        "new folder"
    )


def put_job(folder: Path, url: str) -> None:
    """Copy the parts in a folder to a storage.

    Raises
    ------
    FileExistsError
        If it has parts of a job there, or is a file.
    OSError
        If the storage cannot be written. What was copied until then stays.
    """
    system, target = storage(url)
    if system.exists(target) and not system.isdir(target):
        raise FileExistsError(not_a_folder(url))
    if any(True for _ in _parts(system, target)):
        raise FileExistsError(
            f"{url} has parts of a job already, which would be mixed up with these; name a new "
            "folder"
        )
    for part in sorted(folder.iterdir()):
        if not PART_NAME.match(part.name):
            continue
        there = f"{target.rstrip('/')}/{part.name}"
        system.makedirs(there, exist_ok=True)
        for file in sorted(part.iterdir(), key=lambda file: file.name == MANIFEST):
            if file.name in FILES:
                system.put_file(os.fspath(file), f"{there}/{file.name}")


def get_job(url: str, folder: Path, *, max_bytes: int) -> None:
    """Copy the parts on a storage, which may be from an untrusted source, to a folder.

    Raises
    ------
    ProfileFileError
        If a part has more than `max_bytes`.
    OSError
        If the storage cannot be read.
    """
    system, source = storage(url)
    folder.mkdir()
    for number, (name, path) in enumerate(_parts(system, source)):
        if number >= MAX_PARTS:
            break
        files = {
            PurePosixPath(entry["name"]).name: entry
            for entry in system.ls(path, detail=True)
            if entry.get("type") == "file"
        }
        wanted = {file: entry for file, entry in files.items() if file in FILES}
        size = sum(int(entry.get("size") or 0) for entry in wanted.values())
        if size > max_bytes:
            raise ProfileFileError(
                f"{url}/{name} has {size:,} bytes, more than the limit of {max_bytes:,}. If you "
                "trust it, raise max_bytes."
            )
        (folder / name).mkdir()
        for file, entry in wanted.items():
            system.get_file(entry["name"], os.fspath(folder / name / file))


def is_folder(url: str) -> bool:
    """Whether a URL is a folder, not a file."""
    system, path = storage(url)
    return bool(system.isdir(path))


def get_file(url: str, target: Path) -> None:
    """Copy a file of a storage."""
    system, path = storage(url)
    system.get_file(path, os.fspath(target))


def _parts(system: Any, path: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - of fsspec
    """Yield the names and paths of the folders that look like parts, in order."""
    try:
        entries = system.ls(path, detail=True)
    except FileNotFoundError:
        return
    for entry in sorted(entries, key=lambda entry: str(entry["name"])):
        name = PurePosixPath(entry["name"].rstrip("/")).name
        if entry.get("type") == "directory" and PART_NAME.fullmatch(name):
            yield name, entry["name"]
