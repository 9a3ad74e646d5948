"""Columns from and to Arrow: for Parquet files and SQL.

Arrays are made of buffers. ``pyarrow.array`` and ``to_numpy`` import pandas, and with it half a
second of a short script that ``epprof run`` records.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from epprof_nb.data.schema import MISSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

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
    has_missing = column.kind in ("id", "row", "delta")
    if has_missing and table.is_absent(column.name):
        return pa.nulls(len(values), pa.from_numpy_dtype(values.dtype))
    return _numbers(values, table.has_value(column.name) if has_missing else None)


def names_to_arrow(names: CategoryColumn) -> pa.Array:
    """Return names as an Arrow dictionary array of the categories that occur, sorted."""
    names = names.compact()
    codes = _numbers(names.codes, names.codes != MISSING)
    return pa.DictionaryArray.from_arrays(codes, _texts(names.categories))


def from_arrow(array: pa.Array, fill: int) -> npt.NDArray[Any]:
    """Return an Arrow array of numbers or truth values as a NumPy array, with `fill` for nulls.

    The array shares the memory of numbers without nulls.
    """
    present, stored = array.buffers()
    if pa.types.is_boolean(array.type):
        values = _bits(stored, array)
    else:
        dtype = np.dtype(array.type.to_pandas_dtype())
        values = np.frombuffer(stored or b"", dtype)[array.offset : array.offset + len(array)]
    return np.where(_bits(present, array), values, dtype.type(fill)) if array.null_count else values


def _bits(buffer: pa.Buffer | None, array: pa.Array) -> npt.NDArray[np.bool_]:
    bits = np.unpackbits(np.frombuffer(buffer or b"", np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)].view(np.bool_)


def _packed(bits: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(bits, bitorder="little"))


def _numbers(values: npt.NDArray[Any], present: npt.NDArray[np.bool_] | None) -> pa.Array:
    """Return numbers or truth values as an Arrow array, with nulls where they are not present."""
    validity = None if present is None or present.all() else _packed(present)
    type_ = pa.from_numpy_dtype(values.dtype)
    stored = _packed(values) if type_ == pa.bool_() else pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(type_, len(values), [validity, stored])


def _texts(texts: Sequence[str]) -> pa.Array:
    stored = [text.encode("utf-8", "backslashreplace") for text in texts]
    ends = np.fromiter(accumulate(map(len, stored), initial=0), np.int64, len(stored) + 1)
    if ends[-1] > np.iinfo(np.int32).max:
        raise pa.ArrowCapacityError(f"an array of texts cannot have {ends[-1]:,} bytes")
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(stored))]
    return pa.Array.from_buffers(pa.string(), len(stored), buffers)
