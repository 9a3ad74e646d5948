"""The file in the user's cache with what recording an event costs on a machine.

It maps machine, and the versions of Python and of this package, to the costs by kind.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from epprof_nb.core.version import package_version
from epprof_nb.data.recording_costs import checked_costs
from epprof_nb.files.machine_values import save_values, values_of
from epprof_nb.util.machine import machine_id

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_NAME = "recording_costs"


def load_costs() -> dict[str, float]:
    """Return the costs that were learned on this machine, ns by kind; empty if there are none."""
    return checked_costs(values_of(_NAME, machine_id()).get(_key()))


def save_costs(costs: Mapping[str, float]) -> Path:
    """Write costs of this machine beside those of other kinds, and return the path of the file.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    return save_values(_NAME, machine_id(), _key(), {**load_costs(), **costs})


def _key() -> str:
    return f"Python {sys.version_info[0]}.{sys.version_info[1]}, {package_version()}"
