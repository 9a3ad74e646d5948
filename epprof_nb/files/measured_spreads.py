"""The file in the user's cache with the measured spreads between recordings.

It is JSON and maps machine and devices to the values of one measurement.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from platformdirs import user_cache_path

from epprof_nb.files.atomic_file import check_writable, replacing

if TYPE_CHECKING:
    from pathlib import Path

_MAX_BYTES = 1 << 20


def spread_path() -> Path:
    """Return the path of the file, which may not exist."""
    return user_cache_path("epprof_nb", appauthor=False) / "spread.json"


def load_spread(machine: str, devices: str) -> dict[str, Any] | None:
    """Return the values measured on a machine and its devices; None without measurements.

    An unreadable or invalid file counts as no measurement.
    """
    entry = _read().get(machine, {})
    values = entry.get(devices) if isinstance(entry, dict) else None
    if not isinstance(values, dict):
        return None
    numbers = [values.get(name) for name in ("total", "device", "host")]
    if not all(
        isinstance(number, float) and math.isfinite(number) and 0 <= number < 10
        for number in numbers
    ):
        return None
    recordings, date = values.get("recordings"), values.get("date")
    if not isinstance(recordings, int) or not 2 <= recordings < 10**6 or not isinstance(date, str):
        return None
    names = ("total", "device", "host", "recordings", "date")
    return {name: values[name] for name in names}


def check_spread_writable() -> None:
    """Check that `save_spread` can write, before recordings are made for it.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    path = spread_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    check_writable(path)


def save_spread(machine: str, devices: str, values: dict[str, Any]) -> Path:
    """Write the values measured on a machine and its devices, and return the path of the file.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    path = spread_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    content = _read()
    of_machine = content.get(machine)
    content[machine] = {**(of_machine if isinstance(of_machine, dict) else {}), devices: values}
    with replacing(path) as file:
        file.write(json.dumps(content, indent=1).encode())
    return path


def _read() -> dict[str, Any]:
    try:
        with spread_path().open("rb") as file:
            content = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
