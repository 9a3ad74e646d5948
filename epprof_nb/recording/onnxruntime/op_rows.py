"""Op rows of ONNX Runtime's events: the observer's columns, and the run of each event."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb import _native
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.ort_arguments import NODE_SIZES
from epprof_nb.data.schema import MISSING
from epprof_nb.recording.native_columns import names_of, numbers
from epprof_nb.recording.onnxruntime import sessions, unprofiled_runs

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table


# Categories of the events, as in native/core/records.h.
_EVENT, _RUN, _NODE = 3, 4, 5
_COLUMNS = (
    ("session", np.uint32), ("node_index", np.int32), ("op_type", np.uint32),
    ("provider", np.uint32), ("input_shapes", np.uint32), ("output_shapes", np.uint32),
    *((name, np.int64) for name in NODE_SIZES),
)  # fmt: skip


def add_ort_columns(ops: Table, category: IntArray, meta: npt.NDArray[Any]) -> Table:
    """Fill in the columns that only ONNX Runtime's events have.

    Parameters
    ----------
    ops
        The ops of a recording.
    category, meta
        Native columns of the same rows; `meta` is the id of an event's details.

    Returns
    -------
    ops
        The ops with operator, provider, node index, shapes, session and run of the events.
    """
    ended = ~ops.names("status").equals("open")
    is_event = (category >= _EVENT) & (category <= _NODE)
    rows = np.flatnonzero(is_event & ended)
    if not len(rows):
        return ops
    raw = _native.ort_event_details(0)
    details = {name: numbers(raw, name, dtype).astype(np.int64) for name, dtype in _COLUMNS}
    at = meta[rows].astype(np.int64)
    session = np.full(len(ops), MISSING, np.int64)
    session[rows] = details["session"][at]
    node_index = np.full(len(ops), MISSING, np.int64)
    node_index[rows] = details["node_index"][at]
    nodes = rows[category[rows] == _NODE]
    of_node = meta[nodes].astype(np.int64)
    sizes = {}
    for name in NODE_SIZES if len(nodes) else ():
        sizes[name] = np.full(len(ops), MISSING, np.int64)
        sizes[name][nodes] = details[name][of_node]
    parent = _parents(ops, category, is_event, session)
    return ops.replace(
        parent_op_id=parent,
        session=session,
        node_index=node_index,
        op_type=ops.names("op_type").replaced(nodes, _encoded(details["op_type"][of_node])),
        provider=_names(len(ops), nodes, details["provider"][of_node]),
        input_shapes=_names(len(ops), nodes, details["input_shapes"][of_node], shapes_text),
        output_shapes=_names(len(ops), nodes, details["output_shapes"][of_node], shapes_text),
        run_id=_runs(ops["op_id"], parent, category == _RUN),
        args=_with_call_durations(ops, np.flatnonzero(category == _RUN)),
        **sizes,
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
        return text  # an unknown format, shown unchanged


def _with_call_durations(ops: Table, runs: IntArray) -> CategoryColumn:
    """Return the args of the ops. Runs get their call durations and number of shapes."""
    args = ops.names("args")
    times = unprofiled_runs.call_durations(ops["thread_id"][runs], ops["start_ns"][runs])
    known = times[0] != MISSING
    names = ("call_ns", "unprofiled_ns", "shapes")
    texts = [
        json.dumps({name: of for name, of in zip(names, values, strict=True) if of != MISSING})
        for values in zip(*(column[known].tolist() for column in times), strict=True)
    ]
    part = CategoryColumn.of(texts)
    codes = args.codes.copy()
    codes[runs[known]] = part.codes + len(args.categories)
    return CategoryColumn(codes, (*args.categories, *part.categories))


def _names(length: int, rows: IntArray, name_ids: IntArray, convert: Any = str) -> CategoryColumn:  # noqa: ANN401
    missing = CategoryColumn(np.full(length, MISSING, np.int32), ())
    return missing.replaced(rows, _encoded(name_ids, convert))


def _encoded(name_ids: IntArray, convert: Any = str) -> CategoryColumn:  # noqa: ANN401
    texts = {i: convert(text) for i, text in names_of(name_ids).items() if text}
    return CategoryColumn.from_ids(name_ids, texts)


def _parents(
    ops: Table, category: IntArray, is_event: npt.NDArray[np.bool_], session: IntArray
) -> IntArray:
    """Return the parents of the ops, also for pool threads of a session profiled as a whole.

    An event on a pool thread has no parent on that thread. It belongs to the only run of its
    session in progress. The parent stays missing if several runs were in progress, or a run that
    was not recorded from its start.
    """
    parent = ops["parent_op_id"]
    lone = np.flatnonzero((category == _NODE) & (parent == MISSING))
    if not len(lone):
        return parent
    parent = parent.copy()
    start, end = ops["start_ns"], ops["end_ns"]
    # The session of an open event is unknown. It may be a run of any session.
    open_event = ops.names("status").equals("open") & is_event
    for number in np.setdiff1d(session[lone], sessions.uncertain_sessions()):
        nodes = lone[session[lone] == number]
        runs = np.flatnonzero(((category == _RUN) & (session == number)) | open_event)
        if not len(runs):
            continue
        runs = runs[np.argsort(start[runs], kind="stable")]
        started = np.searchsorted(start[runs], start[nodes], side="right")
        active = started - np.searchsorted(np.sort(end[runs]), start[nodes], side="right")
        newest = runs[np.maximum(started - 1, 0)]
        certain = (active == 1) & (end[newest] >= end[nodes]) & (session[newest] == number)
        parent[nodes[certain]] = ops["op_id"][newest[certain]]
    return parent


def _runs(op_id: IntArray, parent: IntArray, is_run: npt.NDArray[np.bool_]) -> IntArray:
    """Number of the run that contains each op, in order of start; `MISSING` outside of runs."""
    number = np.full(len(op_id) + 1, MISSING, np.int64)
    number[:-1][is_run] = np.arange(int(is_run.sum()))
    ancestor = IdIndex(op_id).rows(parent)
    ancestor = np.append(np.where(is_run, np.arange(len(op_id)), ancestor), MISSING)
    for _ in range(64):
        doubled = ancestor[ancestor]  # row -1 is the last element, which is -1 again
        if np.array_equal(doubled, ancestor):
            break
        ancestor = doubled
    result: IntArray = np.where(ancestor >= 0, number[ancestor], MISSING)[:-1]
    return result
