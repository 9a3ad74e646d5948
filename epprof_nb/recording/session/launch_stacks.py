"""The Python stack of each activity and API call, by the call that launched it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.ids import IdIndex
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.python_stacks import EXACT, OP, REPLAY, SOURCES
from epprof_nb.data.schema import MISSING
from epprof_nb.recording.stacks.forward_stacks import ForwardStacks
from epprof_nb.recording.stacks.op_stacks import OpStacks
from epprof_nb.recording.stacks.resolution import ResolvedStacks, resolve

if TYPE_CHECKING:
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table
    from epprof_nb.recording.session.launch_log import LaunchLog
    from epprof_nb.recording.session.recording import Recording

Columns = dict[str, npt.NDArray[Any] | CategoryColumn]


class LaunchStacks:
    """The stacks of a recording, as columns of its tables.

    Parameters
    ----------
    recording, launches
        The recording and its launch log.
    sampled
        Ids of the native core: the stacks of samples.

    Attributes
    ----------
    resolved
        The stacks; None if none were recorded.
    """

    def __init__(
        self, recording: Recording, launches: LaunchLog, sampled: npt.NDArray[np.int32]
    ) -> None:
        self.resolved: ResolvedStacks | None = None
        self._graph_nodes = recording.graph_nodes
        self._drained = recording.stacks
        self._op_stacks = OpStacks(recording.stacks)
        if recording.stacks:
            forward = ForwardStacks(recording.stacks)
            self.resolved = resolve(recording.stacks, [launches.stack, forward.used, sampled])
            self._of_launch = self.resolved.rows(launches.stack)
            self._source = np.where(self._of_launch >= 0, EXACT, MISSING).astype(np.int8)
            self._add_backward(forward, launches)

    def _add_backward(self, forward: ForwardStacks, launches: LaunchLog) -> None:
        if self.resolved is None or not len(forward.correlation):
            return
        stack, source = forward.of_launches(self.resolved.row)
        without = np.flatnonzero(self._of_launch == MISSING)
        found = IdIndex(forward.correlation).rows(launches.correlation[without])
        self._of_launch[without] = np.append(stack, np.int32(MISSING))[found]
        self._source[without] = np.append(source, np.int8(MISSING))[found]

    def of_samples(self, samples: Table) -> Table:
        """Return the samples with the rows of their stacks."""
        if self.resolved is None:
            return samples
        return samples.replace(stack_id=self.resolved.rows(samples["stack_id"]))

    def of_calls(self, calls: npt.NDArray[Any] | slice, op: IntArray, ops: Table) -> Columns:
        """Return the columns of some calls of the launch log, whose ops are `op`."""
        if self.resolved is None:
            return {}
        return self._columns(self._of_launch[calls], self._source[calls], op, ops)

    def of_activities(self, activities: Table, call: IntArray, ops: Table) -> Columns:
        """Return the columns of activities.

        Parameters
        ----------
        activities
            The activities, with their ops.
        call
            Row of each one's call in the launch log, `MISSING` for none.
        ops
            The ops.
        """
        if self.resolved is None:
            return {}
        rows = np.append(self._of_launch, np.int32(MISSING))[call]
        source = np.append(self._source, np.int8(MISSING))[call]
        nodes = activities["graph_node_id"]
        in_graph = nodes != MISSING
        source[in_graph & (rows != MISSING)] = REPLAY
        columns = self._columns(rows, source, activities["op_id"], ops)
        if in_graph.any():
            captured = np.full(len(rows), MISSING, np.int32)
            captured[in_graph] = self._graph_nodes.capture_stacks(
                nodes[in_graph], self.resolved.tree
            )
            columns["capture_stack_id"] = captured
        return columns

    def _columns(
        self, rows: npt.NDArray[np.int32], source: npt.NDArray[np.int8], op: IntArray, ops: Table
    ) -> Columns:
        without = np.flatnonzero((rows == MISSING) & (op != MISSING))
        if len(without) and self.resolved is not None:
            used, inverse = np.unique(op[without], return_inverse=True)
            ids = self._op_stacks.of(used, ops)
            opened = resolve(self._drained, [ids])
            at = opened.rows(ids).tolist()
            found = self.resolved.tree.graft(opened.stacks, at)
            rows, source = rows.copy(), source.copy()
            rows[without] = np.array([found[row] for row in at], np.int32)[inverse]
            source[without] = np.where(rows[without] == MISSING, MISSING, OP)
        return {"stack_id": rows, "stack_source": CategoryColumn(source.astype(np.int32), SOURCES)}
