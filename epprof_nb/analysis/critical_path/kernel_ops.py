"""Ops in kernels of the host device, which run as Python code on the thread of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.thread_labels import thread_names
from epprof_nb.core.stream_threads import is_stream_thread

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray


def kernel_ops(index: ProfileIndex) -> BoolArray:
    """Return which ops are parts of kernels.

    Their time is a part of that of an activity. As ops of a thread, they would keep it as long as
    it was when the activity becomes shorter.
    """
    names = thread_names(index.profile.info)
    threads = [thread for thread, name in names.items() if is_stream_thread(name)]
    found: BoolArray = np.isin(index.profile.tables["ops"]["thread_id"], threads)
    return found
