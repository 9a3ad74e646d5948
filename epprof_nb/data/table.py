"""A table as columns: NumPy arrays that obey a schema, turned into a DataFrame when asked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.ids import unique_inverse
from epprof_nb.data.schema import MISSING, Kind, TableSchema

if TYPE_CHECKING:
    import pandas as pd

STORAGE: dict[Kind, np.dtype[Any]] = {
    "time": np.dtype(np.int64),
    "int": np.dtype(np.int64),
    "id": np.dtype(np.int64),
    "name": np.dtype(np.int32),
    "args": np.dtype(np.int32),
    "bool": np.dtype(np.bool_),
}
_FILL: dict[Kind, int | bool] = {
    "time": 0, "int": 0, "id": MISSING, "name": MISSING, "args": MISSING, "bool": False,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Names:
    """A column of names: ``codes`` (int32, -1 is missing) into ``categories`` (unique strings)."""

    codes: npt.NDArray[np.int32]
    categories: tuple[str, ...]

    @classmethod
    def of(cls, values: Sequence[str | None]) -> Names:
        """Encode a sequence of strings; None becomes missing."""
        index: dict[str, int] = {}
        codes = np.fromiter(
            (MISSING if v is None else index.setdefault(v, len(index)) for v in values),
            np.int32,
            len(values),
        )
        return cls(codes, tuple(index))

    @classmethod
    def constant(cls, value: str, length: int) -> Names:
        """`length` times the same name."""
        return cls(np.zeros(length, np.int32), (value,))

    @classmethod
    def from_ids(cls, ids: npt.NDArray[Any], table: Sequence[str] | Mapping[int, str]) -> Names:
        """Encode ids that index `table`; only the names that occur become categories.

        Ids that `table` does not hold become missing.
        """
        lookup = table if isinstance(table, Mapping) else dict(enumerate(table))
        used, place = unique_inverse(ids)
        index: dict[str, int] = {}
        # Two ids may share one name: categories must stay unique.
        codes = np.array(
            [
                index.setdefault(lookup[i], len(index)) if i in lookup else MISSING
                for i in used.tolist()
            ],
            np.int32,
        )
        return cls(codes[place] if len(used) else np.empty(0, np.int32), tuple(index))

    def compact(self) -> Names:
        """Return the same values with only the categories that occur, in sorted order."""
        if len(self.categories) <= self.codes.max(initial=MISSING) + 1 <= 1:
            return self  # no category, or the only one occurs
        present = np.zeros(len(self.categories) + 1, np.bool_)
        present[self.codes] = True  # a missing name, -1, ticks the last place
        order = sorted(np.flatnonzero(present[:-1]).tolist(), key=lambda i: self.categories[i])
        if order == list(range(len(self.categories))):
            return self
        remap = np.full(len(self.categories) + 1, MISSING, np.int32)
        remap[order] = np.arange(len(order), dtype=np.int32)
        return Names(remap[self.codes], tuple(self.categories[i] for i in order))

    def take(self, rows: npt.NDArray[Any] | slice) -> Names:
        """Return the names at `rows` (indices, a boolean mask or a slice)."""
        return Names(self.codes[rows], self.categories)

    def equals(self, value: str) -> npt.NDArray[np.bool_]:
        """Return where the name is `value`, as a bool array."""
        if value not in self.categories:
            return np.zeros(len(self.codes), np.bool_)
        return np.equal(self.codes, self.categories.index(value))

    def to_list(self) -> list[str | None]:
        """Return the names as Python strings; None where missing."""
        table = [*self.categories, None]
        return [table[code] for code in self.codes.tolist()]

    def __len__(self) -> int:
        return len(self.codes)


class Table:
    """Columns of one length that obey a `TableSchema`.

    Parameters
    ----------
    schema
        What the columns must be.
    columns
        Column name to NumPy array (or `Names` for kinds ``name`` and ``args``; for ``args`` the
        categories are JSON objects). Columns left out are filled: ids and names with missing,
        numbers with 0.

    Raises
    ------
    ValueError
        For a column the schema does not have, values that are not of its kind (fractions are no
        integers), or columns of different lengths.
    """

    __slots__ = ("_columns", "_length", "schema")

    def __init__(
        self,
        schema: TableSchema,
        columns: Mapping[str, npt.NDArray[Any] | Names] | None = None,
    ) -> None:
        given = dict(columns or {})
        unknown = set(given) - set(schema.names)
        if unknown:
            raise ValueError(f"table {schema.name} has no column {sorted(unknown)}")
        lengths = {len(values) for values in given.values()}
        if len(lengths) > 1:
            raise ValueError(f"columns of table {schema.name} differ in length: {sorted(lengths)}")
        self.schema = schema
        self._length = lengths.pop() if lengths else 0
        self._columns: dict[str, npt.NDArray[Any] | Names] = {}
        for column in schema.columns:
            values = given.get(column.name)
            if column.kind in ("name", "args"):
                if values is None:
                    values = Names(np.full(self._length, MISSING, np.int32), ())
                if not isinstance(values, Names):
                    raise ValueError(f"column {schema.name}.{column.name} must be Names")
                self._columns[column.name] = values
            else:
                if values is None:
                    fill = _FILL[column.kind]
                    values = np.full(self._length, fill, STORAGE[column.kind])
                self._columns[column.name] = _numbers(
                    values, f"{schema.name}.{column.name}", column.kind
                )

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Return the stored array of a numeric column; `schema` says what its values mean."""
        values = self._columns[name]
        if isinstance(values, Names):
            raise TypeError(f"column {name} holds names; use Table.names({name!r})")
        return values

    def names(self, name: str) -> Names:
        """Return the `Names` of a column of kind ``name`` or ``args``."""
        values = self._columns[name]
        if not isinstance(values, Names):
            raise TypeError(f"column {name} holds numbers; use Table[{name!r}]")
        return values

    def take(self, rows: npt.NDArray[Any] | slice) -> Table:
        """Return the table of `rows` only (indices or a boolean mask)."""
        return Table(
            self.schema,
            {
                name: values.take(rows) if isinstance(values, Names) else values[rows]
                for name, values in self._columns.items()
            },
        )

    def replace(self, **columns: npt.NDArray[Any] | Names) -> Table:
        """Return the table with some columns exchanged."""
        return Table(self.schema, {**self._columns, **columns})

    @property
    def nbytes(self) -> int:
        """Bytes the columns take."""
        return sum(
            values.codes.nbytes if isinstance(values, Names) else values.nbytes
            for values in self._columns.values()
        )

    def to_frame(self) -> pd.DataFrame:
        """Build the DataFrame; dtypes are those of the schema's kinds, empty or not."""
        import pandas as pd

        index = self.schema.index
        rows = None if index is None else pd.Index(self[index], name=index, copy=True)
        data: dict[str, Any] = {}
        for column in self.schema.columns:
            if column.name == index:
                continue
            values = self._columns[column.name]
            if isinstance(values, Names):
                if column.kind == "args":
                    # Each row gets a dict of its own: changing one must not change another.
                    cells = np.full(len(values), None, object)
                    for row in np.flatnonzero(values.codes >= 0).tolist():
                        cells[row] = json.loads(values.categories[values.codes[row]])
                    data[column.name] = pd.Series(cells, index=rows, dtype=object)
                else:
                    compact = values.compact()
                    dtype = pd.CategoricalDtype(pd.Index(compact.categories, dtype=object))
                    data[column.name] = pd.Categorical.from_codes(compact.codes, dtype=dtype)
            elif column.kind == "id":
                data[column.name] = pd.arrays.IntegerArray(values, values == MISSING)
            else:
                data[column.name] = values
        # pandas copies what a dict holds: changing the frame does not change the table.
        return pd.DataFrame(data, copy=True, index=rows)


def _numbers(values: npt.NDArray[Any] | Names, name: str, kind: Kind) -> npt.NDArray[Any]:
    """Return the values as they are stored, unless that would lose some of them."""
    array = np.asarray(values)
    # An empty list is an array of floats, and harmless.
    fits = array.dtype.kind in "biu" or not array.size
    if array.ndim != 1 or not fits:
        raise ValueError(
            f"column {name} must be one-dimensional {STORAGE[kind]}, "
            f"not {array.ndim}-dimensional {array.dtype}"
        )
    return np.ascontiguousarray(array, STORAGE[kind])


def concat(tables: Sequence[Table]) -> Table:
    """Put tables of one schema under each other; at least one table is needed."""
    schema = tables[0].schema
    columns: dict[str, npt.NDArray[Any] | Names] = {}
    for column in schema.columns:
        if column.kind in ("name", "args"):
            index: dict[str, int] = {}
            parts = []
            for table in tables:
                names = table.names(column.name)
                remap = np.full(len(names.categories) + 1, MISSING, np.int32)
                for i, category in enumerate(names.categories):
                    remap[i] = index.setdefault(category, len(index))
                parts.append(remap[names.codes])
            columns[column.name] = Names(np.concatenate(parts), tuple(index))
        else:
            columns[column.name] = np.concatenate([table[column.name] for table in tables])
    return Table(schema, columns)
