"""Tables as Parquet: the part of an ``.epprof`` file that other tools can read as well."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from epprof_nb.data.arrow import from_arrow, to_arrow
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MISSING, Column, Kind, TableSchema
from epprof_nb.data.table import FILL, STORAGE, Table
from epprof_nb.files.epprof.parquet_footer import row_groups
from epprof_nb.files.epprof.parquet_pages import NUMBER_ENCODINGS, TEXT_ENCODINGS, chunk_size

if TYPE_CHECKING:
    from collections.abc import Mapping

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


def encode(table: Table) -> bytes:
    """Encode a table as a Parquet file in memory; missing ids and names become nulls.

    Characters that UTF-8 cannot encode (lone surrogates) are written as escapes. Optional columns
    without values are left out.
    """
    columns = [c for c in table.schema.columns if not (c.optional and table.is_absent(c.name))]
    numbers = [column.name for column in columns if pa.types.is_integer(_ARROW[column.kind])]
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.Table.from_arrays(
            [to_arrow(table, column) for column in columns], [column.name for column in columns]
        ),
        sink,
        compression="zstd",
        use_dictionary=[column.name for column in columns if _ARROW[column.kind] == _TEXT],
        # Times and ids grow in small steps.
        column_encoding=dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
    )
    return bytes(memoryview(sink.getvalue()))


def decode(
    data: bytes, schema: TableSchema, *, rows: int, max_bytes: int, allow_missing: bool
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
    _check_pages(data, file, {column.name: column for column in known}, schema.name, max_bytes)
    read = file.read(columns=[column.name for column in known])
    if read.num_rows != rows:
        raise ValueError(f"table {schema.name} yields {read.num_rows} rows instead of {rows}")
    columns = {column.name: _from_arrow(read.column(column.name), column) for column in known}
    return Table(schema, columns), [n for n in file_schema.names if n not in schema.names]


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
