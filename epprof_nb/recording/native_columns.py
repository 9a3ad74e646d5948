"""Columns of the native core (bytes) as NumPy arrays, and the names of its string table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb import _native
from epprof_nb.arrays.ids import unique_inverse
from epprof_nb.util.fork_safe_lock import fork_safe_lock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.arrays.types import IntArray

OP_NAME = 1 << 31  # native/python/op_object.c

_names: list[str] = []
_lock = fork_safe_lock()


def numbers(raw: dict[str, Any], name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return a column as the core wrote it, read-only and without a copy."""
    return np.frombuffer(raw[name], dtype)


def ids(raw: dict[str, Any], name: str, dtype: npt.DTypeLike) -> IntArray:
    """Return a column as int64, the dtype of every id column."""
    return np.frombuffer(raw[name], dtype).astype(np.int64)


def name_of(name_id: int, op_names: Sequence[str] = ()) -> str:
    """Return the string with this id; `op_names` are the names of the session's ops."""
    if name_id & OP_NAME:
        return op_names[name_id & ~OP_NAME]
    with _lock:
        if name_id >= len(_names):
            _names.extend(_native.names(len(_names)))
    return _names[name_id]


def names_of(name_ids: npt.NDArray[Any]) -> dict[int, str]:
    """Return the strings of the ids that occur in an array."""
    return {i: name_of(i) for i in unique_inverse(name_ids)[0].tolist()}
