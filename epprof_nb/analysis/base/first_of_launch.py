"""Launches of device work: which activity of each is its first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.ids import IdIndex, mask_as_rows
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray


def first_of_launch(index: ProfileIndex) -> BoolArray:
    """Return which activities are the first of the work that one API call launched.

    The replay of a graph is one launch. An activity without a correlation id is one, too.
    """
    ids = index.profile.tables["activities"]["correlation_id"]
    # The ids of one stream ascend: no launch has two activities unless two ids are equal.
    if _ascend(ids):
        return index.is_device_work
    work = mask_as_rows(index.is_device_work)
    ids = ids[work]
    if _ascend(ids):
        return index.is_device_work
    is_first = (ids == MISSING) | (IdIndex(ids).rows(ids) == np.arange(len(ids)))
    found = np.zeros(len(index.is_device_work), np.bool_)
    found[work] = is_first
    return found


def _ascend(ids: IntArray) -> bool:
    return bool((ids[1:] > ids[:-1]).all())
