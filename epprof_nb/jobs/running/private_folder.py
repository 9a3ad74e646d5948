"""The private folder of a notebook: an order, the sockets of its children, its running cells."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from pathlib import Path

from epprof_nb.recording.children.order_to_children import ORDER_FILE, Order

_PREFIX = "epprof-children-"
_LONGEST = 80
"""Maximum length of the folder's path: the path of a socket has at most 107 bytes."""


def make_folder() -> Path:
    """Create a folder that only this user can enter; remove folders of ended processes."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    if not os.access(base, os.W_OK) or len(base) > _LONGEST:
        base = tempfile.gettempdir()
    if len(os.fsencode(base)) > _LONGEST:
        base = "/tmp"  # noqa: S108 - the folder in it is private
    _remove_abandoned(base)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
    cells_folder(folder).mkdir(mode=0o700)
    return folder


def _remove_abandoned(base: str) -> None:
    """Remove the folders of notebooks that were killed."""
    for file in Path(base).glob(f"{_PREFIX}*/{ORDER_FILE}"):
        try:
            if is_private(file.parent) and Order.read(file).creator_ended:
                shutil.rmtree(file.parent, ignore_errors=True)
        except (OSError, ValueError):  # another user's, or of another version
            continue


def is_private(folder: Path) -> bool:
    """Whether a folder belongs to this user and nobody else can enter it."""
    try:
        found = folder.lstat()
    except OSError:
        return False
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == os.geteuid()
        and not stat.S_IMODE(found.st_mode) & 0o077
    )


def socket_path(folder: Path, pid: int) -> Path:
    """Return the path of the socket on which a process listens."""
    return folder / f"{pid}.sock"


def listening(folder: Path) -> list[int]:
    """Return the ids of the processes that have a socket, ascending; some may have ended."""
    names = (path.stem for path in folder.glob("*.sock"))
    return sorted(int(name) for name in names if name.isdecimal())


def cells_folder(folder: Path) -> Path:
    """Return the folder with the order of each cell that is running."""
    return folder / "cells"
