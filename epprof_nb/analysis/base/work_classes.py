"""Classes of device work: which activities compute, copy or communicate, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.device_work import MEMCPY, MEMSET
from epprof_nb.arrays.intervals import clip_times, union

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.intervals import Intervals

COMPUTE, COPY, COMMUNICATION = 0, 1, 2
"""Classes of device work."""

_COMMUNICATION_WORDS = ("nccl", "rccl", "nvshmem", "oneccl", "mscclpp")
"""Parts of the names of kernels that communicate, in lower case."""


def work_classes(index: ProfileIndex) -> npt.NDArray[np.uint8]:
    """Return the class of each activity: `COMPUTE`, `COPY` or `COMMUNICATION`."""
    activities = index.profile.tables["activities"]
    names = activities.names("name")
    talks = [any(word in name.lower() for word in _COMMUNICATION_WORDS)
             for name in names.categories]  # fmt: skip
    classes = np.where((index.kinds == MEMCPY) | (index.kinds == MEMSET), COPY, COMPUTE)
    classes = classes.astype(np.uint8)
    is_peer = activities.names("copy_kind").equals("PtoP")
    classes[is_peer | np.array([*talks, False], np.bool_)[names.codes]] = COMMUNICATION
    return classes


def class_intervals(index: ProfileIndex, device: int) -> tuple[Intervals, Intervals, Intervals]:
    """Return when a device computed, copied and communicated, each as `union` returns them."""
    activities, classes = index.profile.tables["activities"], index.cached(work_classes)
    on_device = index.is_device_work & (activities["device_id"] == device)
    compute, copy, communication = (
        union(*clip_times(activities["start_ns"][rows], activities["end_ns"][rows]))
        for rows in (on_device & (classes == code) for code in (COMPUTE, COPY, COMMUNICATION))
    )
    return compute, copy, communication
