"""True sizes of the pages of a Parquet file, read from the page headers.

The footer of a Parquet file states how many bytes its column chunks need, but readers allocate by
the headers of the pages, which the footer need not agree with. This module walks the page headers
(Thrift compact protocol; ``PageHeader`` in Apache Parquet's ``parquet.thrift``) without
decompressing anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = 0, 2, 3
_PLAIN, _PLAIN_DICTIONARY, _RLE, _DELTA_BINARY_PACKED, _RLE_DICTIONARY = 0, 2, 3, 5, 8

TEXT_ENCODINGS = frozenset({_PLAIN, _PLAIN_DICTIONARY, _RLE_DICTIONARY})
"""Encodings of text pages: the texts take no more memory than the pages state."""
NUMBER_ENCODINGS = TEXT_ENCODINGS | {_RLE, _DELTA_BINARY_PACKED}
"""Encodings of pages of numbers: each value takes at most 8 bytes in memory."""

# Compact protocol field types: stop, bool, bool, i8, i16, i32, i64, double, binary, list, set,
# map, struct.
_TRUE, _FALSE, _I8, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class ChunkSize:
    """Size of one column chunk: bytes of its uncompressed pages and the number of its values."""

    bytes: int
    values: int


def chunk_size(data: bytes, chunk: pq.ColumnChunkMetaData, encodings: frozenset[int]) -> ChunkSize:
    """Sum the page headers of a column chunk.

    Parameters
    ----------
    data
        The Parquet file.
    chunk
        The chunk's entry in the footer.
    encodings
        Encodings that its pages may have.

    Raises
    ------
    ValueError
        If the pages do not fill the chunk, a page has another encoding or an unknown type, or a
        dictionary has more entries than the chunk has values.
    """
    if not chunk.num_values:
        return ChunkSize(0, 0)  # never read; writers may state no offset of a data page
    start = chunk.data_page_offset
    if chunk.dictionary_page_offset:
        start = min(start, chunk.dictionary_page_offset)
    end = start + chunk.total_compressed_size
    if not 0 <= start <= end <= len(data):
        raise ValueError("a column lies outside its file")
    reader = _Reader(data, start, end)
    total = values = 0
    while reader.at < end:
        header = reader.struct()
        uncompressed, compressed = header.get(2), header.get(3)
        if not (isinstance(uncompressed, int) and isinstance(compressed, int)):
            raise ValueError("a page has no size")  # noqa: TRY004 - the file's fault
        if uncompressed < 0 or compressed < 0:
            raise ValueError("a page has a negative size")
        kind, encoding, count = _page(header)
        if encoding not in encodings:
            raise ValueError(f"a page has the encoding {encoding}, which is never written")
        total += uncompressed
        if kind == _DICTIONARY_PAGE:
            if count > chunk.num_values:
                raise ValueError("a dictionary has more entries than its column has values")
        else:
            values += count
        reader.at += compressed
    if reader.at != end:
        raise ValueError("the pages do not fill their column")
    return ChunkSize(total, values)


def _page(header: dict[int, Any]) -> tuple[int, int, int]:
    """Return type, encoding and number of values of a page."""
    kind = header.get(1)
    field, encoding = {_DATA_PAGE: (5, 2), _DICTIONARY_PAGE: (7, 2), _DATA_PAGE_V2: (8, 4)}.get(
        kind if isinstance(kind, int) else -1, (0, 0)
    )
    details = header.get(field)
    if not isinstance(details, dict):
        raise ValueError(f"a page has the unknown type {kind}")  # noqa: TRY004 - the file's fault
    count = details.get(1)
    if not isinstance(count, int) or count < 0:
        raise ValueError("a page has no number of values")
    return int(str(kind)), details.get(encoding, -1), count


class _Reader:
    """Reader of Thrift's compact protocol between two offsets."""

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self.data, self.at, self.end = data, at, end

    def byte(self) -> int:
        if self.at >= self.end:
            raise ValueError("a page header is cut short")
        self.at += 1
        return self.data[self.at - 1]

    def varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("a page header holds too long a number")

    def zigzag(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def skip(self, count: int) -> None:
        if count > self.end - self.at:
            raise ValueError("a page header is cut short")
        self.at += count

    def struct(self, depth: int = 0) -> dict[int, Any]:
        """Return the integers and structs of a struct by field id; other values are skipped."""
        fields: dict[int, Any] = {}
        last = 0
        while byte := self.byte():
            last = last + (byte >> 4) if byte >> 4 else self.zigzag()
            fields[last] = self.value(byte & 0x0F, depth + 1)
        return fields

    def value(self, kind: int, depth: int) -> Any:  # noqa: ANN401
        if depth > _MAX_DEPTH:
            raise ValueError("a page header is nested too deeply")
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind == _I8:
            return self.byte()
        if kind in (_I16, _I32, _I64):
            return self.zigzag()
        if kind == _DOUBLE:
            return self.skip(8)
        if kind == _BINARY:
            return self.skip(self.varint())
        if kind == _STRUCT:
            return self.struct(depth)
        raise ValueError("a page header holds a type that Parquet does not use there")
