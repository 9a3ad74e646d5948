"""API calls by correlation id, without a table of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.lookup import RowIndex
from epprof_nb.schema import MISSING

if TYPE_CHECKING:
    from epprof_nb.table import Table

Ints = npt.NDArray[np.int64]


class Calls:
    """The API calls of a profile.

    Parameters
    ----------
    table
        The table of the API calls.
    """

    def __init__(self, table: Table) -> None:
        self._ids = ids = table["correlation_id"]
        # Each call is given the next id, and most are recorded in order.
        self._ascending = bool((ids[1:] >= ids[:-1]).all())

    def first(self, ids: Ints) -> Ints:
        """Return the row of the first call of each id; -1 for `MISSING`, and where there is none.

        Of calls that share an id, as a runtime call and the driver call within, the first counts.
        """
        if self._ascending and len(self._ids):
            at = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
            return np.where((self._ids[at] == ids) & (ids != MISSING), at, -1)
        near = np.flatnonzero(np.isin(self._ids, ids))
        # The last one is what row -1, none, stands for.
        return np.append(near, -1)[RowIndex(self._ids[near]).rows(ids)]
