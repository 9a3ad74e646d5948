"""Rows of learned nodes among the ops, with their launches and times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb import _native
from epprof_nb.data.schema import MISSING
from epprof_nb.recording.onnxruntime.launch_sequences import RUN

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table
    from epprof_nb.recording.onnxruntime.event_nesting import EventNesting
    from epprof_nb.recording.onnxruntime.launch_sequences import LaunchSequence


@dataclass(slots=True)
class IdentifiedNodes:
    """Nodes of runs that had the same launches.

    Attributes
    ----------
    op_id
        int64 array, shape ``(runs, launches)``: ids of the ops of the launches.
    table
        Rows of the nodes and of the other events of the runs.
    adopted, adopted_by
        int64 arrays: rows of ops that other libraries opened inside a node, and ids of these nodes.
    """

    op_id: IntArray
    table: Table
    adopted: IntArray
    adopted_by: IntArray


def identified_nodes(
    ops: Table,
    nesting: EventNesting,
    sequence: LaunchSequence,
    *,
    run_rows: IntArray,
    launch_rows: IntArray,
    call_start: IntArray,
    call_end: IntArray,
) -> IdentifiedNodes:
    """Return the nodes of runs that had the same launches.

    Parameters
    ----------
    ops, nesting
        The ops of the recording.
    sequence
        The launches with their nodes.
    run_rows
        int64 array, one value per run: row of its op.
    launch_rows
        int64 array, shape ``(runs, launches)``: rows of the ops that were open at the launches.
    call_start, call_end
        int64 arrays, shape ``(runs, launches)``: times of the API calls; `MISSING` if unknown.
    """
    runs = ops.take(run_rows)
    shape = len(run_rows), len(sequence.ops)
    first = _native.reserve_op_ids(max(shape[0] * shape[1], 1))
    op_ids = (first + np.arange(shape[0] * shape[1], dtype=np.int64)).reshape(shape)
    node = np.concatenate([op_ids, runs["op_id"][:, None]], axis=1)[:, sequence.op]
    adopted, adopted_by = _adopted(
        launch_rows, np.where(sequence.op == RUN, MISSING, node), nesting
    )
    if len(adopted):
        # The launches stay with the op that their library opened inside the node.
        outer = nesting.outermost[launch_rows]
        inside = np.isin(outer, adopted)
        node = np.where(inside, ops["op_id"][launch_rows], node)
        known = inside & (call_start != MISSING)
        call_start = np.where(known, ops["start_ns"][outer], call_start)
        call_end = np.where(known, ops["end_ns"][outer], call_end)
    start, end = _times(sequence, call_start, call_end, runs["start_ns"], runs["end_ns"])
    return IdentifiedNodes(node, sequence.table(op_ids, runs, start, end), adopted, adopted_by)


def _adopted(
    launch_rows: IntArray, node: IntArray, nesting: EventNesting
) -> tuple[IntArray, IntArray]:
    """Return the rows of other libraries' ops whose launches belong to one node, and its id."""
    rows, nodes = launch_rows.ravel(), node.ravel()
    inside = ~nesting.is_event[rows]
    outer, nodes = nesting.outermost[rows[inside]], nodes[inside]
    order = np.argsort(outer, kind="stable")
    adopted, first = np.unique(outer[order], return_index=True)
    if not len(adopted):
        return adopted, adopted
    least, greatest = (of.reduceat(nodes[order], first) for of in (np.minimum, np.maximum))
    is_of_one = (least == greatest) & (least != MISSING)
    return adopted[is_of_one], least[is_of_one]


def _times(
    sequence: LaunchSequence, call_start: IntArray, call_end: IntArray, run_start: IntArray,
    run_end: IntArray,
) -> tuple[IntArray, IntArray]:  # fmt: skip
    """Return starts and ends of the ops of some runs, shape ``(runs, ops)``.

    A node lasts from its first to its last API call. A node without launches has length 0, at the
    end of the previous node. Events around the nodes have the times of the run.
    """
    shape = len(run_start), len(sequence.ops) + 1  # the last one collects the run's own launches
    start = np.full(shape, np.iinfo(np.int64).max)
    end = np.full(shape, np.iinfo(np.int64).min)
    run = np.arange(shape[0])[:, None]
    at = np.broadcast_to(sequence.op, call_start.shape)
    known = np.where(call_start == MISSING, RUN, at)
    np.minimum.at(start, (run, known), call_start)
    np.maximum.at(end, (run, known), call_end)
    start, end = start[:, :-1], end[:, :-1]
    start = np.minimum(np.maximum(start, run_start[:, None]), run_end[:, None])
    end = np.minimum(end, run_end[:, None])
    # The end of the latest node so far, or the start of the run.
    latest = np.maximum.accumulate(np.maximum(end, run_start[:, None]), axis=1)
    empty = end < start
    start, end = np.where(empty, latest, start), np.where(empty, latest, end)
    around = ~sequence.ops["is_node"]
    start[:, around], end[:, around] = run_start[:, None], run_end[:, None]
    return start, end
