"""The critical path: the longest chain of work and waits from the start of a profile to its end.

Only changes on the path can make the code faster. A step of the path is host code, an API call, a
kernel or copy, or a delay between two of them, with its measured duration. So the path is at least
as long as any chain of dependent work, and at most as long as the profile.
`epprof_nb.analysis.critical_path.native_input` has the rules by which events wait for each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from epprof_nb.analysis.base.lines_of_work import lines_at
from epprof_nb.analysis.base.missing_records import lacks_records
from epprof_nb.analysis.base.processes import process_by_process
from epprof_nb.analysis.base.result_table import ResultTable, names_at, optional
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.critical_path.native_input import CriticalPathInput
from epprof_nb.arrays.ids import values_at
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.names import CategoryColumn
from epprof_nb.util.cached import cached_property

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import IntArray

STEPS = ("host", "api_call", "activity", "launch_delay", "stream_gap", "event_wait", "wait_return")
"""Kinds of steps, by their code in the native core."""
HOST, API_CALL, ACTIVITY, _LAUNCH, _GAP, _EVENT, RETURN = range(len(STEPS))


class CriticalPath:
    """The steps of the critical path, as arrays.

    Parameters
    ----------
    index
        Index of the profile.
    attribution
        See `epprof_nb.Profile.by_op`.

    Attributes
    ----------
    input
        The columns of the profile for the core.
    span_ns
        Time from the start to the end of the profile.
    """

    def __init__(self, index: ProfileIndex, attribution: Attribution = "launch") -> None:
        self.input = CriticalPathInput(index, attribution)
        self.span_ns = self.input.span_ns
        # The path is unknown if records are missing.
        self._is_known = not index.cached(lacks_records)

    @cached_property
    def length_ns(self) -> int:
        """Length of the path, ns; found without its steps, which take several times as long."""
        if "_steps" in vars(self):
            return int(self.duration_ns.sum())
        return self.input.length() if self._is_known else 0

    @cached_property
    def _steps(self) -> dict[str, npt.NDArray[Any]]:
        is_known = slice(None if self._is_known else 0)
        return {name: column[is_known] for name, column in self.input.path().items()}

    @property
    def step(self) -> npt.NDArray[np.uint8]:
        """Kind of each step, an index into `STEPS`."""
        return self._steps["step"]

    @property
    def row(self) -> npt.NDArray[np.int32]:
        """Row of each step.

        It is the line of the op of a ``host`` step (`MISSING`: none), of the API call of an
        ``api_call`` or ``wait_return``, else of the activity.
        """
        return self._steps["row"]

    @property
    def start_ns(self) -> IntArray:
        """Start of each step, ns."""
        return self._steps["start_ns"]

    @property
    def end_ns(self) -> IntArray:
        """End of each step, ns."""
        return self._steps["end_ns"]

    @cached_property
    def duration_ns(self) -> IntArray:
        """Duration of each step, ns."""
        return self.end_ns - self.start_ns

    @cached_property
    def op(self) -> npt.NDArray[Any]:
        """Row of the op to which each step belongs; `MISSING` for none."""
        of_call = (self.step == API_CALL) | (self.step == RETURN)
        of_activity = ~of_call & (self.step != HOST)
        op = self.row.copy()
        op[of_call] = self.input.call_op[self.row[of_call]]
        op[of_activity] = self.input.activity_op[self.row[of_activity]]
        return op


@process_by_process
def critical_path_table(index: ProfileIndex, attribution: Attribution = "launch") -> ResultTable:
    """Return the columns of ``Profile.critical_path(by="step")``."""
    path = index.cached(CriticalPath, attribution)
    tables, ops = index.profile.tables, index.profile.tables["ops"]
    of_call = (path.step == API_CALL) | (path.step == RETURN)
    of_activity = ~of_call & (path.step != HOST)
    activity = np.where(of_activity, path.row, MISSING)
    call = np.where(of_call, path.row, MISSING)
    thread = np.where(
        of_call,
        values_at(tables["api_calls"]["thread_id"], call),
        np.where(of_activity, MISSING, values_at(ops["thread_id"], path.op)),
    )
    correlation = np.where(
        of_call,
        values_at(tables["api_calls"]["correlation_id"], call),
        values_at(tables["activities"]["correlation_id"], activity),
    )
    lines = index.cached(StackLines)
    of_activities, of_calls = np.append(lines.of_activities(attribution), MISSING), lines.of_calls()
    stack = np.where(of_call, np.append(of_calls, MISSING)[call], of_activities[activity])
    cells, line = lines_at(index, stack, path.op)
    op_names = names_at(ops.names("name"), path.op)
    names = _first_known(
        names_at(tables["activities"].names("name"), activity),
        names_at(tables["api_calls"].names("name"), call),
        CategoryColumn(np.where(path.step == HOST, op_names.codes, MISSING), op_names.categories),
    )
    return ResultTable(
        {
            "step": CategoryColumn(path.step.astype(np.int32), STEPS),
            "name": names,
            "start_ns": path.start_ns,
            "end_ns": path.end_ns,
            "duration_ns": path.duration_ns,
            "share": path.duration_ns / max(path.length_ns, 1),
            "op_id": optional(values_at(ops["op_id"], path.op)),
            "op": op_names,
            "cell": cells,
            "line": optional(line),
            "thread_id": optional(thread),
            "device_id": optional(values_at(tables["activities"]["device_id"], activity)),
            "stream_id": optional(values_at(tables["activities"]["stream_id"], activity)),
            "correlation_id": optional(correlation),
        }
    )


def ops_below(index: ProfileIndex, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return which ops are in `mask` or below an op in it."""
    tree = index.tree
    change = np.zeros(len(tree) + 1, np.int64)
    change += np.bincount(tree.preorder_begin[mask], minlength=len(tree) + 1)
    change -= np.bincount(tree.preorder_end[mask], minlength=len(tree) + 1)
    inside: npt.NDArray[np.bool_] = (np.cumsum(change) > 0)[tree.preorder_begin]
    return inside


def _first_known(*columns: CategoryColumn) -> CategoryColumn:
    """Return the first non-missing name of each row."""
    categories: dict[str, int] = {}
    codes = np.full(len(columns[0]), MISSING, np.int32)
    for column in columns:
        place = [categories.setdefault(text, len(categories)) for text in column.categories]
        own = np.array([*place, MISSING], np.int32)[column.codes]
        codes = np.where(codes == MISSING, own, codes)
    return CategoryColumn(codes, tuple(categories))
