"""Use of the processor during a profile, from the load of the host in its info."""

from __future__ import annotations

from typing import Any

from epprof_nb.util.format import percent, plural

_LONGEST = 0.99
"""Maximum share of waits; larger values are clipped."""
NOTABLE_SHARE = 0.1
"""Minimum share of the time to say that other processes kept the process from a core."""
_LEAST_MEASURED_NS = 100_000_000
"""Minimum wall time to say so: the system counts the use of the cores in ticks of 10 ms."""


def load_of(info: dict[str, Any]) -> dict[str, float]:
    """Return the measured numbers of the load; invalid values of a file are left out."""
    found = info.get("load")
    return {
        name: value
        for name, value in (found.items() if isinstance(found, dict) else ())
        if isinstance(value, int | float) and 0 <= value < 2**63
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


def possible_share_kept_from_cores(info: dict[str, Any]) -> float:
    """Return `share_kept_from_cores` also for profiles that are too short to measure it."""
    load = load_of(info)
    kept = waits(load)[1]
    return min(kept / max(load.get("own_cores", 0.0) + kept, 1.0), _LONGEST)


def share_kept_from_cores(info: dict[str, Any]) -> float:
    """Return the share of the time in which other processes kept the process from a core.

    While one thread waits, others may run: only what they cannot have hidden counts. It is 0 for
    profiles that are too short to measure what other processes used.

    Examples
    --------
    >>> share_kept_from_cores({"load": {"own_cores": 0.25, "waiting": 0.75, "other_cores": 1.7}})
    0.75
    """
    wall_ns = info.get("wall_ns")
    is_short = isinstance(wall_ns, int) and wall_ns < _LEAST_MEASURED_NS
    return 0.0 if is_short else possible_share_kept_from_cores(info)


def kept_from_cores_text(info: dict[str, Any]) -> str:
    """Return how long the process waited for a core, and why; empty if that is little."""
    share, load = share_kept_from_cores(info), load_of(info)
    if share < NOTABLE_SHARE:
        return ""
    cores = plural(round(load["cores"]), "core") if "cores" in load else "the cores"
    return (
        f"waited for a core {percent(share)} of the time, because other processes used "
        f"{load['other_cores']:.1f} of {cores}"
    )


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
