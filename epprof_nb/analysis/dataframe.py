"""Columns of result frames: the same dtypes on pandas 2.3 and 3, empty or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.op_args import Argument


def categorical(values: Sequence[str | None]) -> pd.Categorical:
    """Return a column of names; None is missing. Categories are sorted, and all are used."""
    return names_at(CategoryColumn.of(values), slice(None))


def optional(values: npt.ArrayLike) -> pd.arrays.IntegerArray:
    """Return a column of dtype Int64; `MISSING` becomes ``<NA>``."""
    stored = np.array(values, np.int64)
    return pd.arrays.IntegerArray(stored, stored == MISSING)


def values_at(values: IntArray, rows: npt.NDArray[Any]) -> IntArray:
    """Return the values at `rows`; `MISSING` for row `MISSING`."""
    # As an index, `MISSING` refers to the last element: missing again.
    found: IntArray = np.append(values, MISSING)[rows]
    return found


def names_at(names: CategoryColumn, rows: npt.NDArray[Any] | slice) -> pd.Categorical:
    """Return a column of the names at `rows`; missing for row `MISSING`."""
    if not isinstance(rows, slice):
        names = CategoryColumn(np.append(names.codes, np.int32(MISSING))[rows], names.categories)
    names = names.compact()
    # By default, pandas 2.3 and 3 give strings different dtypes.
    dtype = pd.CategoricalDtype(pd.Index(names.categories, dtype=object))
    return pd.Categorical.from_codes(names.codes, dtype=dtype)


def argument_column(argument: Argument) -> pd.api.extensions.ExtensionArray | npt.NDArray[Any]:
    """Return a column of an argument with the dtype of its values.

    The dtype is boolean, Int64, float64 or category if all values are bools, integers, numbers or
    strings, and object otherwise or if integers are too large to be exact.
    """
    codes, values = argument.codes, argument.distinct
    is_missing = codes < 0
    kinds = set(map(type, values))
    if kinds == {bool}:
        return pd.arrays.BooleanArray(np.array([*values, False])[codes], is_missing)
    largest = max((abs(value) for value in values if isinstance(value, int)), default=0)
    if kinds == {int} and largest < 2**63:
        return pd.arrays.IntegerArray(np.array([*values, 0], np.int64)[codes], is_missing)
    if float in kinds and kinds <= {int, float} and largest <= 2**53:
        return np.array([*values, np.nan], np.float64)[codes]
    if kinds <= {str}:
        return names_at(CategoryColumn(codes, tuple(map(str, values))), slice(None))
    of_code = np.empty(len(values) + 1, object)
    of_code[:-1] = values
    of_code[-1] = None
    return of_code[codes]
