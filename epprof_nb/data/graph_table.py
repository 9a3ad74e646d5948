"""The table of the graphs that a recording captured or replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.arrays.ids import IdIndex, contains
from epprof_nb.arrays.intervals import EARLIEST, LATEST, covered_by_group
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import GRAPHS, MISSING
from epprof_nb.data.table import Table, concat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.arrays.types import IntArray


def graph_table(
    activities: Table, ops: Table, call_ns: IntArray, call: IntArray, known: Sequence[Table]
) -> Table:
    """Return one row per graph that was replayed, or whose capture a recorder reported.

    Parameters
    ----------
    activities
        The activities with their ops, sorted by start.
    ops
        The ops.
    call_ns
        Duration of each API call.
    call
        Row of the API call of each activity; -1 if unknown.
    known
        What recorders know about graphs: tables of schema `epprof_nb.data.schema.GRAPHS`.
    """
    replayed = _replayed(activities, call_ns, call)
    if not known:
        return _with_capture(replayed, ops)
    facts = concat(list(known))
    # A recorder reports everything that it knows each time.
    facts = facts.take(np.unique(facts["graph_id"], return_index=True)[1])
    captured = _only_captured(facts, replayed, ops)
    table = concat([_with_facts(replayed, facts), captured])
    return _with_capture(table.take(np.argsort(table["graph_id"], kind="stable")), ops)


def _replayed(activities: Table, call_ns: IntArray, call: IntArray) -> Table:
    # Leave out the replays as a whole, which some recorders also report.
    rows = np.flatnonzero(
        (activities["graph_id"] != MISSING) & ~activities.names("kind").equals("graph_launch")
    )
    if not len(rows):
        return Table(GRAPHS)
    graph_id, graph = np.unique(activities["graph_id"][rows], return_inverse=True)
    count = len(graph_id)
    replay_of_row, replay_graph, first = _replays(graph, activities["correlation_id"][rows])
    replays = np.bincount(replay_graph, minlength=count)
    device_ns = _sums(graph, activities["duration_ns"][rows], count)
    launches = call[rows][first]
    is_called = launches >= 0
    calls = _sums(replay_graph, is_called.astype(np.int64), count)
    launch_ns = _sums(replay_graph, np.where(is_called, np.append(call_ns, 0)[launches], 0), count)
    gap_ns = _gaps(
        replay_of_row, activities["start_ns"][rows], activities["end_ns"][rows], len(replay_graph)
    )
    return Table(
        GRAPHS,
        {
            "graph_id": graph_id,
            "capture_op_id": _most_frequent(graph, activities["capture_op_id"][rows], count),
            "nodes": _distinct(graph, activities["graph_node_id"][rows], count),
            "replays": replays,
            "device_ns": device_ns,
            "device_ns_per_replay": device_ns // replays,
            "launch_ns": np.where(calls > 0, launch_ns // np.maximum(calls, 1), MISSING),
            "gap_ns": _sums(replay_graph, gap_ns, count) // replays,
        },
    )


def _only_captured(facts: Table, replayed: Table, ops: Table) -> Table:
    """Return the graphs that were captured in the recording, and not replayed in it."""
    in_recording = ops["op_id"][~ops.names("status").equals("earlier")]
    captured = facts.take(
        contains(in_recording, facts["capture_op_id"])
        & ~contains(replayed["graph_id"], facts["graph_id"])
    )
    none = np.zeros(len(captured), np.int64)
    return captured.replace(replays=none, device_ns=none)


def _replays(graph: IntArray, correlation: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Number the replays; return the number of each row, and the graph and first row of each."""
    keys = np.stack([graph, correlation])
    _, first, replay = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    return replay.reshape(-1), graph[first], first


def _sums(group: IntArray, values: IntArray, count: int) -> IntArray:
    total = np.zeros(count, np.int64)
    np.add.at(total, group, values)
    return total


def _distinct(group: IntArray, values: IntArray, count: int) -> IntArray:
    """Return the number of different values in each group, without missing ones."""
    present = values != MISSING
    pairs = np.unique(np.stack([group[present], values[present]]), axis=1)
    return np.bincount(pairs[0], minlength=count).astype(np.int64)


def _most_frequent(group: IntArray, values: IntArray, count: int) -> IntArray:
    result = np.full(count, MISSING, np.int64)
    present = values != MISSING
    if present.any():
        pairs, times = np.unique(
            np.stack([group[present], values[present]]), axis=1, return_counts=True
        )
        order = np.argsort(times, kind="stable")
        result[pairs[0][order]] = pairs[1][order]
    return result


def _gaps(replay: IntArray, start: IntArray, end: IntArray, count: int) -> IntArray:
    """Return the time between first start and last end of each replay in which nothing ran."""
    first, last = np.full(count, LATEST), np.full(count, EARLIEST)
    np.minimum.at(first, replay, start)
    np.maximum.at(last, replay, end)
    gaps: IntArray = last - first - covered_by_group(replay, start, end, count)
    return gaps


def _with_facts(table: Table, facts: Table) -> Table:
    """Fill in the facts from the recorders."""
    at = IdIndex(facts["graph_id"]).rows(table["graph_id"])
    is_known = at >= 0
    if not is_known.any():
        return table
    captured_in = facts.names("captured_in")
    return table.replace(
        captured_in=CategoryColumn(
            np.where(is_known, captured_in.codes[at], MISSING).astype(np.int32),
            captured_in.categories,
        ),
        **{
            name: np.where(is_known, facts[name][at], table[name])
            for name in ("session", "gpu_graph_id", "capture_op_id", "nodes")
        },
    )


def _with_capture(table: Table, ops: Table) -> Table:
    """Name the line or range of each capture, where the recorder did not."""
    is_place = ops.names("source").equals("cell") | ops.names("source").equals("range")
    names, rows_of = ops.names("name"), IdIndex(ops["op_id"])
    parent = rows_of.rows(ops["parent_op_id"])
    places = table.names("captured_in").to_list()
    for i, row in enumerate(rows_of.rows(table["capture_op_id"]).tolist()):
        at = row
        while at >= 0 and not is_place[at]:
            at = int(parent[at])
        if places[i] is None and at >= 0 and names.codes[at] >= 0:
            places[i] = names.categories[names.codes[at]]
    # A dropped op has no row to refer to.
    exists = rows_of.rows(table["capture_op_id"]) >= 0
    return table.replace(
        captured_in=CategoryColumn.of(places),
        capture_op_id=np.where(exists, table["capture_op_id"], MISSING),
    )
