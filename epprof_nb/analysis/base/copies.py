"""Copies: their sizes, kinds of memory, and which of them the host waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.ids import values_at
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray

LARGE_BYTES = 1_000_000
"""Minimum size of a copy that can reach the bandwidth of the link."""


def copied_bytes(index: ProfileIndex, rows: IntArray) -> IntArray:
    """Return the bytes of some copies; 0 if unknown."""
    size: IntArray = np.maximum(index.profile.tables["activities"]["bytes"][rows], 0)
    return size


def is_pageable(index: ProfileIndex, rows: IntArray) -> BoolArray:
    """Return which copies read or write pageable memory."""
    activities = index.profile.tables["activities"]
    source, target = activities.names("src_kind"), activities.names("dst_kind")
    pageable: BoolArray = source.equals("pageable")[rows] | target.equals("pageable")[rows]
    return pageable


def is_synchronous(index: ProfileIndex, rows: IntArray) -> BoolArray:
    """Return which copies had ended when their API call returned: the host waited for them."""
    tables = index.profile.tables
    call = index.calls.rows(tables["activities"]["correlation_id"][rows])
    returned = values_at(tables["api_calls"]["end_ns"], call)
    ended = tables["activities"]["end_ns"][rows]
    waited: BoolArray = (call != MISSING) & (returned >= ended)
    return waited
