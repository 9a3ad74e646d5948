"""Compression of exported files."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

_LEVEL = 1


def compressed(file: IO[bytes]) -> AbstractContextManager[Any]:
    """Return a stream that compresses into `file`, in a separate thread."""
    from isal import igzip_threaded

    stream: AbstractContextManager[Any] = igzip_threaded.open(  # type: ignore[no-untyped-call]
        file, "wb", compresslevel=_LEVEL, threads=1
    )
    return stream
