"""The launch log: one row per API call, with the op that was open on the calling thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.ids import IdIndex, contains
from epprof_nb.data.names import CategoryColumn
from epprof_nb.data.schema import MISSING
from epprof_nb.recording.clock_conversion import CLOCK_SLACK_NS
from epprof_nb.recording.native_columns import names_of
from epprof_nb.recording.recorder import RecordedCalls
from epprof_nb.recording.session.cell_thread_without_callbacks import observe
from epprof_nb.recording.session.recording import Batch, column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.arrays.types import IntArray
    from epprof_nb.data.table import Table
    from epprof_nb.recording.recorder import RecorderOutput


# Launch flags and the op column's top bit, as in native/core/records.h.
_CAPTURED, _PROFILER_INTERNAL, _STILL_IN_CALL, CELL_WAITED, CELL_RAN = 1, 2, 4, 8, 16
NO_OP = np.uint64(1 << 63)
_DOMAINS = ("driver", "runtime", "host")


@dataclass(slots=True)
class LaunchLog:
    """Columns of the launch log, including the profiler's own calls (see `is_internal`)."""

    correlation: IntArray
    op: npt.NDArray[np.uint64]
    start: IntArray
    end: IntArray
    thread: IntArray
    result: IntArray
    flags: npt.NDArray[np.uint16]
    names: CategoryColumn
    domains: CategoryColumn
    stack: npt.NDArray[np.int32]
    """Ids of the native core; -1 for none."""

    @classmethod
    def of(cls, batches: list[Batch], outputs: Sequence[RecorderOutput], ops: Table) -> LaunchLog:
        """Build the log of some batches, with the calls that recorders logged themselves."""
        return _with_external_correlation(_from_batches(batches), outputs, ops)

    def __len__(self) -> int:
        return len(self.op)

    def take(self, rows: npt.NDArray[Any] | slice) -> LaunchLog:
        """Return the log restricted to `rows`."""
        return LaunchLog(
            self.correlation[rows],
            self.op[rows],
            self.start[rows],
            self.end[rows],
            self.thread[rows],
            self.result[rows],
            self.flags[rows],
            self.names.take(rows),
            self.domains.take(rows),
            self.stack[rows],
        )

    @property
    def is_internal(self) -> npt.NDArray[np.bool_]:
        """Mask of the profiler's own calls."""
        internal: npt.NDArray[np.bool_] = (self.flags & _PROFILER_INTERNAL) != 0
        return internal

    @property
    def is_captured(self) -> npt.NDArray[np.bool_]:
        """Mask of the calls that were captured into a CUDA graph instead of executed."""
        captured: npt.NDArray[np.bool_] = (self.flags & _CAPTURED) != 0
        return captured

    @property
    def has_own_op(self) -> npt.NDArray[np.bool_]:
        """Mask of the calls made while an op was open on the calling thread."""
        own: npt.NDArray[np.bool_] = (self.op & NO_OP) == 0
        return own


def _from_batches(batches: list[Batch]) -> LaunchLog:
    def get(name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        return column(batches, "launches", name, dtype)

    name_ids = get("name_id", np.uint32)
    launches = LaunchLog(
        get("correlation_id", np.int64),
        get("op_id", np.uint64),
        get("start_ns", np.int64),
        get("end_ns", np.int64),
        get("thread_id", np.int64),
        get("return_value", np.int32).astype(np.int64),
        get("flags", np.uint16),
        CategoryColumn.from_ids(name_ids, names_of(name_ids)),
        CategoryColumn.from_ids(get("domain", np.uint16), _DOMAINS),
        get("stack_id", np.int32),
    )
    in_call = (launches.flags & _STILL_IN_CALL) != 0
    if in_call.any():
        # A call in progress at a flush is logged again by each later flush until it ends.
        ended = contains(launches.correlation[~in_call], launches.correlation)
        last = np.zeros(len(in_call), np.bool_)
        _, first_from_end = np.unique(launches.correlation[::-1], return_index=True)
        last[len(in_call) - 1 - first_from_end] = True
        launches = launches.take(~in_call | (~ended & last))
    return launches


def _with_external_correlation(
    launches: LaunchLog, outputs: Sequence[RecorderOutput], ops: Table
) -> LaunchLog:
    """Append the API calls of recorders that use external correlation."""
    external = from_external_correlation(outputs, ops)
    if external is None:
        return launches
    return LaunchLog(
        np.concatenate([launches.correlation, external.correlation]),
        np.concatenate([launches.op, external.op]),
        np.concatenate([launches.start, external.start]),
        np.concatenate([launches.end, external.end]),
        np.concatenate([launches.thread, external.thread]),
        np.concatenate([launches.result, external.result]),
        np.concatenate([launches.flags, external.flags]),
        _append(launches.names, external.names),
        _append(launches.domains, external.domains),
        np.concatenate([launches.stack, external.stack]),
    )


def from_external_correlation(
    outputs: Sequence[RecorderOutput], ops: Table | None = None
) -> LaunchLog | None:
    """Build the log that launch callbacks would have written; None if they wrote it themselves.

    The op of a call is the id that was pushed on its thread. For calls without an id, the columns
    describe the cell's thread, as a callback would.

    Parameters
    ----------
    outputs
        Outputs of the recorders.
    ops
        The ops, if they are known. An op that another thread ended stays pushed until its own
        thread opens or ends the next one; the calls in between are not attributed to it.
    """
    parts = [output.calls for output in outputs if output.calls is not None]
    if not parts:
        return None
    recorded = RecordedCalls.merged(parts)
    calls, pushed, internal = recorded.calls, recorded.pushed_op, recorded.is_internal
    # Each call has one id, the innermost pushed one.
    row = IdIndex(recorded.correlation_id).rows(calls["correlation_id"])
    op = np.where(row >= 0, pushed[row] if len(pushed) else 0, 0).astype(np.uint64)
    if ops is not None:
        # Row -1, an unknown op, finds the last element.
        ends = np.append(ops["end_ns"], 2**63 - 1)[IdIndex(ops["op_id"]).rows(op.astype(np.int64))]
        op[ends < calls["start_ns"] - CLOCK_SLACK_NS] = 0
    flags = np.where(internal, _PROFILER_INTERNAL, 0).astype(np.uint16)
    others = np.flatnonzero((op == 0) & ~internal)
    cell_op, waited, ran = observe(
        [part.cell_log for part in parts],
        calls["thread_id"][others],
        calls["start_ns"][others],
    )
    flags[others] |= np.where(waited, CELL_WAITED, 0).astype(np.uint16)
    flags[others] |= np.where(ran, CELL_RAN, 0).astype(np.uint16)
    op[op == 0] = NO_OP
    op[others] |= np.maximum(cell_op, 0).astype(np.uint64)
    return LaunchLog(
        calls["correlation_id"],
        op,
        calls["start_ns"],
        calls["end_ns"],
        calls["thread_id"],
        calls["return_value"],
        flags,
        calls.names("name"),
        calls.names("domain"),
        np.full(len(calls), MISSING, np.int32),
    )


def _append(a: CategoryColumn, b: CategoryColumn) -> CategoryColumn:
    index = {name: code for code, name in enumerate(a.categories)}
    codes = [index.setdefault(name, len(index)) for name in b.categories]
    remap = np.array([*codes, MISSING], np.int32)  # code -1 finds the last element
    return CategoryColumn(np.concatenate([a.codes, remap[b.codes]]), tuple(index))
