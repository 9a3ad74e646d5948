"""Column chunks of a Parquet file, read from its footer (``FileMetaData`` in ``parquet.thrift``).

pyarrow's ``RowGroupMetaData.column`` ends the process if a level histogram of the footer has a
wrong length: its exception leaves a function that must not raise. This module does not call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from epprof_nb.files.epprof.thrift import I64, LIST, STRUCT, CompactReader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_MAGIC = b"PAR1"
_TAIL_BYTES = 8
# Ids of fields: of FileMetaData, of RowGroup, of ColumnChunk, and of ColumnMetaData.
_ROW_GROUPS, _COLUMNS, _META_DATA = 4, 1, 3
_VALUES, _COMPRESSED, _DATA_PAGE, _DICTIONARY_PAGE = 5, 7, 9, 11


class Chunk(NamedTuple):
    """Offsets of a column chunk in its file, and the number of its values."""

    start: int
    end: int
    values: int


def row_groups(data: bytes) -> Iterator[list[Chunk]]:
    """Iterate over the row groups of a file.

    Parameters
    ----------
    data
        The Parquet file.

    Yields
    ------
    chunks
        A chunk per leaf column of the schema, in its order.

    Raises
    ------
    ValueError
        If the footer is damaged, or a chunk lies outside the file.
    """
    start = _start(data[-_TAIL_BYTES:], len(data))
    return row_groups_of(data[start:-_TAIL_BYTES], len(data))


def footer(file: BinaryIO, size: int) -> bytes:
    """Read the footer of a file with `size` bytes; ValueError if it has none."""
    file.seek(max(size - _TAIL_BYTES, 0))
    start = _start(file.read(_TAIL_BYTES), size)
    file.seek(start)
    return file.read(size - _TAIL_BYTES - start)


def row_groups_of(footer: bytes, size: int) -> Iterator[list[Chunk]]:
    """Iterate over the row groups in the footer of a file with `size` bytes; see `row_groups`."""
    for group in _structs(CompactReader(footer, 0, len(footer)).struct(), _ROW_GROUPS):
        yield [_chunk(column, size) for column in _structs(group, _COLUMNS)]


def _start(tail: bytes, size: int) -> int:
    start = size - _TAIL_BYTES - int.from_bytes(tail[:4], "little")
    if len(tail) < _TAIL_BYTES or not 0 <= start < size - _TAIL_BYTES or tail[4:] != _MAGIC:
        raise ValueError("it has no footer")
    return start


def _structs(fields: dict[tuple[int, int], Any], number: int) -> list[dict[tuple[int, int], Any]]:
    found = fields.get((number, LIST))
    if found is None or not all(isinstance(item, dict) for item in found):
        raise ValueError("its footer lacks row groups or columns")
    return list(found)


def _chunk(column: dict[tuple[int, int], Any], size: int) -> Chunk:
    stated = column.get((_META_DATA, STRUCT)) or {}
    values, compressed, start = (
        stated.get((number, I64), -1) for number in (_VALUES, _COMPRESSED, _DATA_PAGE)
    )
    if not values:
        return Chunk(0, 0, 0)  # never read; writers may omit the offset of a data page
    dictionary = stated.get((_DICTIONARY_PAGE, I64), 0)
    if dictionary > 0:
        start = min(start, dictionary)
    if values < 0 or not 0 <= start <= start + compressed <= size:
        raise ValueError("a column lies outside its file")
    return Chunk(start, start + compressed, values)
