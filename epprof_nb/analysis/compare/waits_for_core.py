"""Time that other processes kept repeats waiting for a core."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.devices import used_gpu
from epprof_nb.analysis.base.processor_use import load_of, waits
from epprof_nb.data.repeats import repeat_bounds

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex


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
