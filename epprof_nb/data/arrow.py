"""Tables as Arrow: for Parquet files and SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from epprof_nb.data.names import CategoryColumn
    from epprof_nb.data.schema import Column
    from epprof_nb.data.table import Table


def to_arrow(table: Table, column: Column) -> pa.Array:
    """Return a stored column as an Arrow array; missing ids and names become nulls.

    The array shares the memory of the column's numbers; codes of names are copied. Characters that
    UTF-8 cannot encode (lone surrogates) become escapes.
    """
    if column.kind in ("name", "args"):
        return names_to_arrow(table.names(column.name))
    values = table[column.name]
    has_missing = column.kind in ("id", "delta")
    if has_missing and table.is_absent(column.name):
        return pa.nulls(len(values), pa.int64())
    return pa.array(values, mask=~table.has_value(column.name) if has_missing else None)


def names_to_arrow(names: CategoryColumn) -> pa.Array:
    """Return names as an Arrow dictionary array of the categories that occur, sorted."""
    names = names.compact()
    texts = [text.encode("utf-8", "backslashreplace").decode("utf-8") for text in names.categories]
    codes = pa.array(names.codes, mask=names.codes == MISSING)
    return pa.DictionaryArray.from_arrays(codes, pa.array(texts, pa.string()))
