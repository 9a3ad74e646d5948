"""CategoryColumn: a dictionary-encoded column of strings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.arrays.ids import unique_inverse
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.arrays.types import BoolArray, IntArray


@dataclass(frozen=True, slots=True)
class CategoryColumn:
    """A column of strings: ``codes`` (int32, -1 for missing) into ``categories`` (unique).

    Examples
    --------
    >>> column = CategoryColumn.of(["b", None, "b"])
    >>> column.codes.tolist(), column.categories
    ([0, -1, 0], ('b',))
    """

    codes: npt.NDArray[np.int32]
    categories: tuple[str, ...]

    @classmethod
    def of(cls, values: Sequence[str | None]) -> CategoryColumn:
        """Encode a sequence of strings; None is missing."""
        index: dict[str, int] = {}
        codes = np.fromiter(
            (MISSING if v is None else index.setdefault(v, len(index)) for v in values),
            np.int32,
            len(values),
        )
        return cls(codes, tuple(index))

    @classmethod
    def constant(cls, value: str, length: int) -> CategoryColumn:
        """Return a column of `length` equal strings."""
        return cls(np.zeros(length, np.int32), (value,))

    @classmethod
    def from_ids(
        cls, ids: npt.NDArray[Any], table: Sequence[str] | Mapping[int, str]
    ) -> CategoryColumn:
        """Encode ids of strings in `table`; the categories are the strings that occur.

        Ids that are not in `table` become missing.
        """
        lookup = table if isinstance(table, Mapping) else dict(enumerate(table))
        used, position = unique_inverse(ids)
        index: dict[str, int] = {}
        # Two ids may have the same string; categories are unique.
        codes = np.array(
            [
                index.setdefault(lookup[i], len(index)) if i in lookup else MISSING
                for i in used.tolist()
            ],
            np.int32,
        )
        if len(used) == 1:
            return cls(np.full(len(ids), codes[0], np.int32), tuple(index))
        return cls(codes[position] if len(used) else np.empty(0, np.int32), tuple(index))

    def compact(self) -> CategoryColumn:
        """Return the same values with only the categories that occur, in sorted order."""
        if len(self.categories) <= self.codes.max(initial=MISSING) + 1 <= 1:
            return self  # no category, or a single one that occurs
        present = np.zeros(len(self.categories) + 1, np.bool_)
        present[self.codes] = True  # -1, missing, refers to the last element
        order = sorted(np.flatnonzero(present[:-1]).tolist(), key=lambda i: self.categories[i])
        if order == list(range(len(self.categories))):
            return self
        remap = np.full(len(self.categories) + 1, MISSING, np.int32)
        remap[order] = np.arange(len(order), dtype=np.int32)
        return CategoryColumn(remap[self.codes], tuple(self.categories[i] for i in order))

    def map(self, change: Callable[[str], str]) -> CategoryColumn:
        """Apply `change` to each category; equal results are merged.

        Examples
        --------
        >>> CategoryColumn.of(["a1", None, "a2"]).map(lambda text: text[0]).to_list()
        ['a', None, 'a']
        """
        index: dict[str, int] = {}
        place = [index.setdefault(change(text), len(index)) for text in self.categories]
        if len(index) == len(place):  # nothing to merge: the codes stay the same
            return CategoryColumn(self.codes, tuple(index))
        return CategoryColumn(np.array([*place, MISSING], np.int32)[self.codes], tuple(index))

    def replaced(self, rows: IntArray, values: CategoryColumn) -> CategoryColumn:
        """Return the column with new values at some rows; missing new values are ignored.

        Examples
        --------
        >>> names = CategoryColumn.of(["a", "b", "c"])
        >>> names.replaced(np.array([0, 2]), CategoryColumn.of(["d", None])).to_list()
        ['d', 'b', 'c']
        """
        index = {name: code for code, name in enumerate(self.categories)}
        merged = [index.setdefault(name, len(index)) for name in values.categories]
        new = np.array([*merged, MISSING], np.int32)[values.codes]
        codes = self.codes.copy()
        codes[rows] = np.where(new >= 0, new, codes[rows])
        return CategoryColumn(codes, tuple(index))

    def take(self, rows: npt.NDArray[Any] | slice) -> CategoryColumn:
        """Return some rows (indices, a boolean mask or a slice)."""
        return CategoryColumn(self.codes[rows], self.categories)

    def equals(self, value: str) -> BoolArray:
        """Return a mask of the rows equal to `value`."""
        if value not in self.categories:
            return np.zeros(len(self.codes), np.bool_)
        return np.equal(self.codes, self.categories.index(value))

    def to_list(self) -> list[str | None]:
        """Return the strings; None if missing."""
        table = [*self.categories, None]
        return [table[code] for code in self.codes.tolist()]

    def __len__(self) -> int:
        return len(self.codes)
