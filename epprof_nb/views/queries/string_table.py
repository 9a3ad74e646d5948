"""One table of the strings that the columns of a message refer to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.data.kernel_names import short_name
from epprof_nb.data.schema import MISSING
from epprof_nb.util.format import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.arrays.types import IntArray

MAX_NAME_LENGTH = 600
"""Maximum number of characters of a name that the viewer gets."""


class StringTable:
    """One table of strings for all columns.

    Attributes
    ----------
    index
        Index of each string.
    columns
        Names of the columns that have codes into the table.
    short
        Short names of kernels, by index.
    """

    def __init__(self) -> None:
        self.index: dict[str, int] = {}
        self.columns: list[str] = []
        self.short: dict[int, str] = {}

    def encode(self, column: str, codes: npt.NDArray[Any], categories: Sequence[str]) -> IntArray:
        """Return codes into this table and register `column`; a missing value stays -1."""
        if column not in self.columns:
            self.columns.append(column)
        used = np.unique(codes[codes >= 0])
        remap = np.full(len(categories) + 1, MISSING, np.int64)
        for code in used.tolist():
            text = categories[code]
            if len(text) > MAX_NAME_LENGTH:
                text = shorten(text, MAX_NAME_LENGTH)
            remap[code] = self.index.setdefault(text, len(self.index))
            if column == "act.name" and (short := short_name(categories[code])) != text:
                self.short[int(remap[code])] = short
        mapped: IntArray = remap[codes]
        return mapped
