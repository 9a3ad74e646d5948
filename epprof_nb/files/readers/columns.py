"""Columns of the values of many events, by the same rules as `rows` for one event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.data.schema import MISSING
from epprof_nb.files.readers.rows import MAX_NAME, MAX_NS, integer, nanoseconds, text

if TYPE_CHECKING:
    from epprof_nb.arrays.types import BoolArray, IntArray


def times(values: list[Any]) -> tuple[IntArray, BoolArray]:
    """Convert times of events to nanoseconds.

    Returns
    -------
    ns, is_valid
        int64 and bool arrays; a time is valid if it is a finite number in range.

    Examples
    --------
    >>> ns, is_valid = times([1.5, None, 2])
    >>> ns[is_valid].tolist(), is_valid.tolist()
    ([1500, 2000], [True, False, True])
    """
    if set(map(type, values)) == {float}:
        with np.errstate(over="ignore"):  # infinity is out of range too
            scaled = np.array(values) * 1000
        is_valid = np.abs(scaled) < MAX_NS
        return np.rint(np.where(is_valid, scaled, 0)).astype(np.int64), is_valid
    converted = [nanoseconds(value) for value in values]
    is_valid = np.array([ns is not None for ns in converted], np.bool_)
    return np.array([ns or 0 for ns in converted], np.int64), is_valid


def integers(values: list[Any]) -> IntArray:
    """Convert ids and counts of events to an int64 array; other values become `MISSING`.

    Examples
    --------
    >>> integers([7, None, "8", -1]).tolist()
    [7, -1, 8, -1]
    """
    kinds = set(map(type, values))
    if kinds == {int}:
        try:
            return np.maximum(np.array(values, np.int64), np.int64(MISSING))
        except OverflowError:
            pass
    elif kinds == {type(None)}:
        return np.full(len(values), MISSING, np.int64)
    converted = [integer(value) for value in values]
    return np.array([MISSING if value is None else value for value in converted], np.int64)


def texts(values: list[str | None]) -> list[str | None]:
    """Cut names to a bounded length."""
    if max((len(value) for value in values if value), default=0) <= MAX_NAME:
        return values
    return [text(value) for value in values]
