"""Correlation of the tables of a trace: API calls of activities, and ops of API calls."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.ids import IdIndex
from epprof_nb.data.graph_table import graph_table
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MISSING
from epprof_nb.files.readers.finish_tables import with_stacks

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table


def correlated(tables: dict[str, Table], source: str, notes: list[str]) -> dict[str, Table]:
    """Join activities to API calls by correlation id, and calls to ops by the op stack.

    Parameters
    ----------
    tables
        The tables of a trace; ``ops``, ``activities`` and ``api_calls`` are among them.
    source
        Source of the ops.
    notes
        Notes of the trace; notes on correlation are appended.

    Returns
    -------
    tables
        The tables with the columns derived from the join, and ``graphs``.
    """
    calls, activities = tables["api_calls"], tables["activities"]
    ops, stacks = with_stacks(tables["ops"], source)
    op_ids = np.append(ops["op_id"], MISSING)
    call_op = op_ids[stacks.open_at(calls["thread_id"], calls["start_ns"])]
    known = np.flatnonzero(calls["correlation_id"] != MISSING)
    # A runtime call has the correlation id of the driver call in it, on the same thread. If other
    # calls share an id, such as after a restart of the ids, the work is ambiguous.
    ids, first = np.unique(calls["correlation_id"][known], return_index=True)
    of_id = np.searchsorted(ids, calls["correlation_id"][known])
    outer = known[first][of_id]
    is_other = calls["thread_id"][known] != calls["thread_id"][outer]
    is_later = calls["start_ns"][known] > calls["end_ns"][outer]
    ambiguous = np.unique(of_id[is_other | is_later])
    is_unique = np.ones(len(ids), np.bool_)
    is_unique[ambiguous] = False
    index = IdIndex(ids[is_unique])
    row = np.append(known[first[is_unique]], MISSING)[index.rows(activities["correlation_id"])]
    row[activities["correlation_id"] == MISSING] = MISSING
    op_id = np.where(row >= 0, np.append(call_op, MISSING)[row], MISSING)
    thread = np.where(row >= 0, np.append(calls["thread_id"], MISSING)[row], MISSING)
    lost = activities["correlation_id"][np.isin(activities["correlation_id"], ids[ambiguous])]
    if len(lost):
        notes.append(
            f"{len(lost):,} activities have no op: several calls that are not nested have "
            f"each of their {len(np.unique(lost)):,} correlation ids."
        )
    codes = np.where(op_id == MISSING, 1, 0).astype(np.int32)
    activities = activities.replace(
        op_id=op_id, thread_id=thread, attribution=CategoryColumn(codes, ("stack", "none"))
    )
    _note_graphs(activities, calls, row, notes)
    return {
        **tables, "ops": ops, "activities": activities, "api_calls": calls.replace(op_id=call_op),
        "graphs": graph_table(activities, ops, calls["end_ns"] - calls["start_ns"], row, []),
    }  # fmt: skip


def _note_graphs(activities: Table, calls: Table, row: IntArray, notes: list[str]) -> None:
    names = calls.names("name")
    launches = [bool(re.search("GraphLaunch", name)) for name in names.categories]
    is_launch = np.array([*launches, False], np.bool_)[np.append(names.codes, MISSING)]
    in_graph = (activities["graph_id"] != MISSING) | is_launch[row] & (row >= 0)
    if in_graph.any():
        replays = len(np.unique(row[in_graph & (row >= 0)]))
        notes.append(
            f"{int(in_graph.sum()):,} activities belong to {replays:,} launches of CUDA graphs and "
            "to the ops that launched these. The trace does not contain the ops that captured them."
        )
