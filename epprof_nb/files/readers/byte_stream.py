"""The bytes of a trace in pieces, plain or compressed with gzip."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from isal import isal_zlib

from epprof_nb.core.errors import ProfileFileError

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE_BYTES = 2**20
_GZIP = b"\x1f\x8b"
_MAX_RATIO = 300
"""Maximum ratio of compression. Traces have 10 to 60, bombs up to 1,032."""
_SLICE_BYTES = 16 * 2**10
"""Bytes decompressed at once. The reader loses the contents of a damaged slice."""
_SMALL_BYTES = 64 * 2**20


class ByteStream:
    """Pieces of a file's content, of at most `PIECE_BYTES` bytes.

    Parameters
    ----------
    file
        The file, opened in binary mode.

    Attributes
    ----------
    damage
        Description of the damage that ended the content early; None without damage.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.damage: str | None = None

    def __iter__(self) -> Iterator[bytes]:
        piece = self._file.read(PIECE_BYTES)
        if piece.startswith(_GZIP):
            yield from self._decompressed(piece)
            return
        while piece:
            yield piece
            piece = self._file.read(PIECE_BYTES)

    def _decompressed(self, piece: bytes) -> Iterator[bytes]:
        stream, made = isal_zlib.decompressobj(wbits=31), bytearray()
        consumed = produced = 0
        within_member = False
        while piece:
            for at in range(0, len(piece), _SLICE_BYTES):
                rest = piece[at : at + _SLICE_BYTES]
                consumed += len(rest)
                while rest:
                    try:
                        text = stream.decompress(rest, PIECE_BYTES)
                    except isal_zlib.error:  # type: ignore[misc]
                        self.damage = "its compressed data is damaged"
                        yield bytes(made)
                        return
                    made += text
                    produced += len(text)
                    _check_ratio(consumed, produced)
                    within_member = not stream.eof
                    if within_member:
                        rest = stream.unconsumed_tail
                    else:  # another member may follow, or padding
                        rest, stream = (
                            stream.unused_data.lstrip(b"\0"),
                            isal_zlib.decompressobj(wbits=31),
                        )
                    if len(made) >= PIECE_BYTES:
                        yield bytes(made)
                        made.clear()
            piece = self._file.read(PIECE_BYTES)
        if within_member:
            self.damage = "its compressed data is truncated"
        yield bytes(made)


def _check_ratio(consumed: int, produced: int) -> None:
    if produced > max(_SMALL_BYTES, _MAX_RATIO * consumed):
        raise ProfileFileError(
            f"the file's first {consumed:,} compressed bytes expand to more than {_MAX_RATIO} "
            "times their size, which no trace does. If you trust it, decompress it with gzip and "
            "read the result."
        )
