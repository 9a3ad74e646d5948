"""Correlation: convert the raw logs of a recording to tables in which activities have their op.

The API call of an activity is found by correlation id. The op of the call was open on the launching
thread. Nothing is matched by name or time, except the work that CUPTI reports without a correlation
id; see `epprof_nb.recording.session.conditional_bodies`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.ids import IdIndex, contains, mask_as_slice, values_at
from epprof_nb.data.graph_table import graph_table
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import ACTIVITIES, API_CALLS, MEMORY, MISSING, OVERHEAD
from epprof_nb.data.table import Table, concat
from epprof_nb.recording.memory.block_tables import pool_tables
from epprof_nb.recording.python_kernels import replayed_nodes
from epprof_nb.recording.recorder import TimesOfCalls
from epprof_nb.recording.samples.host_samples import sample_table
from epprof_nb.recording.session import (
    conditional_bodies,
    garbage_collections,
)
from epprof_nb.recording.session.cell_thread_wait import is_awaited_by_cell
from epprof_nb.recording.session.launch_log import NO_OP, LaunchLog
from epprof_nb.recording.session.launch_stacks import LaunchStacks
from epprof_nb.recording.session.ops_table import ops_table
from epprof_nb.recording.session.recording import Recording, column
from epprof_nb.recording.torch.collectives_from_cpp import with_flight_recorder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.python_stacks import PythonStacks
    from epprof_nb.recording.memory.arena_blocks import ArenaMemory
    from epprof_nb.recording.memory.host_blocks import HostMemory
    from epprof_nb.recording.memory.torch_history import TorchMemory
    from epprof_nb.recording.recorder import IdentifiedOps, RecordedGraphs, RecorderOutput


@dataclass(slots=True)
class CorrelatedTables:
    """Tables of a recording with absolute times, and counts of dropped rows."""

    tables: dict[str, Table]
    ops_dropped: int
    statements_unmarked: int
    """Statements in recursive calls that were not recorded."""
    calls_dropped: int
    activities_dropped: int
    stacks: PythonStacks | None
    """The Python stacks that the tables refer to; None if none were recorded."""
    unresolved_ops: int
    """Activities whose op was open at the launch but was dropped from the full op log."""


def correlate(recording: Recording) -> CorrelatedTables:
    """Correlate the activities, API calls and ops of a recording."""
    ops, ops_dropped = ops_table(recording.batches, recording.recorders, recording.stopped_ns)
    ops = garbage_collections.without_own(ops, recording.opened_ns, recording.stopped_ns)
    if "torch" in recording.options.frameworks:
        ops = with_flight_recorder(ops, recording.opened_ns, recording.stopped_ns)
    outputs = [output for batch in recording.batches for output in batch.outputs]
    graphs = [output.graphs for output in outputs]
    launches = LaunchLog.of(recording.batches, outputs, ops)
    activities = conditional_bodies.with_launches(_activities_of(recording, outputs, launches))
    by_correlation = IdIndex(launches.correlation)
    call = by_correlation.rows(activities["correlation_id"])
    of_calls = _ops_of_calls(launches, ops)
    op = values_at(of_calls.op, call)
    capture_op: IntArray = np.broadcast_to(np.int64(MISSING), len(activities))
    in_graph = activities["graph_node_id"] != MISSING
    if in_graph.any():
        capture_op = capture_op.copy()
        replays = [replay for known in graphs for replay in known.replays]
        replayed = replayed_nodes.identify(activities, op, replays)
        if replayed is not None:
            recording.graph_nodes.add(replayed.nodes)
            graphs.append(replayed)
        capture_op[in_graph] = recording.graph_nodes.capture_op(
            activities["graph_node_id"][in_graph]
        )
        _remember_ops(recording, ops, graphs)
        ops, capture_op = _with_earlier_ops(recording, ops, capture_op)
    elif any(known.nodes for known in graphs):
        _remember_ops(recording, ops, graphs)
    activities = activities.replace(
        op_id=op,
        capture_op_id=capture_op,
        attribution=CategoryColumn(
            np.append(of_calls.attribution, _NONE)[call], ("stack", "cell", "none", "learned")
        ),
        thread_id=values_at(launches.thread, call),
    )
    unresolved_ops = int(np.append(of_calls.is_unresolved, False)[call].sum())
    times = TimesOfCalls(launches.start, call), TimesOfCalls(launches.end, call)
    for recorder in recording.recorders:
        found = recorder.identify_ops(ops, activities, *times, recording.stopped_ns)
        if found is not None:
            ops, activities = found.ops, _with_identified_ops(found, activities, launches)
            of_calls = _ops_of_calls(launches, ops)
    samples = sample_table(
        [batch.samples for batch in recording.batches if recording.options.samples],
        recording.opened_ns,
        recording.stopped_ns,
        (launches.thread, launches.start, launches.end),
    )
    stacks = LaunchStacks(recording, launches, samples["stack_id"])
    activities = activities.replace(**stacks.of_activities(activities, call, ops))
    memory = concat([output.memory for output in outputs]) if outputs else Table(MEMORY)
    memory_call = by_correlation.rows(memory["correlation_id"])
    memory = memory.replace(op_id=values_at(of_calls.op, memory_call))
    on_host = _host_memory(recording)
    pools: list[TorchMemory | ArenaMemory] = [
        *[output.torch_memory for output in outputs if output.torch_memory is not None][-1:],
        *[output.arena_memory for output in outputs if output.arena_memory is not None][-1:],
    ]
    libraries = next((o.library_pools for o in reversed(outputs) if o.library_pools), ())
    dropped = sum(output.dropped for output in outputs)
    pooled = pool_tables(
        memory,
        pools,
        ops,
        recording.opened_ns,
        on_host,
        libraries=libraries,
        is_cut=dropped > 0,
    )
    tables = {
        "ops": ops,
        "activities": activities,
        "api_calls": _api_calls(launches, of_calls.op, ops, stacks),
        "graphs": graph_table(
            activities,
            ops,
            launches.end - launches.start,
            call,
            [known.facts for known in graphs if known.facts is not None],
        ),
        "memory": memory,
        **pooled,
        "host_samples": stacks.of_samples(samples),
        "thread_waits": _waits(recording),
        "overhead": concat([output.overhead for output in outputs]) if outputs else Table(OVERHEAD),
    }
    return CorrelatedTables(
        tables,
        ops_dropped,
        sum(batch.ops["unmarked"] for batch in recording.batches),
        sum(batch.launches["lost"] for batch in recording.batches),
        dropped,
        None if stacks.resolved is None else stacks.resolved.stacks,
        unresolved_ops,
    )


def _waits(recording: Recording) -> Table:
    """Return the waits of threads that lasted longer than until the profile began."""
    waits = concat([batch.waits for batch in recording.batches])
    kept = waits.take(waits["end_ns"] > recording.opened_ns).in_start_order()
    start = np.maximum(kept["start_ns"], recording.opened_ns)
    return kept.replace(start_ns=start, duration_ns=kept["end_ns"] - start)


def _host_memory(recording: Recording) -> HostMemory | None:
    """Return the memory of the host device at the end, if it was recorded throughout."""
    known = [
        [output.host_memory for output in batch.outputs if output.host_memory is not None]
        for batch in recording.batches
    ]
    return known[-1][-1] if known and all(known) else None


def _with_identified_ops(found: IdentifiedOps, activities: Table, launches: LaunchLog) -> Table:
    """Return the activities with the ops that a recorder found. Their API calls also get them."""
    rows = np.flatnonzero(found.is_learned)
    if not len(rows):
        return activities
    attribution = activities.names("attribution")
    learned = attribution.categories.index("learned")
    codes = np.where(found.is_learned, learned, attribution.codes).astype(np.int32)
    # A runtime call and its driver call have the same correlation id.
    at = IdIndex(activities["correlation_id"][rows]).rows(launches.correlation)
    launches.op = np.where(at >= 0, found.op_id[rows][at].astype(np.uint64), launches.op)
    attribution = CategoryColumn(codes, attribution.categories)
    return activities.replace(op_id=found.op_id, attribution=attribution)


def _activities_of(
    recording: Recording, outputs: Sequence[RecorderOutput], launches: LaunchLog
) -> Table:
    """Return the activities launched during the recording, or without a known launch."""
    tables = [output.activities for output in outputs if len(output.activities)]
    if not tables:
        return Table(ACTIVITIES)
    activities = tables[0] if len(tables) == 1 else concat(tables)
    correlation = activities["correlation_id"]
    row = IdIndex(launches.correlation).rows(correlation)
    keep = row >= 0
    if len(launches):
        keep &= ~launches.is_internal[row]
    unknown = row < 0
    if unknown.any():
        in_recording = activities["start_ns"] >= recording.opened_ns
        if recording.previous_batches:
            launched_before = column(
                recording.previous_batches, "launches", "correlation_id", np.uint64
            )
            in_recording &= ~contains(launched_before.astype(np.int64), correlation)
        keep |= unknown & in_recording
    kept = activities if keep.all() else activities.take(mask_as_slice(keep))
    return kept.in_start_order()  # each stream and thread is recorded separately


class _OpsOfCalls(NamedTuple):
    """The op of each call of the launch log, `MISSING` for none."""

    op: IntArray
    attribution: npt.NDArray[np.int32]
    """How it was found: `_STACK`, `_CELL` or `_NONE`."""
    is_unresolved: BoolArray
    """Whether the op is missing from the op log."""


_STACK, _CELL, _NONE = 0, 1, 2


def _ops_of_calls(launches: LaunchLog, ops: Table) -> _OpsOfCalls:
    by_stack = launches.has_own_op
    op = (launches.op & ~NO_OP).view(np.int64)
    op[(op == 0) | ~(by_stack | is_awaited_by_cell(launches))] = MISSING
    is_known = op != MISSING
    is_unresolved = is_known & ~contains(ops["op_id"], op)
    op[is_unresolved] = MISSING
    is_known &= ~is_unresolved
    attribution = np.where(is_known, np.where(by_stack, _STACK, _CELL), _NONE).astype(np.int32)
    return _OpsOfCalls(op, attribution, is_unresolved)


def _remember_ops(recording: Recording, ops: Table, graphs: Sequence[RecordedGraphs]) -> None:
    """Keep the ops that captured nodes, from the recording or the recorder."""
    recording.graph_nodes.remember_ops(ops)
    for known in graphs:
        if known.capture_ops is not None:
            recording.graph_nodes.remember_ops(known.capture_ops)


def _with_earlier_ops(
    recording: Recording, ops: Table, capture_op: IntArray
) -> tuple[Table, IntArray]:
    """Add rows for ops of earlier sessions that captured nodes replayed in this one."""
    capturing = np.unique(capture_op[capture_op != MISSING])
    absent = np.setdiff1d(capturing, ops["op_id"])
    earlier = recording.graph_nodes.earlier_ops(absent)
    if earlier is not None:
        added = earlier.take(~contains(ops["op_id"], earlier["op_id"]))
        # Run ids are unique only within a profile.
        added = added.replace(
            status=CategoryColumn.constant("earlier", len(added)),
            run_id=np.full(len(added), MISSING, np.int64),
        )
        ops = concat([ops, added])
        parent = ops["parent_op_id"]  # not every capture was recorded
        ops = ops.replace(parent_op_id=np.where(contains(ops["op_id"], parent), parent, MISSING))
    # An op that was dropped from the op log has no row to refer to.
    capture_op[~contains(ops["op_id"], capture_op)] = MISSING
    return ops, capture_op


def _api_calls(
    launches: LaunchLog, op_of_call: IntArray, ops: Table, stacks: LaunchStacks
) -> Table:
    internal = launches.is_internal
    rows = mask_as_slice(~internal) if internal.any() else slice(None)
    shown, op = launches.take(rows), op_of_call[rows]
    table = Table(
        API_CALLS,
        {
            "domain": shown.domains,
            "name": shown.names,
            "thread_id": shown.thread,
            "start_ns": shown.start,
            "end_ns": shown.end,
            "duration_ns": shown.end - shown.start,
            "correlation_id": shown.correlation,
            "op_id": op,
            "return_value": shown.result,
            "captured": shown.is_captured,
            **stacks.of_calls(rows, op, ops),
        },
    )
    return table.in_start_order()
