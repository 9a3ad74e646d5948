"""Files that one process makes for all workers of pytest, and for later runs on the machine."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """Return the path of a file of this user, which `make` writes if it does not exist.

    The name contains the versions, or a hash, of what the file is made of.
    """
    folder = Path(tempfile.gettempdir()) / f"epprof-tests-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o700)  # fails if the folder belongs to another user
    path = folder / name
    with path.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other workers wait, and find the file
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=folder) as work:
                made = Path(work) / name
                make(made)
                made.rename(path)
    return path
