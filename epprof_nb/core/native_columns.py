"""The native core's columns (bytes) as NumPy arrays, and its name ids as names."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb import _native
from epprof_nb.data.table import Names, distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

_OP_NAME = 1 << 31  # native/python/op_object.c

_names: list[str] = []
_lock = threading.Lock()


def numbers(raw: dict[str, Any], name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """A column as the core wrote it, without a copy (read-only)."""
    return np.frombuffer(raw[name], dtype)


def ids(raw: dict[str, Any], name: str, dtype: npt.DTypeLike) -> npt.NDArray[np.int64]:
    """A column of numbers as int64, the dtype of every id column."""
    return np.frombuffer(raw[name], dtype).astype(np.int64)


def name_of(name_id: int, op_names: Sequence[str] = ()) -> str:
    """The name of an id; `op_names` are those of the session's ops."""
    if name_id & _OP_NAME:
        return op_names[name_id & ~_OP_NAME]
    with _lock:
        if name_id >= len(_names):
            _names.extend(_native.names(len(_names)))
    return _names[name_id]


def names_of(name_ids: npt.NDArray[Any]) -> dict[int, str]:
    """The names of the ids that occur in an array."""
    return {i: name_of(i) for i in distinct(name_ids)[0].tolist()}


def names_column(name_ids: npt.NDArray[Any], op_names: Sequence[str]) -> Names:
    """The names of ops, as a column."""
    of_op = (name_ids & _OP_NAME) != 0
    # Small numbers, of which `distinct` need not sort.
    base = int(name_ids[~of_op].max(initial=0)) + 1
    ids_ = np.where(of_op, (name_ids & (_OP_NAME - 1)) + base, name_ids).astype(np.int64)
    used = distinct(ids_)[0].tolist()
    return Names.from_ids(ids_, {i: op_names[i - base] if i >= base else name_of(i) for i in used})
