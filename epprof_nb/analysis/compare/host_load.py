"""The load of the host while a profile was recorded."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.devices import used_gpu
from epprof_nb.data.repeats import repeat_bounds

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex

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


def kept_waiting(index: ProfileIndex, repeats: int) -> npt.NDArray[np.float64]:
    """Return how long other processes kept each repeat waiting for a core; 0 if unknown.

    It is 0 for profiles with a GPU, because the GPU may have worked meanwhile.
    """
    info = index.profile.info
    measured = np.array(info.get("repeat_waits_ns") or [], np.float64)
    if len(measured) != repeats or used_gpu(index):
        return np.zeros(repeats)
    waited, by_others = waits(load_of(info))
    kept: npt.NDArray[np.float64] = measured * (by_others / waited if waited else 0.0)
    return kept


def share_kept_waiting(index: ProfileIndex) -> float:
    """Return the share of the repeats that `elapsed` subtracts as waits for a core.

    Zero for a profile without repeats.
    """
    starts, ends = repeat_bounds(index.profile.info)
    kept = kept_waiting(index, len(starts))
    return float(kept.sum() / max(int((ends - starts).sum()), 1))
