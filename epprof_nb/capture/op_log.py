"""The op log as rows: copies of open ops replaced by their end, coalesced statements summed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb import _native
from epprof_nb.arrays.ids import unique_inverse
from epprof_nb.capture.service import Batch, column
from epprof_nb.core.native_columns import names_of
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MISSING, OPS
from epprof_nb.data.table import Table
from epprof_nb.instrument.statements import statements_table
from epprof_nb.recorders.onnxruntime.op_rows import ORT_CATEGORIES, with_details

if TYPE_CHECKING:
    from collections.abc import Iterable

# Categories and flags: native/threads.h.
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
            ("name_id", np.uint32), ("meta", np.uint32), ("count", np.uint32),
            ("category", np.uint16), ("flags", np.uint16), ("thread_id", np.int64),
        )
    }  # fmt: skip
    raw = _merge_coalesced(raw)
    order = np.argsort(raw["start_ns"], kind="stable")
    if (np.diff(order) != 1).any():
        raw = {name: values[order] for name, values in raw.items()}
    lost = sum(batch.ops["lost"] for batch in batches)
    return _table(raw), lost


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


def _table(raw: dict[str, npt.NDArray[Any]]) -> Table:
    n = len(raw["op_id"])
    category = raw["category"].astype(np.int64)
    parent = np.where(raw["parent_op_id"] == 0, MISSING, raw["parent_op_id"])
    columns: dict[str, npt.NDArray[Any] | CategoryColumn] = {
        "op_id": raw["op_id"],
        "parent_op_id": parent,
        "name": CategoryColumn.from_ids(raw["name_id"], names_of(raw["name_id"])),
        "op_type": CategoryColumn.from_ids(category, _TYPES),
        "category": CategoryColumn.from_ids(category, _CATEGORIES),
        "source": CategoryColumn.from_ids(category, _SOURCES),
        "thread_id": np.where(raw["thread_id"] == 0, MISSING, raw["thread_id"]),
        "start_ns": raw["start_ns"],
        "end_ns": raw["end_ns"],
        "duration_ns": raw["duration_ns"],
        "suspended_ns": raw["suspended_ns"],
        "count": raw["count"].astype(np.int64),
        "status": CategoryColumn.from_ids(
            (raw["flags"] & _OPEN).astype(np.int64), ("complete", "open")
        ),
        "args": _args(raw["meta"], category),
    }
    statements = np.flatnonzero(category == STATEMENT)
    if len(statements):
        found = statements_table(raw["meta"][statements])
        cell = np.full(n, MISSING, np.int32)
        cell[statements] = found.cell.codes
        columns["cell"] = CategoryColumn(cell, found.cell.categories)
        for name, values in (("line", found.line), ("end_line", found.end_line)):
            whole = np.full(n, MISSING, np.int64)
            whole[statements] = values
            columns[name] = whole
    return with_details(Table(OPS, columns), category, raw["meta"])


def _args(meta: npt.NDArray[Any], category: npt.NDArray[Any]) -> CategoryColumn:
    ids = np.where(category == RANGE, meta, 0).astype(np.int64)
    texts = {int(i): _as_json(_native.args_of(int(i))) for i in _nonzero(ids)}
    return CategoryColumn.from_ids(ids, texts)


def _nonzero(ids: npt.NDArray[np.int64]) -> Iterable[int]:
    used: list[int] = unique_inverse(ids)[0].tolist()
    return [i for i in used if i > 0]


def _as_json(args: dict[str, object] | None) -> str:
    """JSON of an op's arguments; what JSON cannot say is kept as its ``repr``, shortened."""

    def fall_back(value: object) -> object:
        item = getattr(value, "item", None)
        if item is not None and getattr(value, "ndim", 1) == 0:
            return item()
        try:
            return repr(value)[:200]
        except Exception as error:  # noqa: BLE001 - a user's __repr__ may do anything
            return f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"

    try:
        return json.dumps(args, default=fall_back, skipkeys=True)
    except ValueError:  # a cycle
        return json.dumps({key: repr(value)[:200] for key, value in (args or {}).items()})
