"""The native core's columns (bytes) as NumPy arrays, and its name ids as names."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from epprof_nb import _native
from epprof_nb.data.table import distinct

_names: list[str] = []
_lock = threading.Lock()


def numbers(raw: dict[str, Any], name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """A column as the core wrote it, without a copy (read-only)."""
    return np.frombuffer(raw[name], dtype)


def ids(raw: dict[str, Any], name: str, dtype: npt.DTypeLike) -> npt.NDArray[np.int64]:
    """A column of numbers as int64, the dtype of every id column."""
    return np.frombuffer(raw[name], dtype).astype(np.int64)


def name_of(name_id: int) -> str:
    """The name that was interned as `name_id`."""
    with _lock:
        if name_id >= len(_names):
            _names.extend(_native.names(len(_names)))
    return _names[name_id]


def names_of(name_ids: npt.NDArray[Any]) -> dict[int, str]:
    """The names of the ids that occur in an array."""
    return {i: name_of(i) for i in distinct(name_ids)[0].tolist()}
