"""Idle time of the devices per repeat of each recording, which no Python stack has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.missing_records import busy_within
from epprof_nb.analysis.compare.elapsed_parts import repeat_windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.analysis.base.index import ProfileIndex


def idle_per_repeat(indexes: Sequence[ProfileIndex]) -> float | None:
    """Return the median time of a repeat in which no device worked, ns; None if not known."""
    found = []
    for index in indexes:
        begun, _, done = repeat_windows(index)
        busy, is_unknown = busy_within(index, begun, done)
        if not index.device_ids or is_unknown.any():
            return None
        found.append(done - begun - busy)
    return float(np.median(np.concatenate(found)))
