"""Table: columns (NumPy arrays) of a schema, with a DataFrame built on demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.op_args import parsed
from epprof_nb.data.schema import MISSING, MISSING_DELTA, Kind, TableSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pandas as pd

    from epprof_nb.data.schema import Column

STORAGE: dict[Kind, np.dtype[Any]] = {
    "time": np.dtype(np.int64),
    "int": np.dtype(np.int64),
    "id": np.dtype(np.int64),
    "row": np.dtype(np.int32),
    "delta": np.dtype(np.int64),
    "name": np.dtype(np.int32),
    "args": np.dtype(np.int32),
    "bool": np.dtype(np.bool_),
}
FILL: dict[Kind, int | bool] = {
    "time": 0, "int": 0, "id": MISSING, "row": MISSING, "delta": MISSING_DELTA, "name": MISSING,
    "args": MISSING, "bool": False,
}  # fmt: skip
"""Stored values in columns that are left out: missing, or 0 for kinds without missing values."""
_FILL_BYTES = {kind: dtype.type(FILL[kind]).tobytes() for kind, dtype in STORAGE.items()}


@dataclass(frozen=True, slots=True)
class Deferred:
    """A column of numbers that a table computes when it is first read: few readers need it."""

    length: int
    compute: Callable[[], npt.NDArray[Any]]

    def __len__(self) -> int:
        return self.length

    @property
    def nbytes(self) -> int:
        """Memory of the column in bytes, once it is computed."""
        return self.length * np.dtype(np.int64).itemsize


Values: TypeAlias = npt.NDArray[Any] | CategoryColumn | Deferred


class Table:
    """Columns of one length that conform to a `TableSchema`.

    Parameters
    ----------
    schema
        The columns and their kinds.
    columns
        Column name to NumPy array or `Deferred`, or to `CategoryColumn` for kinds ``name`` and
        ``args``; for ``args`` the categories are JSON objects. Other columns of the schema are
        filled: ids, deltas and names with missing values, numbers with 0. These are read-only and
        need no memory per row, like arrays of `numpy.broadcast_to`.

    Raises
    ------
    ValueError
        If the schema lacks a column, if values are not of the column's kind (fractions are not
        integers), or if columns differ in length.
    """

    __slots__ = ("_absent", "_columns", "_frame", "_length", "schema")

    def __init__(
        self,
        schema: TableSchema,
        columns: Mapping[str, Values] | None = None,
    ) -> None:
        given = dict(columns or {})
        unknown = set(given) - set(schema.names)
        if unknown:
            raise ValueError(f"table {schema.name} has no column {sorted(unknown)}")
        lengths = {len(values) for values in given.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of table {schema.name} differ in length: {sorted(lengths)}")
        self.schema = schema
        self._frame: pd.DataFrame | None = None
        self._length = lengths.pop() if lengths else 0
        self._absent = frozenset(schema.names) - set(given)
        self._columns: dict[str, Values] = {}
        for column in schema.columns:
            values = given.get(column.name)
            is_names = column.kind in ("name", "args")
            if values is None:
                # np.broadcast_to returns the same in five times the time, which is a third of the
                # cost of an empty session: most columns are absent.
                filled: npt.NDArray[Any] = np.ndarray(
                    self._length, STORAGE[column.kind], _FILL_BYTES[column.kind], strides=(0,)
                )
                self._columns[column.name] = CategoryColumn(filled, ()) if is_names else filled
            elif not is_names:
                self._columns[column.name] = (
                    values if isinstance(values, Deferred) else _numbers(values, schema, column)
                )
            elif isinstance(values, CategoryColumn):
                self._columns[column.name] = values
            else:
                raise ValueError(f"column {schema.name}.{column.name} must be CategoryColumn")

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Return the stored array of a numeric column; see `schema` for its meaning."""
        values = self._columns[name]
        if isinstance(values, CategoryColumn):
            raise TypeError(f"column {name} holds names; use Table.names({name!r})")
        if isinstance(values, Deferred):
            values = _numbers(values.compute(), self.schema, self.schema.column(name))
            self._columns[name] = values
        return values

    def names(self, name: str) -> CategoryColumn:
        """Return a column of kind ``name`` or ``args``, or a derived column."""
        for derived in self.schema.derived:
            if derived.name == name:
                return self.names(derived.source).map(derived.function)
        values = self._columns[name]
        if not isinstance(values, CategoryColumn):
            raise TypeError(f"column {name} holds numbers; use Table[{name!r}]")
        return values

    def is_absent(self, name: str) -> bool:
        """Whether a stored column was left out, so that all rows have the same value."""
        return name in self._absent

    def has_value(self, name: str) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows with a value in a column whose kind has missing values."""
        kind = self.schema.column(name).kind
        values = self.names(name).codes if kind in ("name", "args") else self[name]
        mask: npt.NDArray[np.bool_] = values != FILL[kind]
        return mask

    def _present(self) -> dict[str, Values]:
        return {n: values for n, values in self._columns.items() if n not in self._absent}

    def take(self, rows: npt.NDArray[Any] | slice) -> Table:
        """Return a table of some rows (indices, a boolean mask or a slice)."""
        return Table(
            self.schema,
            {
                name: values.take(rows) if isinstance(values, CategoryColumn) else self[name][rows]
                for name, values in self._present().items()
            },
        )

    def in_start_order(self) -> Table:
        """Return the table with its rows in the order of their starts."""
        start = self["start_ns"]
        if (start[1:] >= start[:-1]).all():
            return self
        return self.take(np.argsort(start, kind="stable"))

    def replace(self, **columns: Values) -> Table:
        """Return the table with some columns replaced."""
        return Table(self.schema, {**self._present(), **columns})

    @property
    def nbytes(self) -> int:
        """Memory of the columns in bytes."""
        return sum(
            values.codes.nbytes if isinstance(values, CategoryColumn) else values.nbytes
            for values in self._present().values()
        )

    def to_frame(self) -> pd.DataFrame:
        """Build the DataFrame; the dtypes follow from the schema, even for an empty table.

        Changing the frame does not change the table: pandas copies a column on write. Only
        ``Series.to_numpy()`` of an Int64 column may be the table's own array; see
        `ProfileData.activities`.
        """
        # Lists in arguments of ops could be changed in place.
        has_args = any(column.kind == "args" for column in self.schema.columns)
        if has_args or not _copies_on_write():
            return self._build_frame(copy=True)
        if self._frame is None:
            # pandas copies a column that is written to for as long as another frame refers to it.
            self._frame = self._build_frame(copy=False)
        frame: pd.DataFrame = self._frame.copy(deep=False)
        return frame

    def _build_frame(self, *, copy: bool) -> pd.DataFrame:
        import pandas as pd

        index = self.schema.index
        rows = None if index is None else pd.Index(self[index], name=index, copy=True)
        data: dict[str, Any] = {}
        masks: dict[bool, npt.NDArray[np.bool_]] = {}
        for column in self.schema.columns:
            if column.name == index:
                continue
            values = self._columns[column.name]
            if isinstance(values, CategoryColumn):
                if column.kind == "args":
                    cells = np.empty(len(values), object)
                    cells[:] = parsed(values)
                    data[column.name] = pd.Series(cells, index=rows, dtype=object)
                else:
                    data[column.name] = _categorical(values)
                    for derived in self.schema.derived:
                        if derived.source == column.name:
                            data[derived.name] = _categorical(self.names(derived.name))
                continue
            values = self[column.name]
            if copy or not values.flags.writeable:
                values = values.copy()
            if column.kind in ("id", "row", "delta"):
                is_missing = ~self.has_value(column.name)
                if not copy and len(values) and (is_missing.all() or not is_missing.any()):
                    # Most columns are all known or all missing; they share a mask.
                    is_missing = masks.setdefault(bool(is_missing[0]), is_missing)
                data[column.name] = pd.arrays.IntegerArray(values, is_missing)
            else:
                data[column.name] = values
        return pd.DataFrame(data, copy=False, index=rows)


def _copies_on_write() -> bool:
    """Whether frames of pandas share columns until one of them is changed."""
    import pandas as pd

    return int(pd.__version__.split(".")[0]) >= 3


def _categorical(names: CategoryColumn) -> pd.Categorical:
    import pandas as pd

    compact = names.compact()
    dtype = pd.CategoricalDtype(pd.Index(compact.categories, dtype=object))
    return pd.Categorical.from_codes(compact.codes, dtype=dtype)


def _numbers(
    values: npt.NDArray[Any] | CategoryColumn, schema: TableSchema, column: Column
) -> npt.NDArray[Any]:
    """Convert values to their stored dtype; fractions are an error."""
    array, stored = np.asarray(values), STORAGE[column.kind]
    # An empty list becomes an array of floats, which is fine.
    fits = array.dtype.kind in "biu" or not array.size
    if array.ndim != 1 or not fits:
        raise ValueError(
            f"column {schema.name}.{column.name} must be one-dimensional {stored}, "
            f"not {array.ndim}-dimensional {array.dtype}"
        )
    if len(array) and array.strides == (0,):  # one value for all rows
        return np.broadcast_to(array[:1].astype(stored), len(array))
    return np.ascontiguousarray(array, stored)


def row_bytes(columns: Iterable[Column]) -> int:
    """Return the size of a row with these columns in memory in bytes, without its texts."""
    return sum(STORAGE[column.kind].itemsize for column in columns)


def concat(tables: Sequence[Table]) -> Table:
    """Concatenate the rows of one or more tables of one schema."""
    schema = tables[0].schema
    columns: dict[str, npt.NDArray[Any] | CategoryColumn] = {}
    for column in schema.columns:
        if all(table.is_absent(column.name) for table in tables):
            continue
        if column.kind in ("name", "args"):
            index: dict[str, int] = {}
            parts = []
            for table in tables:
                names = table.names(column.name)
                remap = np.full(len(names.categories) + 1, MISSING, np.int32)
                for i, category in enumerate(names.categories):
                    remap[i] = index.setdefault(category, len(index))
                parts.append(remap[names.codes])
            columns[column.name] = CategoryColumn(np.concatenate(parts), tuple(index))
        else:
            columns[column.name] = np.concatenate([table[column.name] for table in tables])
    return Table(schema, columns)
