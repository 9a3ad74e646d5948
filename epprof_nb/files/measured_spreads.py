"""The file in the user's cache with the measured spreads between recordings.

It maps machine and devices to the values of one measurement.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from epprof_nb.files.machine_values import (
    check_values_writable,
    save_values,
    values_of,
    values_path,
)

if TYPE_CHECKING:
    from pathlib import Path

_NAME = "spread"


def spread_path() -> Path:
    """Return the path of the file, which may not exist."""
    return values_path(_NAME)


def load_spread(machine: str, devices: str) -> dict[str, Any] | None:
    """Return the values measured on a machine and its devices; None without measurements.

    An unreadable or invalid file counts as no measurement.
    """
    values = values_of(_NAME, machine).get(devices)
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
    check_values_writable(_NAME)


def save_spread(machine: str, devices: str, values: dict[str, Any]) -> Path:
    """Write the values measured on a machine and its devices, and return the path of the file.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    return save_values(_NAME, machine, devices, values)
