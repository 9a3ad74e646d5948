"""Short numbers for the few distinct values of a long column: a byte or two an event."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.chunks import chunks
from epprof_nb.arrays.ids import unique_values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from epprof_nb.arrays.types import IntArray

_FEW = 24
"""So few numbers are counted one by one: comparing bytes is fast."""
_RANGE = 1 << 16
"""Values that lie this close together are numbered by what they are above the lowest."""


def short(count: int) -> np.dtype[Any]:
    """Return the shortest dtype that holds the numbers up to `count`."""
    return np.min_scalar_type(max(count, 1))


def occurrences(codes: npt.NDArray[Any], count: int) -> IntArray:
    """Return how often each of the numbers below `count` occurs; int64."""
    if count > _FEW:
        return np.bincount(codes, minlength=count)[:count]
    return np.array([np.count_nonzero(codes == number) for number in range(count)], np.int64)


class Codes:
    """A column as numbers of its values.

    Parameters
    ----------
    codes
        Number of each row's value, unsigned.
    values
        What the numbers mean: any Python values; two numbers may mean the same.
    """

    __slots__ = ("codes", "values")

    def __init__(self, codes: npt.NDArray[Any], values: Sequence[Any]) -> None:
        self.codes = codes
        self.values = values

    @classmethod
    def of(cls, column: npt.NDArray[Any]) -> Codes:
        """Number the values of an integer column that occur, in ascending order."""
        if not len(column):
            return cls(np.empty(0, np.uint8), [])
        if all((column[piece] == column[0]).all() for piece in chunks(len(column))):
            return cls(np.zeros(len(column), np.uint8), [int(column[0])])
        # Most columns have few values close together: for these one pass over them is enough.
        codes = np.empty(len(column), np.uint8)
        bounds = []
        for piece in chunks(len(column)):
            mine = column[piece]
            bounds.append((mine.min(), mine.max()))
            codes[piece] = mine
        low, high = int(min(bounds)[0]), int(max(most for _, most in bounds))
        if high - low >= _RANGE:
            return cls._of_far(column)
        if high - low >= 256:
            codes = column.astype(np.uint16)
        # What was cut off of the numbers changes nothing about their differences.
        codes -= np.array(low).astype(codes.dtype)
        values = _values(codes, high - low + 1)
        if len(values) == high - low + 1:
            return cls(codes, range(low, high + 1))
        number = np.zeros(high - low + 1, short(len(values)))
        number[values] = np.arange(len(values))
        return cls(_exchanged(codes, number), [low + value for value in values])

    @classmethod
    def _of_far(cls, column: npt.NDArray[Any]) -> Codes:
        """Number values that lie far apart."""
        values = np.array(unique_values(column))
        codes = np.empty(len(column), short(len(values)))
        for piece in chunks(len(column)):
            codes[piece] = np.searchsorted(values, column[piece])
        return cls(codes, values.tolist())

    @classmethod
    def combined(cls, *columns: Codes) -> Codes:
        """Number the combinations that occur of the values of columns; they become tuples."""
        varied = [column for column in columns if len(column.values) != 1]
        if len(varied) <= 1:
            codes = varied[0].codes if varied else columns[0].codes
            return cls(codes, list(product(*(column.values for column in columns))))
        size = 1
        for column in varied:
            size *= max(len(column.values), 1)
        total = np.zeros(len(columns[0].codes), short(size))
        for column in varied:
            total *= total.dtype.type(len(column.values))
            total += column.codes.astype(total.dtype, copy=False)
        found = cls.of(total)
        every = [cls._digits(number, columns) for number in found.values]
        return cls(found.codes, every)

    @staticmethod
    def _digits(number: int, columns: Sequence[Codes]) -> tuple[Any, ...]:
        values = []
        for column in reversed(columns):
            number, digit = divmod(number, len(column.values))
            values.append(column.values[digit])
        return tuple(reversed(values))

    def named(self, name: Callable[[Any], Any]) -> Codes:
        """Return the same numbers with other values."""
        return Codes(self.codes, [name(value) for value in self.values])

    def numbered(self, number: dict[Any, int], none: int) -> npt.NDArray[Any]:
        """Return the number of each row's value; `none`, the greatest, where it has none."""
        table = np.array([number.get(value, none) for value in self.values], short(none))
        if np.array_equal(table, np.arange(len(table))) and self.codes.dtype == table.dtype:
            return self.codes
        return _exchanged(self.codes, table)


def _values(codes: npt.NDArray[Any], count: int) -> list[int]:
    """Return which of the numbers below `count` occur, ascending."""
    known: list[int] = []
    for piece in chunks(len(codes)):
        mine = codes[piece]
        # As a rule the first piece has them all; comparing bytes is fast.
        few = len(known) <= _FEW
        if few and sum(np.count_nonzero(mine == value) for value in known) == len(mine):
            continue
        known = sorted({*known, *np.flatnonzero(np.bincount(mine)).tolist()})
        if len(known) == count:
            break
    return known


def _exchanged(codes: npt.NDArray[Any], table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return what `table` holds at each of the codes."""
    found = np.empty(len(codes), table.dtype)
    bytewise = codes.dtype == table.dtype == np.uint8
    whole = table.tobytes().ljust(256, b"\0")
    for piece in chunks(len(codes)):
        if bytewise:
            # Twice as fast as NumPy, which makes eight bytes of each first.
            translated = codes[piece].tobytes().translate(whole)
            found[piece] = np.frombuffer(translated, np.uint8)
        else:
            # All are in range: what says so saves NumPy a copy.
            np.take(table, codes[piece], out=found[piece], mode="clip")
    return found
