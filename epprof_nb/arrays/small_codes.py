"""SmallCodes: dictionary codes of a column in the smallest unsigned dtype."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.ids import unique_values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from epprof_nb.arrays.types import IntArray

_FEW = 24
"""Up to this many codes are counted one by one; comparing bytes is fast."""
_RANGE = 1 << 16
"""Values within this range are coded by their difference from the lowest one."""


def smallest_uint(largest: int) -> np.dtype[Any]:
    """Return the smallest unsigned dtype that holds numbers up to `largest`."""
    return np.min_scalar_type(max(largest, 1))


def count_codes(codes: npt.NDArray[Any], count: int) -> IntArray:
    """Return how often each of the codes below `count` occurs; int64.

    Examples
    --------
    >>> count_codes(np.array([0, 2, 2], np.uint8), 3).tolist()
    [1, 0, 2]
    """
    if count > _FEW:
        return np.bincount(codes, minlength=count)[:count]
    return np.array([np.count_nonzero(codes == code) for code in range(count)], np.int64)


class SmallCodes:
    """A dictionary-encoded column.

    Parameters
    ----------
    codes
        Code of each row's value, unsigned.
    values
        Value of each code: any Python objects, not necessarily different.

    Examples
    --------
    >>> column = SmallCodes.of(np.array([700, 500, 700]))
    >>> column.codes.tolist(), list(column.values)
    ([1, 0, 1], [500, 700])
    """

    __slots__ = ("codes", "values")

    def __init__(self, codes: npt.NDArray[Any], values: Sequence[Any]) -> None:
        self.codes = codes
        self.values = values

    @classmethod
    def of(cls, column: npt.NDArray[Any]) -> SmallCodes:
        """Encode an integer column; its distinct values are in ascending order."""
        if not len(column):
            return cls(np.empty(0, np.uint8), [])
        if all((column[chunk] == column[0]).all() for chunk in chunks(len(column))):
            return cls(np.zeros(len(column), np.uint8), [int(column[0])])
        # Most columns have few values close together: one pass is enough for these.
        codes = np.empty(len(column), np.uint8)
        bounds = []
        for chunk in chunks(len(column)):
            part = column[chunk]
            bounds.append((part.min(), part.max()))
            codes[chunk] = part
        low, high = int(min(bounds)[0]), int(max(highest for _, highest in bounds))
        if high - low >= _RANGE:
            return cls._of_wide_range(column)
        if high - low >= 256:
            codes = column.astype(np.uint16)
        # Unsigned arithmetic wraps around, so the truncated values still give the difference.
        codes -= np.array(low).astype(codes.dtype)
        used = _used_codes(codes, high - low + 1)
        if len(used) == high - low + 1:
            return cls(codes, range(low, high + 1))
        table = np.zeros(high - low + 1, smallest_uint(len(used)))
        table[used] = np.arange(len(used))
        return cls(_lookup(codes, table), [low + code for code in used])

    @classmethod
    def _of_wide_range(cls, column: npt.NDArray[Any]) -> SmallCodes:
        values = np.array(unique_values(column))
        codes = np.empty(len(column), smallest_uint(len(values)))
        for chunk in chunks(len(column)):
            codes[chunk] = np.searchsorted(values, column[chunk])
        return cls(codes, values.tolist())

    @classmethod
    def combined(cls, *columns: SmallCodes) -> SmallCodes:
        """Encode the combinations of the columns' values that occur; the values are tuples."""
        varied = [column for column in columns if len(column.values) != 1]
        if len(varied) <= 1:
            codes = varied[0].codes if varied else columns[0].codes
            return cls(codes, list(product(*(column.values for column in columns))))
        size = 1
        for column in varied:
            size *= max(len(column.values), 1)
        total = np.zeros(len(columns[0].codes), smallest_uint(size))
        for column in varied:
            total *= total.dtype.type(len(column.values))
            total += column.codes.astype(total.dtype, copy=False)
        encoded = cls.of(total)
        return cls(encoded.codes, [cls._digits(number, columns) for number in encoded.values])

    @staticmethod
    def _digits(number: int, columns: Sequence[SmallCodes]) -> tuple[Any, ...]:
        values = []
        for column in reversed(columns):
            number, digit = divmod(number, len(column.values))
            values.append(column.values[digit])
        return tuple(reversed(values))

    def map(self, function: Callable[[Any], Any]) -> SmallCodes:
        """Return the column with ``function(value)`` in place of each value."""
        return SmallCodes(self.codes, [function(value) for value in self.values])

    def recode(self, new_codes: dict[Any, int], none: int) -> npt.NDArray[Any]:
        """Return the new code of each row's value; `none`, the largest, if it has none."""
        table = np.array([new_codes.get(value, none) for value in self.values], smallest_uint(none))
        if np.array_equal(table, np.arange(len(table))) and self.codes.dtype == table.dtype:
            return self.codes
        return _lookup(self.codes, table)


def _used_codes(codes: npt.NDArray[Any], count: int) -> list[int]:
    """Return which of the codes below `count` occur, ascending."""
    known: list[int] = []
    for chunk in chunks(len(codes)):
        part = codes[chunk]
        # Usually the first chunk has them all; comparing bytes is fast.
        few = len(known) <= _FEW
        if few and sum(np.count_nonzero(part == code) for code in known) == len(part):
            continue
        known = sorted({*known, *np.flatnonzero(np.bincount(part)).tolist()})
        if len(known) == count:
            break
    return known


def _lookup(codes: npt.NDArray[Any], table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return ``table[codes]``."""
    result = np.empty(len(codes), table.dtype)
    is_bytes = codes.dtype == table.dtype == np.uint8
    translation = table.tobytes().ljust(256, b"\0")
    for chunk in chunks(len(codes)):
        if is_bytes:
            # Twice as fast as NumPy, which converts the codes to int64 first.
            translated = codes[chunk].tobytes().translate(translation)
            result[chunk] = np.frombuffer(translated, np.uint8)
        else:
            # All codes are in range; with mode="clip" NumPy needs no copy.
            np.take(table, codes[chunk], out=result[chunk], mode="clip")
    return result
