"""Files in the user's cache with values that were measured on a machine.

Each is JSON and maps a machine to further keys and values. A file that cannot be read is empty.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from platformdirs import user_cache_path

from epprof_nb.files.atomic_file import check_writable, replacing

if TYPE_CHECKING:
    from pathlib import Path

_MAX_BYTES = 1 << 20


def values_path(name: str) -> Path:
    """Return the path of a file, which may not exist."""
    return user_cache_path("epprof_nb", appauthor=False) / f"{name}.json"


def values_of(name: str, machine: str) -> dict[str, Any]:
    """Return what a file has of a machine."""
    entry = _read(name).get(machine)
    return entry if isinstance(entry, dict) else {}


def check_values_writable(name: str) -> None:
    """Check that `save_values` can write.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    path = values_path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    check_writable(path)


def save_values(name: str, machine: str, key: str, values: dict[str, Any]) -> Path:
    """Write the values of a machine under a key, beside its other keys, and return the path.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    path = values_path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = _read(name)
    content[machine] = {**values_of(name, machine), key: values}
    with replacing(path) as file:
        file.write(json.dumps(content, indent=1).encode())
    return path


def _read(name: str) -> dict[str, Any]:
    try:
        with values_path(name).open("rb") as file:
            content = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
