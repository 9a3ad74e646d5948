"""Results of analyses: columns for the views, and DataFrames for users, built on demand.

Views read the columns, so that the output of a cell does not need pandas, whose import alone takes
longer than the output.
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

    from epprof_nb.arrays.types import IntArray


@dataclass(frozen=True, slots=True)
class OptionalColumn:
    """Integers, of which some are `MISSING`: a column of dtype Int64."""

    numbers: IntArray

    def __len__(self) -> int:
        return len(self.numbers)


Column = CategoryColumn | OptionalColumn | np.ndarray[Any, Any]


class ResultTable:
    """Columns of one length, in order.

    Parameters
    ----------
    columns
        Column name to `CategoryColumn`, `OptionalColumn` or NumPy array; see `categorical`,
        `optional` and `objects`.
    index
        Name of the index of the DataFrame, which numbers the rows.

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
        if isinstance(column, CategoryColumn):
            return column.to_list()
        if isinstance(column, OptionalColumn):
            return [None if value == MISSING else value for value in column.numbers.tolist()]
        values: list[Any] = column.tolist()
        return values

    def take(self, rows: npt.NDArray[Any] | slice) -> ResultTable:
        """Return some rows (indices, a boolean mask or a slice)."""
        return ResultTable(
            {
                name: OptionalColumn(column.numbers[rows])
                if isinstance(column, OptionalColumn)
                else column.take(rows)
                if isinstance(column, CategoryColumn)
                else column[rows]
                for name, column in self._columns.items()
            },
            index=self._index,
        )

    def to_frame(self) -> pd.DataFrame:
        """Build the DataFrame; its dtypes are the same on pandas 2.3 and 3, empty or not."""
        import pandas as pd

        index = None if self._index is None else pd.RangeIndex(len(self), name=self._index)
        data: dict[str, Any] = {}
        for name, column in self._columns.items():
            if isinstance(column, CategoryColumn):
                # By default, pandas 2.3 and 3 give strings different dtypes.
                dtype = pd.CategoricalDtype(pd.Index(column.categories, dtype=object))
                data[name] = pd.Categorical.from_codes(column.codes, dtype=dtype)
            elif isinstance(column, OptionalColumn):
                data[name] = pd.arrays.IntegerArray(column.numbers, column.numbers == MISSING)
            elif column.dtype == object:
                data[name] = pd.Series(column, index=index, dtype=object)
            else:
                data[name] = column
        # A copy: changing the frame does not change the result that views share.
        return pd.DataFrame(data, copy=True, index=index)


def categorical(values: Sequence[str | None]) -> CategoryColumn:
    """Return a column of names; None is missing. Categories are sorted, and all are used."""
    return CategoryColumn.of(values).compact()


def optional(values: npt.ArrayLike) -> OptionalColumn:
    """Return a column of dtype Int64; `MISSING` becomes ``<NA>``."""
    return OptionalColumn(np.array(values, np.int64))


def objects(values: Iterable[object]) -> npt.NDArray[Any]:
    """Return a column of Python objects, such as tuples."""
    items = list(values)
    column = np.empty(len(items), object)
    for i, item in enumerate(items):
        column[i] = item
    return column
