"""A stretch of time of a part that is larger than memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.ids import contains
from epprof_nb.core.errors import ProfileFileError
from epprof_nb.data.profile_data import ProfileData
from epprof_nb.data.schema import OPS, TABLES, TableSchema
from epprof_nb.data.stack_table import check_stacks
from epprof_nb.data.table import Table, concat
from epprof_nb.files.dataset.part import read_columns, read_pieces
from epprof_nb.jobs.window import rows_between

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.files.dataset.manifest import Manifest


def read_stretch(
    folder: Path, manifest: Manifest, begin_ns: int, end_ns: int, *, max_bytes: int
) -> ProfileData:
    """Read what `epprof_nb.jobs.window.window` needs of a part for a stretch of time.

    Memory is needed for the events of the stretch, and for one row group of a table.

    Parameters
    ----------
    folder, manifest
        The part.
    begin_ns, end_ns
        Begin and end on the clock of its profile.
    max_bytes
        Maximum memory of a row group, and of the tables without times, in bytes.

    Returns
    -------
    data
        The profile with the events of the stretch, the ops that these name, and the ops by which
        `window` finds the main thread.

    Raises
    ------
    ProfileFileError
        If the part is damaged.
    """
    timed = [schema for schema in TABLES if rows_between(Table(schema), 0, 1) is not None]
    others = {s.name: s.names for s in TABLES if s not in timed}
    tables = read_columns(folder, manifest, others, max_bytes=max_bytes)

    def read(schema: TableSchema, choose: Callable[[Table], BoolArray], *, skips: bool) -> Table:
        between = (begin_ns, end_ns) if skips else None
        pieces = read_pieces(
            folder, manifest, schema.name, schema.names, between=between, max_bytes=max_bytes
        )
        chosen = [piece.take(choose(piece)) for piece in pieces]
        return concat(chosen) if chosen else Table(schema)

    def inside(piece: Table) -> BoolArray:
        rows = rows_between(piece, begin_ns, end_ns)
        return np.ones(len(piece), np.bool_) if rows is None else rows

    for schema in timed:
        if schema is not OPS:
            tables[schema.name] = read(schema, inside, skips=True)
    needed = _Ops(tables["activities"])
    tables["ops"] = read(OPS, lambda piece: inside(piece) | needed.rows(piece), skips=False)
    try:
        check_stacks(tables)
    except ValueError as error:
        raise ProfileFileError(f"{folder} could not be loaded: {error}") from error
    return ProfileData(tables, dict(manifest.info), dict(manifest.sources))


class _Ops:
    """The ops that a stretch needs, wherever they are in time."""

    def __init__(self, activities: Table) -> None:
        ids = [activities[name] for name in ("op_id", "capture_op_id")]
        self._named: IntArray = np.unique(np.concatenate(ids))
        self._first: int | None = None

    def rows(self, ops: Table) -> BoolArray:
        """Return the needed ones of the next ops."""
        needed = contains(self._named, ops["op_id"])
        needed |= ops.names("status").equals("earlier") | ops.names("op_type").equals("cell")
        first = int(ops["start_ns"].min(initial=np.iinfo(np.int64).max))
        if self._first is None or first < self._first:  # the first op of all is on the main thread
            self._first = first
            needed |= ops["start_ns"] == first
        return needed
