"""The spread between recordings of the same code: assumed, or measured on a machine.

Recordings of the same code differ by more than their repeats do, because clocks, memory layout and
other processes change in between.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from epprof_nb.analysis.compare.variance_of_medians import variance_between

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.compare.recordings import Recordings

Place: TypeAlias = Literal["total", "device", "host"]
"""Quantities that vary: the elapsed time of a repeat, device times, and host times of ops."""

MIN_RECORDINGS = 5
"""Minimum number of recordings to estimate their spread."""
_SHORT_OP_NS = 50_000
"""Time by which an execution of a short op differs between recordings, because caches, pages of
memory and threads are in a different state. Copies of 3 to 50 us differed by up to 124 us."""
_MOST_EXECUTIONS = 4
"""Maximum number of executions in a repeat to which it applies; further ones share a state."""
_MOST_SHARE = 0.99
"""Maximum share of a time that counts as this difference."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard deviations of the logarithm of a median between recordings of the same code.

    Attributes
    ----------
    total, device, host
        Of the elapsed time per repeat, device times, and host times.
    recordings
        Number of recordings that were measured; 0 if the values are assumed.
    date
        Day of the measurement, as ``2026-11-22``.
    """

    total: float
    device: float
    host: float
    recordings: int = 0
    date: str = ""

    @property
    def freedom(self) -> float:
        """Degrees of freedom; infinite for assumed values."""
        return self.recordings - 1 if self.recordings else math.inf

    def of(self, place: Place) -> float:
        """Return the spread of one kind of time."""
        value: float = getattr(self, place)
        return value


ASSUMED = {"gpu": Spread(0.01, 0.005, 0.03), "host": Spread(0.03, 0.03, 0.03)}
"""Assumed spreads by kind of device. GPU kernels vary less than times of the host, which also runs
the commands of the host device. On a host that shares its hardware, a spread of 1 % found a
difference in one of four pairs of recordings of the same code."""
ASSUMED_ALTERNATED = {"gpu": Spread(0.005, 0.0025, 0.005), "host": Spread(0.005, 0.005, 0.005)}
"""The same for recordings whose repeats alternated, which share the drift of the machine."""


def spread_of_short_op(median_ns: int, executions: int) -> float:
    """Return how much longer the executions of an op of the host may take in another recording.

    Parameters
    ----------
    median_ns
        Their time in a repeat.
    executions
        Their number in a repeat.

    Returns
    -------
    spread
        Bound of the logarithm of the ratio.
    """
    share = _SHORT_OP_NS * min(executions, _MOST_EXECUTIONS) / max(median_ns, 1)
    return -math.log1p(-min(share, _MOST_SHARE))


def place_of(indexes: Sequence[ProfileIndex]) -> tuple[str, str] | None:
    """Return the machine and the devices of recordings; None if they differ or are unknown."""
    found = set()
    for index in indexes:
        machine = index.profile.info.get("machine")
        used = set(index.device_ids)
        names = sorted(
            str(device.get("name") or "unknown")
            for device in index.profile.info.get("devices") or ()
            if device.get("device_id") in used
        )
        found.add((str(machine or ""), ", ".join(names)))
    if len(found) != 1:
        return None
    machine, devices = found.pop()
    return (machine, devices) if machine else None


def measure_spread(side: Recordings, date: str) -> Spread:
    """Return the spread between recordings of the same code, beyond the spread of their repeats.

    Parameters
    ----------
    side
        At least `MIN_RECORDINGS` recordings.
    date
        Day of the measurement.
    """
    total = float(variance_between(side.elapsed)[0])
    names = {"device": "device_ns", "host": "host_ns"}
    found = {}
    for place, column in names.items():
        values = [getattr(ops, column) for ops in side.ops]
        common = np.all([of.all(axis=1) for of in values], axis=0)
        common[0] = False  # the session
        rows = np.flatnonzero(common)
        # Without times of this kind, the elapsed time is the best estimate.
        found[place] = total
        if len(rows):
            times = [of[rows].astype(np.float64) for of in values]
            # Long ops count more, because other processes also affect short ones.
            weights = np.sum([np.median(of, axis=1) for of in times], axis=0)
            found[place] = float(np.average(variance_between(times), weights=weights))
    return Spread(
        math.sqrt(total),
        math.sqrt(found["device"]),
        math.sqrt(found["host"]),
        len(side.indexes),
        date,
    )
