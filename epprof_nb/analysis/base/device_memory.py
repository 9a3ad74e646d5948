"""Memory of the devices: how much there is, and whether it was nearly full."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

_NEARLY_FULL = 0.9
"""Minimum share of a device's memory in use, by all processes, that leaves little for more."""
_OUT_OF_MEMORY = 2
"""CUDA's error, of the driver and of the runtime."""
_ALLOCATES = re.compile(r"Malloc|MemAlloc|MemCreate")


def device_bytes(index: ProfileIndex) -> int | None:
    """Return the memory of the smallest GPU; None if NVML did not say."""
    return min((total for _, total in _gpus(index)), default=None)


def nearly_full(index: ProfileIndex) -> bool:
    """Return whether a GPU was nearly full at the end, or the driver refused memory."""
    is_full = any(used >= _NEARLY_FULL * total for used, total in _gpus(index))
    return is_full or len(index.cached(refused_calls)) > 0


def refused_calls(index: ProfileIndex) -> IntArray:
    """Return the rows of the API calls to which the driver answered that memory ran out."""
    calls = index.profile.tables["api_calls"]
    names = calls.names("name")
    allocates = np.array([*map(_is_allocation, names.categories), False], np.bool_)
    return np.flatnonzero(allocates[names.codes] & (calls["return_value"] == _OUT_OF_MEMORY))


def _is_allocation(name: str) -> bool:
    return _ALLOCATES.search(name) is not None


def _gpus(index: ProfileIndex) -> Iterator[tuple[int, int]]:
    """Yield bytes in use and in total of each GPU at the end."""
    after = (index.profile.info.get("gpu") or {}).get("after")
    gpus = after.get("gpus") if isinstance(after, dict) else None
    for gpu in gpus or ():
        used, total = gpu.get("memory_used_bytes"), gpu.get("memory_total_bytes")
        if isinstance(used, int) and isinstance(total, int) and total > 0:
            yield used, total
