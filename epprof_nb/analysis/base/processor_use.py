"""Use of the processor during a profile, from the load of the host in its info."""

from __future__ import annotations

import math
from typing import Any

_LONGEST = 0.99
"""Maximum share of waits; larger values are clipped."""


def load_of(info: dict[str, Any]) -> dict[str, float]:
    """Return the measured numbers of the load; invalid values of a file are left out."""
    found = info.get("load")
    return {
        name: value
        for name, value in (found.items() if isinstance(found, dict) else ())
        if isinstance(value, int | float) and 0 <= value < math.inf
    }


def waits(load: dict[str, float]) -> tuple[float, float]:
    """Return the number of cores for which the process waited, in all and due to other processes.

    The threads of a process also wait for each other: others caused no more waits than they ran.

    Examples
    --------
    >>> waits({"own_cores": 1.0, "waiting": 0.5, "other_cores": 0.25})
    (1.0, 0.25)
    """
    share = min(load.get("waiting", 0.0), _LONGEST)
    waited = load.get("own_cores", 0.0) * share / (1 - share)
    return waited, min(waited, load.get("other_cores", 0.0))


def asleep_ns(info: dict[str, Any], wall_ns: int) -> int:
    """Return the least time in which no thread of the process ran or waited for a core.

    It is 0 if that is unknown.

    Examples
    --------
    >>> asleep_ns({"load": {"own_cores": 0.1, "waiting": 0.5}}, 1_000)
    800
    """
    load = load_of(info)
    if "own_cores" not in load:
        return 0
    return max(round((1 - load["own_cores"] - waits(load)[0]) * wall_ns), 0)
