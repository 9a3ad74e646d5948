"""True sizes of the pages of a Parquet file, read from the page headers.

The footer of a Parquet file states how many bytes its column chunks need, but readers allocate by
the headers of the pages, which may disagree with the footer. This module walks the page headers
(``PageHeader`` in Apache Parquet's ``parquet.thrift``) without decompressing anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epprof_nb.files.epprof.thrift import I32, STRUCT, CompactReader

if TYPE_CHECKING:
    from epprof_nb.files.epprof.parquet_footer import Chunk

_DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = 0, 2, 3
_PLAIN, _PLAIN_DICTIONARY, _RLE, _DELTA_BINARY_PACKED, _RLE_DICTIONARY = 0, 2, 3, 5, 8

TEXT_ENCODINGS = frozenset({_PLAIN, _PLAIN_DICTIONARY, _RLE_DICTIONARY})
"""Encodings of text pages: the texts take no more memory than the pages state."""
NUMBER_ENCODINGS = TEXT_ENCODINGS | {_RLE, _DELTA_BINARY_PACKED}
"""Encodings of pages of numbers: each value takes at most 8 bytes in memory."""


@dataclass(frozen=True, slots=True)
class ChunkSize:
    """Size of one column chunk: bytes of its uncompressed pages and the number of its values."""

    bytes: int
    values: int


def chunk_size(data: bytes, chunk: Chunk, encodings: frozenset[int]) -> ChunkSize:
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
    reader = CompactReader(data, chunk.start, chunk.end)
    total = values = 0
    while reader.at < chunk.end:
        header = reader.struct()
        uncompressed, compressed = header.get((2, I32)), header.get((3, I32))
        if not (isinstance(uncompressed, int) and isinstance(compressed, int)):
            raise ValueError("a page has no size")  # noqa: TRY004 - the file's fault
        if uncompressed < 0 or compressed < 0:
            raise ValueError("a page has a negative size")
        kind, encoding, count = _page(header)
        if encoding not in encodings:
            raise ValueError(f"a page has the encoding {encoding}, which is never written")
        total += uncompressed
        if kind == _DICTIONARY_PAGE:
            if count > chunk.values:
                raise ValueError("a dictionary has more entries than its column has values")
        else:
            values += count
        reader.at += compressed
    if reader.at != chunk.end:
        raise ValueError("the pages do not fill their column")
    return ChunkSize(total, values)


def _page(header: dict[tuple[int, int], Any]) -> tuple[int, int, int]:
    """Return type, encoding and number of values of a page."""
    kind = header.get((1, I32))
    field, encoding = {_DATA_PAGE: (5, 2), _DICTIONARY_PAGE: (7, 2), _DATA_PAGE_V2: (8, 4)}.get(
        kind if isinstance(kind, int) else -1, (0, 0)
    )
    details = header.get((field, STRUCT))
    if not isinstance(details, dict):
        raise ValueError(f"a page has the unknown type {kind}")  # noqa: TRY004 - the file's fault
    count = details.get((1, I32))
    if not isinstance(count, int) or count < 0:
        raise ValueError("a page has no number of values")
    return int(str(kind)), details.get((encoding, I32), -1), count
