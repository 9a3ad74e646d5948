"""Writing a file all or nothing: whoever looks sees the old file or the new one, whole."""

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
    """Open a new file for writing; it takes the place of `path` when the block ends well.

    Parameters
    ----------
    path
        The file to write. It is made beside itself, under another name, and moved at the end;
        where the block raises, nothing is left of it and `path` is as before.

    Raises
    ------
    OSError
        Where the folder does not exist or cannot be written.
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
