"""Atomic file writes: readers see either the complete old file or the complete new one."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a new file for writing that replaces `path` when the ``with`` block succeeds.

    Parameters
    ----------
    path
        The file to write. The data goes to a temporary file in the same directory, which is moved
        to `path` at the end. If the block raises, it is deleted and `path` is unchanged.

    Raises
    ------
    OSError
        If the directory does not exist or is not writable.
    """
    target = Path(path)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with draft.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)
