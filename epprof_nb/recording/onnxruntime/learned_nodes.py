"""Nodes of runs that were not recorded node by node, identified by the launches of the run.

Launch sequences are learned from the runs of a recording whose nodes are known. A run without node
events ran the same nodes if all its launches are the same. If a kernel, grid, block or size
differs, the launches are attributed to the run only. A sequence that other nodes could also cause
is not learned. If the sizes of inputs vary from run to run, only kinds and names of the launches
are compared, and runs of two sizes must have had the same nodes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.onnx.recorded_runs import LEARNED, MISMATCHED, NOT_RECORDED, RECORDED
from epprof_nb.arrays.ids import IdIndex
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import DEVICE_KINDS, MISSING
from epprof_nb.data.table import concat
from epprof_nb.recording.onnxruntime import run_log
from epprof_nb.recording.onnxruntime.event_nesting import EventNesting
from epprof_nb.recording.onnxruntime.launch_sequences import (
    packed_launches,
    sequence_of,
    without_launch_sizes,
)
from epprof_nb.recording.onnxruntime.learned_node_rows import identified_nodes
from epprof_nb.recording.recorder import IdentifiedOps

if TYPE_CHECKING:
    from collections.abc import Iterable

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table
    from epprof_nb.recording.onnxruntime.choice_of_runs import RunHistory
    from epprof_nb.recording.onnxruntime.launch_sequences import LaunchSequence
    from epprof_nb.recording.onnxruntime.run_log import LoggedRun
    from epprof_nb.recording.recorder import TimesOfCalls


_Key = tuple[int, bytes]
"""The `RunHistory` of a run, by its id, and the packed launches of the run."""


@dataclass(slots=True)
class _Run:
    """A run with the rows of its op, of the events below it, and of its launches in order."""

    logged: LoggedRun
    row: int
    op_rows: IntArray
    launches: IntArray
    launch_rows: IntArray
    """Rows of the ops of the launches."""
    packed: bytes
    is_exact: bool
    """All launches have names and belong to the run's thread, and none replays a CUDA graph."""

    @property
    def key(self) -> _Key:
        """Key of the run's sequence among all sessions and input shapes."""
        return id(self.logged.history), self.packed


def identify_nodes(
    ops: Table, activities: Table, call_start: TimesOfCalls, call_end: TimesOfCalls, stopped_ns: int
) -> IdentifiedOps | None:
    """Learn the launch sequences of recorded runs, and identify the nodes of the others.

    See `Recorder.identify_ops`. None if all runs were recorded in the mode ``"every"``.
    """
    logged = run_log.logged_runs()
    if not logged:
        return None
    nesting = EventNesting(ops)
    runs = _runs(logged, ops, nesting, activities)
    if not runs:
        return None
    states: dict[int, str | None] = {run.row: None for run in runs}
    runs = [run for run in runs if ops["end_ns"][run.row] <= stopped_ns]
    is_learned = np.zeros(len(activities), np.bool_)
    op_id = activities["op_id"].copy()
    # Histories keep only few sequences, but all sequences of this recording are needed.
    sequences = _known_sequences(runs)
    for run in runs:
        if run.logged.recorded:
            _learn(run, ops, nesting, sequences)
    added = []
    same: dict[_Key, list[_Run]] = {}
    for run in runs:
        states[run.row] = _state(run, sequences)
        if states[run.row] == LEARNED:
            same.setdefault(run.key, []).append(run)
    parent_op_id = ops["parent_op_id"].copy()
    for key, group in same.items():
        rows = np.array([run.launches for run in group])
        nodes = identified_nodes(
            ops,
            nesting,
            sequences[key],
            run_rows=np.array([run.row for run in group], np.int64),
            launch_rows=np.array([run.launch_rows for run in group]),
            call_start=call_start[rows],
            call_end=call_end[rows],
        )
        op_id[rows] = nodes.op_id
        is_learned[rows] = True
        parent_op_id[nodes.adopted] = nodes.adopted_by
        added.append(nodes.table)
    _add_mismatched(run for run in runs if states[run.row] == MISMATCHED)
    ops = ops.replace(args=_with_states(ops, states), parent_op_id=parent_op_id)
    if added:
        ops = concat([ops, *added]).in_start_order()
    return IdentifiedOps(ops, op_id, is_learned)


def _runs(
    logged: dict[int, LoggedRun], ops: Table, nesting: EventNesting, activities: Table
) -> list[_Run]:
    """Return the logged runs among the ops, with their launches in the order of the calls."""
    ids = ops["op_id"]
    run_rows = IdIndex(ids).rows(np.array(sorted(logged), np.int64))
    run_rows = run_rows[run_rows >= 0]
    # An op that was open at the end of the profile may have unrecorded launches.
    run_rows = run_rows[~ops.names("status").equals("open")[run_rows]]
    if not len(run_rows):
        return []
    number = np.full(int(ops["run_id"].max()) + 2, MISSING, np.int64)
    number[ops["run_id"][run_rows]] = np.arange(len(run_rows))
    run_of_op = number[ops["run_id"]]
    of_op = np.flatnonzero((run_of_op >= 0) & nesting.is_event)
    of_op = of_op[ids[of_op] != ids[run_rows][run_of_op[of_op]]]
    of_op = of_op[np.argsort(run_of_op[of_op], kind="stable")]

    row = IdIndex(ids).rows(activities["op_id"])
    run_of_activity = np.append(run_of_op, MISSING)[row]
    kind = activities.names("kind")
    is_launch = np.logical_or.reduce([kind.equals(k) for k in DEVICE_KINDS])
    launches = np.flatnonzero((run_of_activity >= 0) & is_launch)
    run_of_launch = run_of_activity[launches]
    order = np.lexsort(
        (activities["start_ns"][launches], activities["correlation_id"][launches], run_of_launch)
    )
    launches, run_of_launch = launches[order], run_of_launch[order]
    packed, has_name = packed_launches(activities, launches)
    is_exact = has_name & (activities["graph_node_id"][launches] == MISSING)
    is_exact &= activities["thread_id"][launches] == ops["thread_id"][run_rows[run_of_launch]]
    steps = np.arange(len(run_rows) + 1)
    first_op = np.searchsorted(run_of_op[of_op], steps)
    first_launch = np.searchsorted(run_of_launch, steps)
    result = []
    for i, at in enumerate(run_rows.tolist()):
        of_run = slice(first_launch[i], first_launch[i + 1])
        run = logged[int(ids[at])]
        compared = packed[of_run]
        if run.history is not None and run.history.any_size:
            compared = without_launch_sizes(compared)
        result.append(
            _Run(
                run,
                at,
                of_op[first_op[i] : first_op[i + 1]],
                launches[of_run],
                row[launches[of_run]],
                compared.tobytes(),
                bool(is_exact[of_run].all()),
            )
        )
    return result


def _known_sequences(runs: list[_Run]) -> dict[_Key, LaunchSequence]:
    """Return the sequences that the histories of some runs keep."""
    histories = {id(run.logged.history): run.logged.history for run in runs}
    return {
        (number, launches): sequence
        for number, history in histories.items()
        if history is not None
        for launches, sequence in history.sequences.items()
        if sequence is not None
    }


def _learn(
    run: _Run, ops: Table, nesting: EventNesting, sequences: dict[_Key, LaunchSequence]
) -> None:
    history = run.logged.history
    if history is None or run.logged.failed or not run.is_exact or not len(run.launches):
        return
    if has_subgraphs(ops, nesting, run.op_rows):
        history.may_learn = False
    if not history.may_learn:
        return
    run_op = int(ops["op_id"][run.row])
    launch_events = ops["op_id"][nesting.event[run.launch_rows]]
    sequence = sequence_of(ops, run.op_rows, nesting.parent[run.op_rows], run_op, launch_events)
    if sequence is None:
        return
    if history.any_size:
        sequence = sequence.of_any_size(run.logged.launch_hash)
    history.check_nodes(run.packed, sequence)
    known = sequences.get(run.key, sequence)
    common = known.common_with(sequence)
    if common is None:
        history.may_learn = False
    sequences[run.key] = (common or known).also_of(sequence.size)
    history.learn(run.packed, sequence)


def _add_mismatched(runs: Iterable[_Run]) -> None:
    """Report unidentified runs to their histories."""
    by_history: dict[int, tuple[RunHistory, list[LoggedRun]]] = {}
    for run in runs:
        if (history := run.logged.history) is not None:
            by_history.setdefault(id(history), (history, []))[1].append(run.logged)
    for history, of_history in by_history.values():
        history.add_mismatched(of_history)


def has_subgraphs(ops: Table, nesting: EventNesting, rows: IntArray) -> bool:
    """Whether one of these ops is an event of ONNX Runtime inside a node."""
    rows = rows[nesting.is_event[rows]]
    is_node = ops.names("category").equals("node")[rows]
    inside = IdIndex(ops["op_id"][rows[is_node]]).rows(nesting.parent[rows])
    return bool((inside >= 0).any())


def _state(run: _Run, sequences: dict[_Key, LaunchSequence]) -> str:
    """Return how the nodes of a run are known; it becomes ``args["nodes"]`` of its op."""
    if run.logged.recorded:
        return RECORDED
    history = run.logged.history
    if history is None or not len(run.launches):
        return NOT_RECORDED
    if not history.may_learn or not run.is_exact or run.logged.failed:
        return MISMATCHED
    sequence = sequences.get(run.key)
    is_known = sequence is not None and sequence.is_known_for(run.logged.launch_hash)
    return LEARNED if is_known else MISMATCHED


def _with_states(ops: Table, states: dict[int, str | None]) -> CategoryColumn:
    """Return the args of the ops, with ``nodes`` set for some runs."""
    args = ops.names("args")
    rows = list(states)
    texts = []
    for row in rows:
        code = args.codes[row]
        of_run = json.loads(args.categories[code]) if code != MISSING else {}
        texts.append(json.dumps(of_run | {"nodes": states[row]}))
    part = CategoryColumn.of(texts)
    codes = args.codes.copy()
    codes[rows] = part.codes + len(args.categories)
    return CategoryColumn(codes, (*args.categories, *part.categories))
