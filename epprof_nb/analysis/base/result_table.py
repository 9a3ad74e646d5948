"""Results of analyses: columns for the views, and DataFrames for users, built on demand.

Views read the columns without pandas, because its import takes longer than the output of a cell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy.typing as npt
    import pandas as pd

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.op_args import Argument


@dataclass(frozen=True, slots=True)
class OptionalColumn:
    """Integers or bools with missing values: a column of dtype Int64 or boolean."""

    numbers: IntArray | BoolArray
    is_missing: BoolArray

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: npt.NDArray[Any] | slice) -> OptionalColumn:
        """Return some rows."""
        return OptionalColumn(self.numbers[rows], self.is_missing[rows])

    def to_list(self) -> list[int | bool | None]:
        """Return the values; None if missing."""
        pairs = zip(self.numbers.tolist(), self.is_missing.tolist(), strict=True)
        return [None if is_missing else value for value, is_missing in pairs]


Column = CategoryColumn | OptionalColumn | np.ndarray[Any, Any]


class ResultTable:
    """Columns of one length, in order.

    Parameters
    ----------
    columns
        Column name to `CategoryColumn`, `OptionalColumn` or NumPy array; see `categorical`,
        `optional` and `objects`.
    index
        Name of the index of the DataFrame: a column, or a new index that numbers the rows.

    Examples
    --------
    >>> table = ResultTable({"name": categorical(["a", None]), "line": optional([3, -1])})
    >>> table.values("name"), table.values("line"), table["line"].tolist()
    (['a', None], [3, None], [3, -1])
    """

    __slots__ = ("_columns", "_index")

    def __init__(self, columns: Mapping[str, Column], *, index: str | None = None) -> None:
        self._columns = dict(columns)
        self._index = index

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Return the array of a column without names; missing integers are `MISSING`."""
        column = self._columns[name]
        if isinstance(column, CategoryColumn):
            raise TypeError(f"column {name} holds names; use names({name!r})")
        return column.numbers if isinstance(column, OptionalColumn) else column

    def column(self, name: str) -> Column:
        """Return a column of any kind."""
        return self._columns[name]

    def names(self, name: str) -> CategoryColumn:
        """Return a column of names."""
        column = self._columns[name]
        if not isinstance(column, CategoryColumn):
            raise TypeError(f"column {name} holds no names; use [{name!r}]")
        return column

    def is_text(self, name: str) -> bool:
        """Whether a column holds names."""
        return isinstance(self._columns[name], CategoryColumn)

    def values(self, name: str) -> list[Any]:
        """Return the values of a column; None if missing."""
        column = self._columns[name]
        if isinstance(column, CategoryColumn | OptionalColumn):
            return column.to_list()
        values: list[Any] = column.tolist()
        return values

    def take(self, rows: npt.NDArray[Any] | slice) -> ResultTable:
        """Return some rows (indices, a boolean mask or a slice)."""
        return ResultTable(
            {
                name: column.take(rows)
                if isinstance(column, CategoryColumn | OptionalColumn)
                else column[rows]
                for name, column in self._columns.items()
            },
            index=self._index,
        )

    def replace(self, columns: Mapping[str, Column]) -> ResultTable:
        """Return the table with some columns replaced."""
        return ResultTable({**self._columns, **columns}, index=self._index)

    def to_frame(self) -> pd.DataFrame:
        """Build the DataFrame; its dtypes are the same on pandas 2.3 and 3, empty or not."""
        import pandas as pd

        is_new = self._index is not None and self._index not in self
        index = pd.RangeIndex(len(self), name=self._index) if is_new else None
        data = {name: to_series(column, index) for name, column in self._columns.items()}
        # A copy: changing the frame does not change the result that views share.
        frame = pd.DataFrame(data, copy=True, index=index)
        return frame.set_index(self._index) if self._index in self else frame


def to_series(column: Column, index: pd.Index | None = None) -> pd.Series:
    """Return a column as a Series."""
    import pandas as pd

    values: Any = column
    if isinstance(column, CategoryColumn):
        # By default, pandas 2.3 and 3 give strings different dtypes.
        dtype = pd.CategoricalDtype(pd.Index(column.categories, dtype=object))
        values = pd.Categorical.from_codes(column.codes, dtype=dtype)
    elif isinstance(column, OptionalColumn):
        numbers: Any = column.numbers
        is_bool = numbers.dtype == np.bool_
        array: Any = pd.arrays.BooleanArray if is_bool else pd.arrays.IntegerArray
        values = array(numbers, column.is_missing)
    series: pd.Series = pd.Series(values, index=index, dtype=values.dtype)
    return series


def categorical(values: Sequence[str | None]) -> CategoryColumn:
    """Return a column of names; None is missing. Categories are sorted, and all are used."""
    return CategoryColumn.of(values).compact()


def optional(values: npt.ArrayLike) -> OptionalColumn:
    """Return a column of dtype Int64; `MISSING` becomes ``<NA>``."""
    numbers = np.array(values, np.int64)
    return OptionalColumn(numbers, numbers == MISSING)


def objects(values: Iterable[object]) -> npt.NDArray[Any]:
    """Return a column of Python objects, such as tuples."""
    items = list(values)
    column = np.empty(len(items), object)
    for i, item in enumerate(items):
        column[i] = item
    return column


def names_at(names: CategoryColumn, rows: IntArray) -> CategoryColumn:
    """Return a column of the names at `rows`; missing for row `MISSING`."""
    codes = np.append(names.codes, np.int32(MISSING))[rows]
    return CategoryColumn(codes, names.categories).compact()


def argument_column(argument: Argument) -> Column:
    """Return a column of an argument with the dtype of its values.

    The dtype is boolean, Int64, float64 or category if all values are bools, integers, numbers or
    strings. It is object otherwise, and if integers are too large to be exact.
    """
    codes, values = argument.codes, argument.distinct
    is_missing = codes < 0
    kinds = set(map(type, values))
    if kinds == {bool}:
        return OptionalColumn(np.array([*values, False])[codes], is_missing)
    largest = max((abs(value) for value in values if isinstance(value, int)), default=0)
    if kinds == {int} and largest < 2**63:
        return OptionalColumn(np.array([*values, 0], np.int64)[codes], is_missing)
    if float in kinds and kinds <= {int, float} and largest <= 2**53:
        return np.array([*values, np.nan], np.float64)[codes]
    if kinds <= {str}:
        return CategoryColumn(codes, tuple(map(str, values))).compact()
    return objects([*values, None])[codes]
