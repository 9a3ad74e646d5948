"""Columns of result frames: the same dtypes on pandas 2.3 and 3, empty or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


def categorical(values: Sequence[str | None]) -> pd.Categorical:
    """Return a column of names; None is missing. Categories are sorted, and all are used."""
    names = CategoryColumn.of(values).compact()
    # By default, pandas 2.3 and 3 give strings different dtypes.
    dtype = pd.CategoricalDtype(pd.Index(names.categories, dtype=object))
    return pd.Categorical.from_codes(names.codes, dtype=dtype)


def optional(values: npt.ArrayLike) -> pd.arrays.IntegerArray:
    """Return a column of dtype Int64; `MISSING` becomes ``<NA>``."""
    stored = np.array(values, np.int64)
    return pd.arrays.IntegerArray(stored, stored == MISSING)
