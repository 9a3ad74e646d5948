"""Write a file all or nothing: readers see the old file or the whole new one."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import stat
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PREFIX, _SUFFIX = ".epprof-", ".part"
_LEFTOVER_AGE_S = 60.0
# Next steps after an error.
_FREE_SPACE = "free space there, or save elsewhere"
_ALLOW_WRITING = "allow writing into that folder, or save elsewhere"
_NEXT_STEPS = {
    errno.ENOSPC: _FREE_SPACE,
    errno.EDQUOT: _FREE_SPACE,
    errno.EFBIG: "save elsewhere: files there cannot be as large",
    errno.EACCES: _ALLOW_WRITING,
    errno.EPERM: _ALLOW_WRITING,
    errno.EROFS: "save elsewhere: this file system is read-only",
    errno.ENOENT: "create that folder, or save elsewhere",
    errno.ENOTDIR: "save into a folder",
    errno.ENAMETOOLONG: "choose a shorter name",
}


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a new file for writing; it replaces `path` when the block ends without an error.

    Parameters
    ----------
    path
        File to write. A symbolic link is followed, and the mode of an existing file is kept. Hard
        links are broken: other names of the old file keep the old content. A device or FIFO
        receives the bytes when the block has ended.

    Raises
    ------
    ValueError
        If `path` is empty.
    OSError
        If `path` is a folder, its folder does not exist or cannot be written, or the disk is full.

    Notes
    -----
    The draft is a hidden file in the folder of `path`. If the block raises, the draft is removed
    and `path` is unchanged. Drafts that a killed process left behind are removed by the next write
    to the folder.
    """
    target, old = _writable_target(path)
    if old is not None and not stat.S_ISREG(old.st_mode):
        with tempfile.TemporaryFile() as draft:
            yield draft
            draft.seek(0)
            with target.open("wb") as special:
                shutil.copyfileobj(draft, special)
        return
    _remove_leftovers(target.parent)
    draft_path = target.with_name(f"{_PREFIX}{secrets.token_hex(4)}{_SUFFIX}")
    try:
        with draft_path.open("xb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # marks the draft as in use
            if old is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
            draft_path.replace(target)
    except OSError as error:
        # An error of a write has no path, and the path of the draft says nothing.
        if error.strerror is None or error.filename not in (None, os.fspath(draft_path)):
            raise
        next_step = _NEXT_STEPS.get(error.errno or 0, "check the disk, or save elsewhere")
        raise OSError(f"{target} was not written ({error.strerror}); {next_step}") from error
    finally:
        draft_path.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Check that `replacing` can write a file, before its content is computed.

    Raises
    ------
    ValueError, OSError
        As `replacing` does.
    """
    _writable_target(path)


def _writable_target(path: str | os.PathLike[str]) -> tuple[Path, os.stat_result | None]:
    """Return the file that a path leads to, and its status if it exists.

    The errors name the given path; errors of the draft would name the draft.
    """
    if not os.fspath(path):
        raise ValueError('the path is empty; name a file, such as "run.epprof"')
    target = Path(os.path.realpath(path))
    try:
        old = target.stat()
    except FileNotFoundError:
        old = None
    if old is not None and stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(f"{target} is a folder; name a file in it")
    folder = target.parent
    if old is not None and not stat.S_ISREG(old.st_mode):
        if not os.access(target, os.W_OK):
            raise PermissionError(f"{target} cannot be written; name another file")
    elif not folder.is_dir():
        raise FileNotFoundError(f"folder {folder} does not exist; create it, or save elsewhere")
    elif not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"folder {folder} cannot be written; save elsewhere")
    return target, old


def _remove_leftovers(folder: Path) -> None:
    """Remove drafts that no process is writing any more."""
    with contextlib.suppress(OSError):
        for draft in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
            with contextlib.suppress(OSError), draft.open("rb") as file:
                # A draft is locked right after it is made; the age covers the moment between.
                if time.time() - os.fstat(file.fileno()).st_mtime > _LEFTOVER_AGE_S:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    draft.unlink()
