"""Short numbers for the few distinct values of a long column: a byte or two an event."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.lookup import pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_TABLE = 1 << 20
"""Values that lie this close together are ticked off in a table, not sorted."""


def short(count: int) -> np.dtype[Any]:
    """Return the shortest dtype that holds the numbers up to `count`."""
    return np.min_scalar_type(max(count, 1))


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
        low, high = int(column.min()), int(column.max())
        if low == high:
            return cls(np.zeros(len(column), np.uint8), [low])
        if high - low >= _TABLE:
            distinct, place = np.unique(column, return_inverse=True)
            return cls(place.astype(short(len(distinct))), distinct.tolist())
        present = np.zeros(high - low + 1, np.bool_)
        base = column.dtype.type(low)
        for piece in pieces(len(column)):
            present[column[piece] - base] = True
        values = np.flatnonzero(present)
        number = np.zeros(len(present), short(len(values)))
        number[values] = np.arange(len(values))
        codes = np.zeros_like(column, number.dtype)
        for piece in pieces(len(column)):
            np.take(number, column[piece] - base, out=codes[piece], mode="clip")
        return cls(codes, (values + low).tolist())

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
        codes = np.empty(len(self.codes), table.dtype)
        for piece in pieces(len(codes)):
            np.take(table, self.codes[piece], out=codes[piece], mode="clip")
        return codes
