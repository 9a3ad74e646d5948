"""Tables as Parquet: the part of an ``.epprof`` file that other tools can read as well."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from epprof_nb.data.arrow import from_arrow, to_arrow
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MISSING, Column, Kind, TableSchema
from epprof_nb.data.table import FILL, STORAGE, Table
from epprof_nb.files.epprof.parquet_footer import Chunk, footer, row_groups, row_groups_of
from epprof_nb.files.epprof.parquet_pages import NUMBER_ENCODINGS, TEXT_ENCODINGS, chunk_size

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import IO, BinaryIO

    import numpy.typing as npt

_TEXT = pa.dictionary(pa.int32(), pa.string())
_ARROW: dict[Kind, pa.DataType] = {
    "time": pa.int64(),
    "int": pa.int64(),
    "id": pa.int64(),
    "row": pa.int32(),
    "delta": pa.int64(),
    "name": _TEXT,
    "args": _TEXT,
    "bool": pa.bool_(),
}
_PLAIN = ("duration_ns",)
"""Columns of numbers that repeat, but do not grow: their differences need more space."""
ROW_GROUP_ROWS = 2**20
"""Rows that readers can read, or skip by their times, as one."""


def encode(table: Table, constants: Mapping[str, int | None] | None = None) -> bytes:
    """Encode a table as a Parquet file in memory; missing ids and names become nulls.

    Characters that UTF-8 cannot encode (lone surrogates) are written as escapes. Optional columns
    without values are left out. `constants` are further int32 columns with one value each.
    """
    sink = pa.BufferOutputStream()
    writer = TableWriter(sink, constants)
    writer.write(table)
    writer.close()
    return bytes(memoryview(sink.getvalue()))


class TableWriter:
    """Writes tables one after the other to one Parquet file; see `encode`.

    Parameters
    ----------
    sink
        A file that is open for writing, or a stream of pyarrow.
    constants
        See `encode`.

    Attributes
    ----------
    rows
        Number of rows so far.
    """

    def __init__(
        self,
        sink: IO[bytes] | pa.NativeFile,
        constants: Mapping[str, int | None] | None = None,
    ) -> None:
        self._sink, self._constants = sink, dict(constants or {})
        self._writer: pq.ParquetWriter | None = None
        self.rows = 0

    def write(self, table: Table) -> None:
        """Write a table, with the columns of the first one."""
        columns = [c for c in table.schema.columns if not (c.optional and table.is_absent(c.name))]
        further = {name: _constant(value, len(table)) for name, value in self._constants.items()}
        content = pa.Table.from_arrays(
            [*(to_arrow(table, column) for column in columns), *further.values()],
            [*(column.name for column in columns), *further],
        )
        if self._writer is None:
            numbers = [
                column.name
                for column in columns
                if pa.types.is_integer(_ARROW[column.kind]) and column.name not in _PLAIN
            ]
            self._writer = pq.ParquetWriter(
                self._sink,
                content.schema,
                compression="zstd",
                use_dictionary=[c.name for c in columns if _ARROW[c.kind] == _TEXT],
                # Times and ids grow in small steps.
                column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
            )
        self._writer.write_table(content, row_group_size=ROW_GROUP_ROWS)
        self.rows += len(table)

    def close(self) -> None:
        """Complete the file, of which the sink remains open."""
        if self._writer is not None:
            self._writer.close()


def _constant(value: int | None, length: int) -> pa.Array:
    if value is None:
        return pa.nulls(length, pa.int32())
    return pa.Array.from_buffers(
        pa.int32(), length, [None, pa.py_buffer(np.full(length, value, np.int32))]
    )


def decode(
    data: bytes,
    schema: TableSchema,
    *,
    rows: int,
    max_bytes: int,
    allow_missing: bool,
    only: Collection[str] | None = None,
) -> tuple[Table, list[str]]:
    """Decode a table written by `encode`, from a possibly untrusted file.

    Parameters
    ----------
    data
        The Parquet file.
    schema
        Expected schema.
    rows
        Expected number of rows.
    max_bytes
        Maximum number of bytes that the pages of the columns may need in memory.
    allow_missing
        Whether columns that are not optional may be absent; `Table` then fills them.
    only
        Names of the columns to read; the others are filled. None reads all.

    Returns
    -------
    table
        The table.
    unknown
        Names of columns that are not in `schema` and were not read.

    Raises
    ------
    ValueError
        If the file violates one of these conditions. pyarrow raises its own errors for data that
        is not Parquet.
    """
    file = pq.ParquetFile(pa.BufferReader(data))
    known = _known(file, schema, rows, allow_missing=allow_missing, only=only)
    _check_pages(data, file, {column.name: column for column in known}, schema.name, max_bytes)
    read = file.read(columns=[column.name for column in known])
    unknown = [n for n in file.schema_arrow.names if n not in schema.names]
    return _table(read, rows, schema, known), unknown


def decode_groups(
    file: BinaryIO,
    schema: TableSchema,
    *,
    rows: int,
    max_bytes: int,
    only: Collection[str],
    between: tuple[int, int] | None = None,
) -> Iterator[Table]:
    """Decode the row groups of a file one after the other, so that memory is needed for one.

    Parameters
    ----------
    file
        The Parquet file, open for reading.
    schema, rows, only
        See `decode`. Columns may be absent.
    max_bytes
        Maximum number of bytes that the pages of one row group may need in memory.
    between
        Begin and end of a stretch of time, ns: groups that state to have no event in it are not
        read.

    Raises
    ------
    ValueError
        As `decode`, at the latest after the last group.
    """
    size = file.seek(0, os.SEEK_END)
    parquet = pq.ParquetFile(file, pre_buffer=False)
    known = _known(parquet, schema, rows, allow_missing=True, only=only)
    leaves = [parquet.schema.column(i).path for i in range(len(parquet.schema))]
    read_rows = 0
    for number, chunks in enumerate(row_groups_of(footer(file, size), size)):
        stated = parquet.metadata.row_group(number).num_rows
        read_rows += stated
        if between is not None and _is_outside(parquet.metadata.row_group(number), *between):
            continue
        needed, values = 0, set()
        for path, chunk in zip(leaves, chunks, strict=True):
            column = next((column for column in known if column.name == path), None)
            if column is not None:
                file.seek(chunk.start)
                content = file.read(chunk.end - chunk.start)
                encodings = TEXT_ENCODINGS if _ARROW[column.kind] == _TEXT else NUMBER_ENCODINGS
                found = chunk_size(content, Chunk(0, len(content), chunk.values), encodings)
                needed += found.bytes
                values.add(found.values)
        if needed > max_bytes:
            raise ValueError(f"table {schema.name} would need more than {max_bytes:,} bytes")
        if values != {stated}:
            raise ValueError(
                f"a row group of {schema.name} does not have as many rows as it states"
            )
        names = [column.name for column in known]
        # No name refers to a group while the next one is read.
        yield _table(parquet.read_row_group(number, columns=names), stated, schema, known)
    if read_rows != rows:
        raise ValueError(f"table {schema.name} yields {read_rows} rows instead of {rows}")


def check(file: BinaryIO, schema: TableSchema, *, rows: int, allow_missing: bool) -> None:
    """Check what the footer of a file states, without reading its rows; see `decode`."""
    _known(pq.ParquetFile(file), schema, rows, allow_missing=allow_missing, only=None)


def _is_outside(group: pq.RowGroupMetaData, begin: int, end: int) -> bool:
    """Return whether a row group states that all its events end before, or begin after."""
    bounds: dict[str, tuple[int, int]] = {}
    for number in range(group.num_columns):
        column = group.column(number)
        if column.path_in_schema in ("start_ns", "end_ns"):
            statistics = column.statistics
            if statistics is None or not statistics.has_min_max:
                return False
            bounds[column.path_in_schema] = statistics.min, statistics.max
    if "start_ns" not in bounds:
        return False
    return bounds["start_ns"][0] >= end or max(latest for _, latest in bounds.values()) < begin


def _known(
    file: pq.ParquetFile,
    schema: TableSchema,
    rows: int,
    *,
    allow_missing: bool,
    only: Collection[str] | None,
) -> list[Column]:
    """Return the columns to read, after a check of all of the file."""
    stated = file.metadata.num_rows
    if stated != rows:
        raise ValueError(f"table {schema.name} has {stated} rows instead of {rows}")
    file_schema = file.schema_arrow
    if len(set(file_schema.names)) != len(file_schema.names):
        raise ValueError(f"table {schema.name} has duplicate column names")
    known = [column for column in schema.columns if column.name in file_schema.names]
    required = {column.name for column in schema.columns if not column.optional}
    absent = sorted(required - set(file_schema.names))
    if absent and not allow_missing:
        raise ValueError(f"table {schema.name} lacks the column {absent[0]}")
    for column in known:
        file_type = file_schema.field(column.name).type
        if file_type != _ARROW[column.kind]:
            raise ValueError(
                f"column {schema.name}.{column.name} has type {file_type} instead of "
                f"{_ARROW[column.kind]}"
            )
    if not known:
        raise ValueError(f"table {schema.name} has none of its columns")
    if only is not None:
        known = [column for column in known if column.name in only] or known[:1]
    return known


def _table(read: pa.Table, rows: int, schema: TableSchema, known: Collection[Column]) -> Table:
    if read.num_rows != rows:
        raise ValueError(f"table {schema.name} yields {read.num_rows} rows instead of {rows}")
    columns = {column.name: _from_arrow(read.column(column.name), column) for column in known}
    return Table(schema, columns)


def _check_pages(
    data: bytes, file: pq.ParquetFile, columns: Mapping[str, Column], table: str, max_bytes: int
) -> None:
    """Check the memory of the columns to read by their page headers, before they are read."""
    leaves = [columns.get(file.schema.column(i).path) for i in range(len(file.schema))]
    needed, values = 0, dict.fromkeys(columns, 0)
    for chunks in row_groups(data):
        for column, chunk in zip(leaves, chunks, strict=True):
            if column is None:
                continue
            is_text = _ARROW[column.kind] == _TEXT
            size = chunk_size(data, chunk, TEXT_ENCODINGS if is_text else NUMBER_ENCODINGS)
            needed += size.bytes
            values[column.name] += size.values
            if needed > max_bytes:
                raise ValueError(f"table {table} would need more than {max_bytes:,} bytes")
    for name, count in values.items():
        if count != file.metadata.num_rows:
            raise ValueError(
                f"column {table}.{name} has {count} values, not {file.metadata.num_rows}"
            )


def _from_arrow(data: pa.ChunkedArray, column: Column) -> npt.NDArray[Any] | CategoryColumn:
    if column.kind == "name":
        return _names(data)
    if column.kind == "args":
        names = _names(data)
        if not all(isinstance(json.loads(text), dict) for text in names.categories):
            raise ValueError(f"column {column.name} contains values that are not JSON objects")
        return names
    if data.null_count and column.kind not in ("id", "row", "delta"):
        raise ValueError(f"column {column.name} contains nulls")
    parts = [from_arrow(chunk, FILL[column.kind]) for chunk in data.chunks]
    parts = parts or [np.empty(0, STORAGE[column.kind])]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _names(data: pa.ChunkedArray) -> CategoryColumn:
    """Unify the dictionaries of the chunks to one set of categories."""
    index: dict[str, int] = {}
    parts = [np.empty(0, np.int32)]
    for chunk in data.chunks:
        texts = chunk.dictionary.to_pylist()
        codes = from_arrow(chunk.indices, MISSING)
        if codes.min(initial=MISSING) < MISSING or codes.max(initial=MISSING) >= len(texts):
            raise ValueError("a name is not in its dictionary")
        lookup = [MISSING if t is None else index.setdefault(t, len(index)) for t in texts]
        # The code MISSING (-1) selects the last element, which is MISSING again.
        parts.append(np.array([*lookup, MISSING], np.int32)[codes])
    return CategoryColumn(np.concatenate(parts), tuple(index))
