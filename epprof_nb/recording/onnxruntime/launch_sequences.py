"""Launch sequences of runs: the launches of a run in order, and the node of each.

Two runs with equal sequences ran the same nodes if the model has no subgraphs whose execution
depends on data, and if no other nodes could cause these launches
(`epprof_nb.recording.onnxruntime.operator_launches`). Names, grids, blocks and sizes are compared
exactly. If the sizes of the inputs vary from run to run, only kinds and names are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import DEVICE_KINDS, MISSING, OPS
from epprof_nb.data.table import Table
from epprof_nb.recording.native_columns import name_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from epprof_nb.arrays.types import BoolArray, IntArray

# Packed, because sequences are kept. Names are ids of the string table.
LAUNCH = np.dtype(
    # `grid` holds the bytes of a copy or memset, low and high half.
    [("kind", "u1"), ("name", "u4"), ("grid", "u4", 3), ("block", "i2", 3)]
)
_SHAPES = ("input_shapes", "output_shapes")
_TEXTS = ("name", "op_type", "provider", *_SHAPES)
_OP = np.dtype(
    [*((name, "u4") for name in _TEXTS), ("node_index", "i4"), ("parent", "i4"), ("is_node", "?")]
)
RUN = -1
"""Index of the run itself among the ops of a sequence."""
_OTHER_NAMES = 1
"""Id of all names that do not fit in the string table."""


@dataclass(frozen=True, slots=True)
class LaunchSequence:
    """The launches of a run whose nodes were recorded.

    Attributes
    ----------
    op
        int16 or int32 array: index of the op of each launch in `ops`, or `RUN`.
    ops
        Structured array: the ops of the run in order of start. ``parent`` is an index or `RUN`.
    size
        None if all runs with this sequence have these nodes. The exact hash of the launches if
        sizes are not compared and all recorded runs had the same sizes.
    """

    op: npt.NDArray[np.signedinteger[Any]]
    ops: npt.NDArray[np.void]
    size: int | None = None

    def common_with(self, other: LaunchSequence) -> LaunchSequence | None:
        """Return what two runs with these launches have in common; None if their nodes differ.

        Nodes have no shapes in the result if their shapes differ, for example with bound inputs.
        """
        if not np.array_equal(self.op, other.op):
            return None
        if np.array_equal(self.ops, other.ops):
            return self
        ops, others = _without_shapes(self.ops), _without_shapes(other.ops)
        return replace(self, ops=ops) if np.array_equal(ops, others) else None

    def sharing_ops(self, others: Iterable[LaunchSequence | None]) -> LaunchSequence:
        """Return this sequence with the ops of another one if they are equal, to save memory."""
        for other in others:
            if other is not None and np.array_equal(self.ops, other.ops):
                return replace(self, ops=other.ops)
        return self

    def also_of(self, size: int | None) -> LaunchSequence:
        """Return this sequence, also known from a run of this size."""
        return self if self.size is None or self.size == size else replace(self, size=None)

    def of_any_size(self, size: int) -> LaunchSequence:
        """Return this sequence for runs of any size; it was recorded in a run of this one."""
        return LaunchSequence(self.op, _without_shapes(self.ops), size)

    def is_known_for(self, size: int) -> bool:
        """Whether runs of this size with this sequence have these nodes."""
        return self.size is None or self.size == size

    def table(self, op_ids: IntArray, run: Table, start: IntArray, end: IntArray) -> Table:
        """Return the ops of some runs that had this sequence, as rows of ``prof.ops``.

        Parameters
        ----------
        op_ids, start, end
            int64 arrays, shape ``(runs, ops)``: ids and times of the ops.
        run
            The rows of the runs.
        """
        runs, count = op_ids.shape
        parent = self.ops["parent"].astype(np.int64)
        run_ids = np.repeat(run["op_id"], count).reshape(runs, count)
        parent_ids = np.where(parent == RUN, run_ids, op_ids[:, parent])

        def names(column: str) -> CategoryColumn:
            ids = self.ops[column]
            table = {i: name_of(i) for i in np.unique(ids).tolist() if i}
            part = CategoryColumn.from_ids(ids, table)
            return CategoryColumn(np.tile(part.codes, runs), part.categories)

        return Table(
            OPS,
            {
                "op_id": op_ids.ravel(),
                "parent_op_id": parent_ids.ravel(),
                **{column: names(column) for column in _TEXTS},
                "category": CategoryColumn(
                    np.tile(self.ops["is_node"].astype(np.int32), runs), ("session", "node")
                ),
                "source": CategoryColumn.constant("onnxruntime", runs * count),
                "thread_id": np.repeat(run["thread_id"], count),
                "node_index": np.tile(self.ops["node_index"].astype(np.int64), runs),
                "session": np.repeat(run["session"], count),
                "run_id": np.repeat(run["run_id"], count),
                "start_ns": start.ravel(),
                "end_ns": end.ravel(),
                "duration_ns": (end - start).ravel(),
                "count": np.ones(runs * count, np.int64),
                "status": CategoryColumn.constant("learned", runs * count),
            },
        )


def _without_shapes(ops: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    result = ops.copy()
    for column in _SHAPES:
        result[column] = 0
    return result


def packed_launches(activities: Table, rows: IntArray) -> tuple[npt.NDArray[np.void], BoolArray]:
    """Return the launches of some activities as an array of dtype `LAUNCH`.

    Launches are equal if and only if their bytes are equal. The second array is a mask of launches
    with a name, because the string table may be full.
    """
    packed = np.zeros(len(rows), LAUNCH)
    kinds = activities.names("kind")
    number = {kind: i for i, kind in enumerate(DEVICE_KINDS)}
    of_kind = np.array([number.get(kind, 255) for kind in kinds.categories] + [255], np.uint8)
    packed["kind"] = of_kind[kinds.codes[rows]]
    names = activities.names("name")
    packed["name"] = _interned(names, np.unique(names.codes[rows]))[names.codes[rows]]
    size = activities["bytes"][rows].view(np.uint64)
    is_kernel = packed["kind"] == 0
    for i, axis in enumerate("xyz"):
        half = (size >> np.uint64(32 * i)) & np.uint64(0xFFFFFFFF) if i < 2 else 0
        grid = activities[f"grid_{axis}"][rows]
        packed["grid"][:, i] = np.where(is_kernel, grid, half).astype(np.uint32)
        packed["block"][:, i] = activities[f"block_{axis}"][rows]
    return packed, packed["name"] != _OTHER_NAMES


def without_launch_sizes(packed: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """Return launches, an array of dtype `LAUNCH`, without grids, blocks and bytes."""
    result = np.zeros(len(packed), LAUNCH)
    for column in ("kind", "name"):
        result[column] = packed[column]
    return result


def sequence_of(
    ops: Table, op_rows: IntArray, parents: IntArray, run_op: int, launch_ops: IntArray
) -> LaunchSequence | None:
    """Return the sequence of a recorded run; None if the string table cannot hold its names.

    Parameters
    ----------
    ops
        A table of schema `epprof_nb.data.schema.OPS`.
    op_rows
        int64 array: rows of the run's events except the run itself, in order of start.
    parents
        int64 array: id of the event that encloses each of them.
    run_op
        Id of the run's op.
    launch_ops
        int64 array: id of the event of each launch, in order.
    """
    ids = ops["op_id"][op_rows]
    order = np.argsort(ids)
    index = np.append(order, RUN)

    def index_of(wanted: IntArray) -> IntArray:
        at = np.minimum(np.searchsorted(ids, wanted, sorter=order), max(len(ids) - 1, 0))
        known = wanted != run_op
        return index[np.where(known, at, len(ids))]

    packed = np.zeros(len(op_rows), _OP)
    for column in _TEXTS:
        names = ops.names(column)
        codes = names.codes[op_rows]
        packed[column] = _interned(names, np.unique(codes))[codes]
        if (packed[column] == _OTHER_NAMES).any():
            return None
    packed["is_node"] = ops.names("category").equals("node")[op_rows]
    packed["node_index"] = ops["node_index"][op_rows]
    packed["parent"] = index_of(parents)
    small = np.int16 if len(packed) < 1 << 15 else np.int32
    return LaunchSequence(index_of(launch_ops).astype(small), packed)


def _interned(names: CategoryColumn, used: npt.NDArray[np.int32]) -> npt.NDArray[np.uint32]:
    """Return the ids of the used categories in the string table, by code; 0 for -1, missing."""
    ids = np.zeros(len(names.categories) + 1, np.uint32)
    for code in used.tolist():
        if code != MISSING:
            ids[code] = _native.intern(names.categories[code])
    return ids
