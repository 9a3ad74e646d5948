"""Lines that allocated blocks in earlier profiles of this process, while that is certain.

By now, an address can belong to other memory. A line is kept only if the pool has allocated nothing
since, or if the storage that was in the block still lives there.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.arrays.ancestors import nearest_ancestor
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MISSING, MISSING_DELTA

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.table import Table

    Place = tuple[str, int]
    """Cell and line."""


class StorageReferences:
    """Weak references to storages of PyTorch, by their addresses."""

    def __init__(self, tensors: Iterable[Any] = ()) -> None:
        self._references: dict[int, Any] = {}
        reductions = sys.modules.get("torch.multiprocessing.reductions")
        if reductions is None:
            return
        for tensor in tensors:
            try:
                storage = tensor.untyped_storage()
                self._references[storage.data_ptr()] = reductions.StorageWeakRef(storage)
            except (NotImplementedError, RuntimeError):  # without a storage
                continue

    def alive(self) -> set[int]:
        """Return the addresses whose storage lives, and still is there."""
        return {address for address in self._references if self._is_there(address)}

    def _is_there(self, address: int) -> bool:
        reference = self._references[address]
        new = sys.modules["torch"].UntypedStorage._new_with_weak_ptr  # noqa: SLF001 - no public one
        storage = None if reference.expired() else new(reference.cdata)
        return storage is not None and storage.data_ptr() == address


class EarlierBlocks:
    """The lines of the blocks that were in use at the end of the last history."""

    def __init__(self) -> None:
        self._places: dict[int, Place] = {}
        self._allocations = -1

    def certain(self, allocations: int, references: StorageReferences) -> dict[int, Place]:
        """Return cells and lines by address, as far as they are certain now.

        Parameters
        ----------
        allocations
            How many blocks PyTorch has allocated so far.
        references
            The storages at the end of the last history.
        """
        if allocations == self._allocations:
            return self._places
        alive = references.alive() if self._places else set()
        return {address: place for address, place in self._places.items() if address in alive}

    def keep(self, places: dict[int, Place], allocations: int) -> None:
        """Keep the cells and lines of the blocks in use at the end of a history."""
        self._places, self._allocations = places, allocations


def earlier_lines(
    address: IntArray, is_older: BoolArray, known: Mapping[int, Place]
) -> tuple[CategoryColumn, IntArray]:
    """Return the cells and lines of blocks, of those from before a history that are `known`."""
    older = np.flatnonzero(is_older & np.isin(address, list(known)))
    codes, lines = np.full(len(address), MISSING, np.int32), np.full(len(address), MISSING)
    cells: dict[str, int] = {}
    for row, at in zip(older.tolist(), address[older].tolist(), strict=True):
        cell, lines[row] = known[at]
        codes[row] = cells.setdefault(cell, len(cells))
    return CategoryColumn(codes, tuple(cells)), lines


def places_at_end(blocks: Table, ops: Table) -> dict[int, Place]:
    """Return the cells and lines of the blocks in use at the end of a history, by address."""
    rows = np.flatnonzero(blocks["freed_ns"] == MISSING_DELTA)
    ids, cells, lines = IdIndex(ops["op_id"]), ops.names("cell"), ops["line"]
    is_statement = (cells.codes >= 0) & (lines != MISSING)
    statement = nearest_ancestor(ids.rows(ops["parent_op_id"]), is_statement)
    at = np.append(statement, MISSING)[ids.rows(blocks["op_id"][rows])]
    known = np.flatnonzero(at != MISSING)
    address = blocks["address"]
    places = _places(address[rows[known]], cells.take(at[known]), lines[at[known]])
    earlier, line = blocks.names("earlier_cell"), blocks["earlier_line"]
    rows = rows[earlier.codes[rows] >= 0]
    return places | _places(address[rows], earlier.take(rows), line[rows])


def _places(address: IntArray, cells: CategoryColumn, lines: IntArray) -> dict[int, Place]:
    names = [cell or "" for cell in cells.to_list()]
    return dict(zip(address.tolist(), zip(names, lines.tolist(), strict=True), strict=True))
