"""The op log as rows: copies of open ops replaced by their end, coalesced statements summed."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from epprof_nb.capture.service import Batch, column
from epprof_nb.core.native_columns import names_column
from epprof_nb.data.schema import MISSING, OPS
from epprof_nb.data.table import Names, Table, distinct
from epprof_nb.instrument.statements import statements_table
from epprof_nb.recorders.onnxruntime.op_rows import ORT_CATEGORIES, with_details

# Categories and flags: native/core/records.h.
RANGE, STATEMENT, CELL = 0, 1, 2
_OPEN, _COALESCED = 1, 2
_TYPES = ("range", "line", "cell", "event", "run", "node")
_CATEGORIES = ("user", "cell", "cell", *ORT_CATEGORIES)
_SOURCES = ("range", "cell", "cell", *(("onnxruntime",) * len(ORT_CATEGORIES)))


def ops_table(batches: list[Batch]) -> tuple[Table, int]:
    """The ops of a slice (times absolute) and how many found no room."""

    def get(name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        return column(batches, "ops", name, dtype)

    flags = get("flags", np.uint16)
    in_last = np.ones(len(flags), np.bool_)
    in_last[: len(flags) - len(batches[-1].ops["flags"]) // 2] = False
    # At every cut the ops then open are copied: only the last cut's copies count.
    rows = np.flatnonzero(in_last | ((flags & _OPEN) == 0))
    raw = {
        name: get(name, dtype)[rows]
        for name, dtype in (
            ("op_id", np.int64), ("parent_op_id", np.int64), ("start_ns", np.int64),
            ("end_ns", np.int64), ("duration_ns", np.int64), ("suspended_ns", np.int64),
            ("name_id", np.uint32), ("payload_id", np.uint32), ("count", np.uint32),
            ("category", np.uint16), ("flags", np.uint16), ("thread_id", np.int64),
        )
    }  # fmt: skip
    raw = _merge_coalesced(raw)
    order = np.argsort(raw["start_ns"], kind="stable")
    if (np.diff(order) != 1).any():
        raw = {name: values[order] for name, values in raw.items()}
    lost = sum(batch.ops["lost"] for batch in batches)
    return _table(raw, batches[-1].ops), lost


def _merge_coalesced(raw: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
    """Sum the parts of statement rows that several drains handed over."""
    shared = (raw["flags"] & _COALESCED) != 0
    if not shared.any():
        return raw
    parts = {name: values[shared] for name, values in raw.items()}
    found, first, inverse = np.unique(parts["op_id"], return_index=True, return_inverse=True)
    merged = {name: values[first].copy() for name, values in parts.items()}
    for name in ("duration_ns", "suspended_ns", "count"):
        total = np.zeros(len(found), np.int64)
        np.add.at(total, inverse, parts[name].astype(np.int64))
        merged[name] = total
    np.minimum.at(merged["start_ns"], inverse, parts["start_ns"])
    np.maximum.at(merged["end_ns"], inverse, parts["end_ns"])
    np.bitwise_or.at(merged["flags"], inverse, parts["flags"])
    return {name: np.concatenate([values[~shared], merged[name]]) for name, values in raw.items()}


def _table(raw: dict[str, npt.NDArray[Any]], session: dict[str, Any]) -> Table:
    n = len(raw["op_id"])
    category = raw["category"].astype(np.int64)
    parent = np.where(raw["parent_op_id"] == 0, MISSING, raw["parent_op_id"])
    columns: dict[str, npt.NDArray[Any] | Names] = {
        "op_id": raw["op_id"],
        "parent_op_id": parent,
        "name": names_column(raw["name_id"], session["op_names"]),
        "op_type": Names.from_ids(category, _TYPES),
        "category": Names.from_ids(category, _CATEGORIES),
        "source": Names.from_ids(category, _SOURCES),
        "thread_id": np.where(raw["thread_id"] == 0, MISSING, raw["thread_id"]),
        "start_ns": raw["start_ns"],
        "end_ns": raw["end_ns"],
        "duration_ns": raw["duration_ns"],
        "suspended_ns": raw["suspended_ns"],
        "count": raw["count"].astype(np.int64),
        "status": Names.from_ids((raw["flags"] & _OPEN).astype(np.int64), ("complete", "open")),
        "args": _args(raw["payload_id"], category, session["op_args"]),
    }
    statements = np.flatnonzero(category == STATEMENT)
    if len(statements):
        found = statements_table(raw["payload_id"][statements])
        cell = np.full(n, MISSING, np.int32)
        cell[statements] = found.cell.codes
        columns["cell"] = Names(cell, found.cell.categories)
        for name, values in (("line", found.line), ("end_line", found.end_line)):
            whole = np.full(n, MISSING, np.int64)
            whole[statements] = values
            columns[name] = whole
    return with_details(Table(OPS, columns), category, raw["payload_id"])


def _args(meta: npt.NDArray[Any], category: npt.NDArray[Any], texts: list[str]) -> Names:
    ids = np.where(category == RANGE, meta, 0).astype(np.int64)
    return Names.from_ids(ids, {i: texts[i - 1] for i in distinct(ids)[0].tolist() if i > 0})
