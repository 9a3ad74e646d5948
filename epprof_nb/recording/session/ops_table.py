"""The ops of a recording as a table: each op once, the parts of coalesced statements added up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.ids import unique_inverse
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MISSING, OPS
from epprof_nb.data.table import Table
from epprof_nb.recording.frameworks.framework_ops import (
    FRAMEWORK_CATEGORIES,
    FRAMEWORK_TYPES,
    TASK,
)
from epprof_nb.recording.native_columns import OP_NAME, name_of
from epprof_nb.recording.session.framework_columns import add_columns_of_kinds
from epprof_nb.recording.session.recording import Batch, column
from epprof_nb.recording.statements.statement_registry import STATEMENT
from epprof_nb.recording.statements.statements_table import statements_table
from epprof_nb.recording.token_calls import with_token_arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.recording.recorder import Recorder

# Categories and flags, as in native/core/records.h.
RANGE, CELL = 0, 2
_OPEN, _COALESCED, _SUSPENDED = 1, 2, 4
_TYPES = ("range", "line", "cell", "event", "run", "node", *FRAMEWORK_TYPES)
_CATEGORIES = ("user", "cell", "cell", "session", "session", "node", *FRAMEWORK_CATEGORIES)
_SOURCES = ("range", "cell", "cell", *(("onnxruntime",) * 3))
_OFTEN_EQUAL = (
    "suspended_ns", "name_id", "payload_id", "count", "category", "flags", "thread_id",
)  # fmt: skip
"""Columns that may have one value in memory for all rows, and then are read-only."""
_LATER = np.iinfo(np.int64).max


def ops_table(
    batches: list[Batch], recorders: Sequence[Recorder] = (), stopped_ns: int = _LATER
) -> tuple[Table, int]:
    """Return the ops of a recording (absolute times) and the number of dropped ops.

    Ops that are still open end at `stopped_ns`, when the code ended: the flush comes later.
    The recorders fill in the columns that only they know.
    """

    def get(name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        return column(batches, "ops", name, dtype)

    flags = get("flags", np.uint16)
    in_last = np.ones(len(flags), np.bool_)
    in_last[: len(flags) - len(batches[-1].ops["flags"]) // 2] = False
    # Each flush copies the ops that are still open. Keep only the copies of the last flush.
    rows = np.flatnonzero(in_last | ((flags & _OPEN) == 0))
    columns = {
        name: get(name, dtype)
        for name, dtype in (
            ("op_id", np.int64), ("parent_op_id", np.int64), ("start_ns", np.int64),
            ("end_ns", np.int64), ("duration_ns", np.int64), ("suspended_ns", np.int64),
            ("name_id", np.uint32), ("payload_id", np.uint32), ("count", np.uint32),
            ("category", np.uint16), ("flags", np.uint16), ("thread_id", np.int64),
        )
    }  # fmt: skip
    raw = _by_start(columns, rows)
    _end_open(raw, stopped_ns)
    table, category = _table(raw, batches[-1].ops)
    table = add_columns_of_kinds(table, category, raw["payload_id"])
    outputs = [output for batch in batches for output in batch.outputs]
    for recorder in recorders:
        table = recorder.with_details(table, category, raw["payload_id"], outputs)
    dropped = sum(batch.ops["lost"] for batch in batches)
    return with_token_arguments(table), dropped


def _end_open(raw: dict[str, npt.NDArray[Any]], stopped_ns: int) -> None:
    """End the open ops at `stopped_ns`; the time after it was open or suspended."""
    rows = np.flatnonzero(raw["flags"] & _OPEN)
    longer = raw["end_ns"][rows] - np.maximum(raw["start_ns"][rows], stopped_ns)
    longer = longer.clip(min=0)
    is_suspended = (raw["flags"][rows] & _SUSPENDED) != 0
    suspended = np.where(is_suspended, np.minimum(longer, raw["suspended_ns"][rows]), 0)
    raw["end_ns"][rows] -= longer
    raw["duration_ns"][rows] -= longer - suspended
    if is_suspended.any():
        raw["suspended_ns"] = raw["suspended_ns"].copy()
        raw["suspended_ns"][rows] -= suspended


def _by_start(columns: dict[str, npt.NDArray[Any]], rows: IntArray) -> dict[str, npt.NDArray[Any]]:
    """Return some rows by start; coalesced statements are merged and follow others of that time.

    The columns are copied once, because that is most of the work.
    """
    coalesced = (columns["flags"][rows] & _COALESCED) != 0
    if coalesced.any():
        op_id, first = np.unique(columns["op_id"][rows[coalesced]], return_index=True)
        if len(op_id) < coalesced.sum():
            taken = {name: values[rows] for name, values in columns.items()}
            columns = _merge_coalesced(taken, coalesced)
            rows = np.arange(len(columns["op_id"]))
        else:
            rows = np.concatenate([rows[~coalesced], rows[coalesced][first]])
    start = columns["start_ns"][rows]
    if (start[1:] < start[:-1]).any():
        rows = rows[np.argsort(start, kind="stable")]
    return {
        name: np.broadcast_to(values[:1].copy(), len(rows))
        if name in _OFTEN_EQUAL and len(rows) and values.min() == values.max()
        else values[rows]
        for name, values in columns.items()
    }


def _merge_coalesced(
    raw: dict[str, npt.NDArray[Any]], coalesced: npt.NDArray[np.bool_]
) -> dict[str, npt.NDArray[Any]]:
    """Merge coalesced statement rows that were split over several flushes."""
    parts = {name: values[coalesced] for name, values in raw.items()}
    op_id, first, inverse = np.unique(parts["op_id"], return_index=True, return_inverse=True)
    merged = {name: values[first].copy() for name, values in parts.items()}
    for name in ("duration_ns", "suspended_ns", "count"):
        total = np.zeros(len(op_id), np.int64)
        np.add.at(total, inverse, parts[name].astype(np.int64))
        merged[name] = total
    np.minimum.at(merged["start_ns"], inverse, parts["start_ns"])
    np.maximum.at(merged["end_ns"], inverse, parts["end_ns"])
    np.bitwise_or.at(merged["flags"], inverse, parts["flags"])
    return {
        name: np.concatenate([values[~coalesced], merged[name]]) for name, values in raw.items()
    }


def _table(
    raw: dict[str, npt.NDArray[Any]], session: dict[str, Any]
) -> tuple[Table, npt.NDArray[Any]]:
    """Return the ops, and the number of the category of each."""
    n = len(raw["op_id"])
    category = raw["category"]
    parent = np.where(raw["parent_op_id"] == 0, MISSING, raw["parent_op_id"])
    columns: dict[str, npt.NDArray[Any] | CategoryColumn] = {
        "op_id": raw["op_id"],
        "parent_op_id": parent,
        "name": _names_column(raw["name_id"], session["op_names"]),
        "op_type": CategoryColumn.from_ids(category, _TYPES),
        "category": CategoryColumn.from_ids(category, _CATEGORIES),
        "source": CategoryColumn.from_ids(category, _SOURCES),
        "thread_id": raw["thread_id"],
        "start_ns": raw["start_ns"],
        "end_ns": raw["end_ns"],
        "duration_ns": raw["duration_ns"],
        "suspended_ns": raw["suspended_ns"],
        "count": raw["count"],
        "status": CategoryColumn.from_ids(raw["flags"] & _OPEN, ("complete", "open")),
        "args": _args(raw["payload_id"], category, session["op_args"]),
    }
    statements = np.flatnonzero(category == STATEMENT)
    if len(statements):
        details = statements_table(raw["payload_id"][statements])
        cell = np.full(n, MISSING, np.int32)
        cell[statements] = details.cell.codes
        columns["cell"] = CategoryColumn(cell, details.cell.categories)
        for name, values in (("line", details.line), ("end_line", details.end_line)):
            column_values = np.full(n, MISSING, np.int64)
            column_values[statements] = values
            columns[name] = column_values
    return Table(OPS, columns), category


def _args(
    payload: npt.NDArray[Any], category: npt.NDArray[Any], texts: list[str]
) -> CategoryColumn:
    ids = np.where((category == RANGE) | (category == TASK), payload, 0)
    used: list[int] = unique_inverse(ids)[0].tolist()
    return CategoryColumn.from_ids(ids, {i: texts[i - 1] for i in used if i > 0})


def _names_column(name_ids: npt.NDArray[Any], op_names: list[str]) -> CategoryColumn:
    """Return the names of ops as a column."""
    of_op = (name_ids & OP_NAME) != 0
    # Small numbers, which `unique_inverse` need not sort.
    base = int(name_ids[~of_op].max(initial=0)) + 1
    ids_ = np.where(of_op, (name_ids & (OP_NAME - 1)) + base, name_ids)
    used = unique_inverse(ids_)[0].tolist()
    return CategoryColumn.from_ids(
        ids_, {i: op_names[i - base] if i >= base else name_of(i) for i in used}
    )
