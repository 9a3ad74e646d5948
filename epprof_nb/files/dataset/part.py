"""Part of a job: the folder with the tables of one process.

Parts may come from untrusted sources. Sizes are checked before anything is read, links and
special files are refused, and nothing in a part is executed.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from epprof_nb.core.errors import ProfileFileError
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.schema import TABLES
from epprof_nb.data.stack_table import check_stacks
from epprof_nb.data.table import Table
from epprof_nb.files.atomic_file import replacing
from epprof_nb.files.dataset.manifest import MANIFEST, Manifest
from epprof_nb.files.epprof import manifest_checks, parquet
from epprof_nb.files.epprof.versions import VERSION, upgrade
from epprof_nb.files.impossible_numbers import with_plausible_numbers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

RANK = "rank"
"""Column of each table with the rank of the process, for tools that read many parts."""
MAX_BYTES = 16 * 2**30
MAX_PARTS = 100_000
"""Maximum number of parts of a job that are read."""
_IN_ORDER = ("activities", "api_calls")
"""Tables that are written in the order of the starts. No table refers to their rows."""


def write_part(data: ProfileData, folder: str | os.PathLike[str], manifest: Manifest) -> Manifest:
    """Write the part of one process; its manifest comes last, so that half a part is none.

    Parameters
    ----------
    data
        The profile. Tables without rows are not written, and activities and API calls are
        written in the order of their starts.
    folder
        Folder of the part; it is created if it does not exist. A part that it has is replaced.
    manifest
        Facts about the process. Its tables, info, sources and format are set from `data`.

    Returns
    -------
    manifest
        The manifest as it was written.

    Raises
    ------
    OSError
        If the part cannot be written, such as on a full disk. The folder then has no manifest and
        no tables, so that the space is free for other parts.

    Examples
    --------
    >>> import tempfile
    >>> from epprof_nb.testing import synthetic_profile
    >>> with tempfile.TemporaryDirectory() as job:
    ...     _ = write_part(
    ...         synthetic_profile(activities=100), f"{job}/rank-00000-40",
    ...         Manifest(job_id="a1", pid=40, parent_pid=39, rank=0),
    ...     )
    ...     manifest = read_manifest(f"{job}/rank-00000-40")
    ...     profile = read_profile(f"{job}/rank-00000-40", manifest)
    >>> len(profile.activities), manifest.rank
    (100, 0)
    """
    return write_part_in_pieces(
        [data.tables | {name: data.tables[name].in_start_order() for name in _IN_ORDER}],
        folder,
        replace(manifest, info=data.info, sources=data.sources),
    )


def write_part_in_pieces(
    pieces: Iterable[Mapping[str, Table]], folder: str | os.PathLike[str], manifest: Manifest
) -> Manifest:
    """Write the part of one process piece by piece, so that its tables need not fit into memory.

    Parameters
    ----------
    pieces
        The next rows of some tables. All rows of a table have the same columns.
    folder
        See `write_part`.
    manifest
        Facts about the process, with its info and sources.

    Returns
    -------
    manifest
        The manifest as it was written.

    Raises
    ------
    OSError
        See `write_part`.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    files: dict[str, _TableFile] = {}
    try:
        with ExitStack() as opened:
            for piece in pieces:
                for name, table in piece.items():
                    if not len(table):
                        continue
                    if name not in files:
                        path = folder / f"{name}.parquet"
                        files[name] = opened.enter_context(_table_file(path, manifest.rank))
                    files[name].writer.write(table)
        for schema in TABLES:
            if schema.name not in files:
                (folder / f"{schema.name}.parquet").unlink(missing_ok=True)
        stated = {name: file.stated for name, file in files.items()}
        written = replace(manifest, tables=stated, format_version=VERSION)
        with replacing(folder / MANIFEST) as file:
            file.write(written.to_json())
    except OSError:
        for schema in TABLES:
            with suppress(OSError):
                (folder / f"{schema.name}.parquet").unlink(missing_ok=True)
        raise
    return written


def replace_stacks(
    folder: str | os.PathLike[str], manifest: Manifest, stacks: Table | None
) -> None:
    """Replace the manifest of a part that this version has written, and its stacks if not None.

    Raises
    ------
    OSError
        If they cannot be written.
    """
    folder = Path(folder)
    if stacks is not None:
        name = stacks.schema.name
        with _table_file(folder / f"{name}.parquet", manifest.rank) as file:
            file.writer.write(stacks)
        manifest = replace(manifest, tables={**manifest.tables, name: file.stated})
    with replacing(folder / MANIFEST) as opened:
        opened.write(manifest.to_json())


class _Sink(io.RawIOBase):
    """A file whose content is hashed while it is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.digest = file, hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:  # noqa: ANN401 - any buffer
        self.digest.update(content)
        return self._file.write(content)


@dataclass(slots=True)
class _TableFile:
    """The file of one table, while it is written."""

    sink: _Sink
    writer: parquet.TableWriter

    @property
    def stated(self) -> dict[str, Any]:
        """Entry of the manifest for the table, once its file is complete."""
        return {"rows": self.writer.rows, "sha256": self.sink.digest.hexdigest()}


@contextmanager
def _table_file(path: Path, rank: int | None) -> Iterator[_TableFile]:
    with replacing(path) as file:
        sink = _Sink(file)
        opened = _TableFile(sink, parquet.TableWriter(sink, {RANK: rank}))
        try:
            yield opened
        finally:
            opened.writer.close()


def read_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """Read the manifest of a part, which may be from an untrusted source.

    Raises
    ------
    ProfileFileError
        If the part is unfinished or damaged, or needs a newer version.
    """
    folder = Path(folder)
    try:
        text = _content(folder / MANIFEST, manifest_checks.MAX_MANIFEST_BYTES)
    except FileNotFoundError as error:
        raise ProfileFileError(
            f"{folder} is unfinished: it has no {MANIFEST}, which is written last. Its process "
            "still runs, or was killed."
        ) from error
    except manifest_checks.DAMAGE as error:
        raise _damaged(folder, error) from error
    try:
        return Manifest.from_json(text)
    except manifest_checks.DAMAGE as error:
        raise _damaged(folder, error) from error


def read_profile(
    folder: str | os.PathLike[str], manifest: Manifest, *, max_bytes: int = MAX_BYTES
) -> ProfileData:
    """Read the profile of a part whose manifest has been read.

    Parameters
    ----------
    folder, manifest
        Folder of the part, and its manifest.
    max_bytes
        Maximum memory of its tables in bytes.

    Raises
    ------
    ProfileFileError
        If the part is damaged or too large.
    """
    stated, _ = manifest_checks.stated(manifest.tables)
    tables, notes = _tables(Path(folder), manifest, dict.fromkeys(stated), max_bytes)
    info = dict(manifest.info)
    if notes:
        info["notes"] = [*info.get("notes", []), *notes]
    try:
        check_stacks(tables)
        profile = upgrade(
            ProfileData(tables, info, dict(manifest.sources)), manifest.format_version
        )
        return with_plausible_numbers(profile)
    except manifest_checks.DAMAGE as error:
        raise _damaged(Path(folder), error) from error


def read_columns(
    folder: str | os.PathLike[str],
    manifest: Manifest,
    columns: Mapping[str, Collection[str]],
    *,
    max_bytes: int = MAX_BYTES,
) -> dict[str, Table]:
    """Read some columns of a part; others are filled, like columns that a file lacks.

    Parameters
    ----------
    folder, manifest, max_bytes
        As for `read_profile`.
    columns
        Names of the columns of each table to read.

    Returns
    -------
    tables
        The tables by name; those that the part does not have are empty. Impossible numbers are
        replaced, as in `read_profile`.
    """
    tables, _ = _tables(Path(folder), manifest, columns, max_bytes)
    try:
        return dict(with_plausible_numbers(ProfileData(tables)).tables)
    except manifest_checks.DAMAGE as error:
        raise _damaged(Path(folder), error) from error


def read_pieces(
    folder: str | os.PathLike[str],
    manifest: Manifest,
    table: str,
    columns: Collection[str],
    *,
    between: tuple[int, int] | None = None,
    max_bytes: int = MAX_BYTES,
) -> Iterator[Table]:
    """Read some columns of a table of a part in pieces, the row groups of its file.

    Parameters
    ----------
    folder, manifest
        As for `read_profile`.
    table
        Name of the table.
    columns
        Names of its columns to read; the others are filled.
    between
        Begin and end of a stretch of time, ns: row groups without an event in it may be left out.
    max_bytes
        Maximum memory of a piece in bytes.

    Yields
    ------
    piece
        The next rows, without impossible numbers.

    Raises
    ------
    ProfileFileError
        If the part is damaged.
    """
    folder = Path(folder)
    schema = next(schema for schema in TABLES if schema.name == table)
    try:
        stated, _ = manifest_checks.stated(manifest.tables)
        if table not in stated:
            return
        rows, digest = stated[table]
        with _checked(folder, table, digest) as file:
            for piece in parquet.decode_groups(
                file, schema, rows=rows, max_bytes=max_bytes, only=columns, between=between
            ):
                yield with_plausible_numbers(ProfileData({table: piece})).tables[table]
    except manifest_checks.DAMAGE as error:
        raise _damaged(folder, error) from error


def check_files(folder: str | os.PathLike[str], manifest: Manifest) -> None:
    """Check the files of a part without reading their rows; `read_profile` lists the errors.

    Sizes, checksums, numbers of rows and columns are checked. The files are read in pieces, so they
    may be larger than memory.
    """
    folder = Path(folder)
    try:
        stated, needed = manifest_checks.stated(manifest.tables)
        _plausible_bytes(folder, stated, needed)
        is_older = manifest.format_version < VERSION
        for schema in TABLES:
            if schema.name in stated:
                rows, digest = stated[schema.name]
                with _checked(folder, schema.name, digest) as file:
                    parquet.check(file, schema, rows=rows, allow_missing=is_older)
    except manifest_checks.DAMAGE as error:
        raise _damaged(folder, error) from error


def _tables(
    folder: Path,
    manifest: Manifest,
    columns: Mapping[str, Collection[str] | None],
    max_bytes: int,
) -> tuple[dict[str, Table], list[str]]:
    """Return the tables, and notes on columns that this version does not know."""
    tables, notes = {}, []
    try:
        stated, needed = manifest_checks.stated(manifest.tables)
        plausible = _plausible_bytes(folder, stated, needed)
        _check_limit(folder, needed, max_bytes)
        for schema in TABLES:
            if schema.name not in columns:
                continue
            if schema.name not in stated:
                tables[schema.name] = Table(schema)
                continue
            rows, digest = stated[schema.name]
            data = _content(folder / f"{schema.name}.parquet", max_bytes)
            if hashlib.sha256(data).hexdigest() != digest:
                raise ValueError(f"the checksum of the table {schema.name} does not match")
            tables[schema.name], unknown = parquet.decode(
                data,
                schema,
                rows=rows,
                max_bytes=min(max_bytes, plausible),
                allow_missing=manifest.format_version < VERSION,
                only=columns[schema.name],
            )
            notes += [
                f"The column {schema.name}.{column} was not loaded: it is not supported by this "
                "version."
                for column in unknown
                if column != RANK
            ]
    except ProfileFileError:
        raise
    except manifest_checks.DAMAGE as error:
        raise _damaged(folder, error) from error
    return tables, notes


def _plausible_bytes(folder: Path, tables: Iterable[str], needed: int) -> int:
    """Return the most memory that the files of some tables may need; ValueError for more."""
    size = sum((folder / f"{name}.parquet").lstat().st_size for name in tables)
    return manifest_checks.plausible_bytes(size, needed)


def _check_limit(folder: Path, needed: int, limit: int) -> None:
    if needed > limit:
        raise ProfileFileError(
            f"{folder} needs {needed:,} bytes of memory, more than the limit of {limit:,}. If you "
            "trust it, load it with a larger max_bytes."
        )


@contextmanager
def _checked(folder: Path, table: str, digest: str) -> Iterator[io.BufferedReader]:
    """Open the file of a table for reading, if it has the digest."""
    with _opened(folder / f"{table}.parquet") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != digest:
            raise ValueError(f"the checksum of the table {table} does not match")
        yield file


def _content(path: Path, limit: int) -> bytes:
    """Return the content of a regular file that is no larger than a limit."""
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise ValueError(f"{path.name} is larger than {limit:,} bytes")
        return file.read(size)


def _opened(path: Path) -> io.BufferedReader:
    """Open a regular file for reading."""
    # A link may lead anywhere, and opening a pipe may wait for ever.
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(number, "rb")
    if not stat.S_ISREG(os.fstat(number).st_mode):
        file.close()
        raise ValueError(f"{path.name} is not a file")
    return file


def _damaged(folder: Path, error: BaseException) -> ProfileFileError:
    return ProfileFileError(
        f"{folder} could not be loaded: {error or type(error).__name__}. The part is damaged, cut "
        "short or was not written by epprof_nb. Copy it again from its source, or record again."
    )
