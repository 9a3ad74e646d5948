"""ONNX Runtime's events as op rows: what the observer noted of each, and the run it belongs to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.core.native_columns import names_of, numbers
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MISSING
from epprof_nb.recorders.onnxruntime import sessions as ort_runs
from epprof_nb.recorders.onnxruntime import unprofiled_runs as ort_pace

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.data.table import Table

    I64 = npt.NDArray[np.int64]

# Categories: native/threads.h.
_EVENT, _RUN, _NODE = 3, 4, 5
ORT_CATEGORIES = ("session", "session", "node")
"""Category of the op rows, by the native core's numbers from 3."""

_COLUMNS = (
    ("session", np.uint32), ("node_index", np.int32), ("op_type", np.uint32),
    ("provider", np.uint32), ("input_shapes", np.uint32), ("output_shapes", np.uint32),
)  # fmt: skip


def with_details(ops: Table, category: I64, meta: npt.NDArray[Any]) -> Table:
    """Fill in what only ONNX Runtime's events have.

    Parameters
    ----------
    ops
        The ops of a slice.
    category, meta
        The native core's columns of the same rows; `meta` is the id of an event's details.

    Returns
    -------
    ops
        With operator, provider, node index, shapes, session and run of the events.
    """
    ended = ~ops.names("status").equals("open")
    rows = np.flatnonzero((category >= _EVENT) & ended)
    if not len(rows):
        return ops
    raw = _native.ort_details(0)
    details = {name: numbers(raw, name, dtype).astype(np.int64) for name, dtype in _COLUMNS}
    at = meta[rows].astype(np.int64)
    session = np.full(len(ops), MISSING, np.int64)
    session[rows] = details["session"][at]
    node_index = np.full(len(ops), MISSING, np.int64)
    node_index[rows] = details["node_index"][at]
    nodes = rows[category[rows] == _NODE]
    of_node = meta[nodes].astype(np.int64)
    parent = _parents(ops, category, session)
    return ops.replace(
        parent_op_id=parent,
        session=session,
        node_index=node_index,
        op_type=_over(ops.names("op_type"), nodes, details["op_type"][of_node]),
        provider=_names(len(ops), nodes, details["provider"][of_node]),
        input_shapes=_names(len(ops), nodes, details["input_shapes"][of_node], shapes_text),
        output_shapes=_names(len(ops), nodes, details["output_shapes"][of_node], shapes_text),
        run_id=_runs(ops["op_id"], parent, category == _RUN),
        args=_with_lengths(ops, np.flatnonzero(category == _RUN)),
    )


def shapes_text(text: str) -> str:
    """``float[1,4], int64[2]`` from ONNX Runtime's ``[{"float":[1,4]},{"int64":[2]}]``."""
    try:
        return ", ".join(
            f"{kind}[{','.join(map(str, shape))}]"
            for part in json.loads(text)
            for kind, shape in part.items()
        )
    except (ValueError, AttributeError, TypeError):
        return text  # a later release's way of writing: shown as it is


def _with_lengths(ops: Table, runs: I64) -> CategoryColumn:
    """The ops' args, those of runs being how long their calls took, profiled and not."""
    args = ops.names("args")
    call_ns, unprofiled_ns = ort_pace.lengths_of(ops["thread_id"][runs], ops["start_ns"][runs])
    known = call_ns != MISSING
    texts = [
        json.dumps({"call_ns": call} | ({"unprofiled_ns": plain} if plain != MISSING else {}))
        for call, plain in zip(call_ns[known].tolist(), unprofiled_ns[known].tolist(), strict=True)
    ]
    part = CategoryColumn.of(texts)
    codes = args.codes.copy()
    codes[runs[known]] = part.codes + len(args.categories)
    return CategoryColumn(codes, (*args.categories, *part.categories))


def _names(length: int, rows: I64, name_ids: I64, write: Any = str) -> CategoryColumn:  # noqa: ANN401
    texts = {i: write(text) for i, text in names_of(name_ids).items() if text}
    part = CategoryColumn.from_ids(name_ids, texts)
    codes = np.full(length, MISSING, np.int32)
    codes[rows] = part.codes
    return CategoryColumn(codes, part.categories)


def _over(names: CategoryColumn, rows: I64, name_ids: I64) -> CategoryColumn:
    """`names`, with those at `rows` exchanged."""
    part = _names(len(names), rows, name_ids)
    index = {name: i for i, name in enumerate(names.categories)}
    place = np.array(
        [index.setdefault(name, len(index)) for name in part.categories] + [MISSING], np.int32
    )
    return CategoryColumn(
        np.where(part.codes >= 0, place[part.codes], names.codes).astype(np.int32), tuple(index)
    )


def _parents(ops: Table, category: I64, session: I64) -> I64:
    """Parents, also of events on pool threads of a session that is profiled as a whole.

    Such an event has nothing above it on its thread. It belongs to the one run of its session
    that was going on. Where it may have been one of two, or a run that was not recorded from its
    start, its parent stays missing.
    """
    parent = ops["parent_op_id"]
    lone = np.flatnonzero((category == _NODE) & (parent == MISSING))
    if not len(lone):
        return parent
    parent = parent.copy()
    start, end = ops["start_ns"], ops["end_ns"]
    # An event that has not ended does not say whose it is: it may be a run of any session.
    unended = ops.names("status").equals("open") & (category >= _EVENT)
    for number in np.setdiff1d(session[lone], ort_runs.uncertain_sessions()):
        mine = lone[session[lone] == number]
        runs = np.flatnonzero(((category == _RUN) & (session == number)) | unended)
        if not len(runs):
            continue
        runs = runs[np.argsort(start[runs], kind="stable")]
        begun = np.searchsorted(start[runs], start[mine], side="right")
        going = begun - np.searchsorted(np.sort(end[runs]), start[mine], side="right")
        newest = runs[np.maximum(begun - 1, 0)]
        sure = (going == 1) & (end[newest] >= end[mine]) & (session[newest] == number)
        parent[mine[sure]] = ops["op_id"][newest[sure]]
    return parent


def _runs(op_id: I64, parent: I64, is_run: npt.NDArray[np.bool_]) -> I64:
    """For each op the number of the run it is in, counted in order of start; else missing."""
    number = np.full(len(op_id) + 1, MISSING, np.int64)
    number[:-1][is_run] = np.arange(int(is_run.sum()))
    hop = IdIndex(op_id).rows(parent)
    hop = np.append(np.where(is_run, np.arange(len(op_id)), hop), MISSING)
    for _ in range(64):
        further = hop[hop]  # a missing row, -1, leads to the last element: missing again
        if np.array_equal(further, hop):
            break
        hop = further
    result: I64 = np.where(hop >= 0, number[hop], MISSING)[:-1]
    return result
