"""The critical path by line: the time of each line of the user's code on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epprof_nb.analysis.base.line_chains import Lines, LineTree
from epprof_nb.analysis.base.processes import process_by_process
from epprof_nb.analysis.base.result_table import ResultTable, optional
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.base.unknown_device_times import device_column
from epprof_nb.analysis.critical_path.by_op import SAVINGS
from epprof_nb.analysis.critical_path.chain import API_CALL, HOST, RETURN, CriticalPath
from epprof_nb.analysis.critical_path.changed_durations import Owners
from epprof_nb.analysis.critical_path.native_input import VARIANTS
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray


class PathLines:
    """The lines on the critical path.

    The time of an activity or API call belongs to every line in its stack and around its op; that
    of other code to the statements around the op in which it ran.

    Parameters
    ----------
    index
        Index of the profile.
    attribution
        See `epprof_nb.Profile.by_op`.

    Attributes
    ----------
    lines
        All lines of the profile.
    owners
        The pair of a stack and a nest of statements that each activity and API call belongs to.
    pair_of_op
        int32 array, shape ``(ops,)``: the pair of the code of each op.
    """

    def __init__(self, index: ProfileIndex, attribution: Attribution = "launch") -> None:
        self.lines = Lines(index)
        self._path = path = index.cached(CriticalPath, attribution)
        stacks = index.cached(StackLines)
        events, ops = path.input, len(index.tree)
        of_activities, of_calls = stacks.of_activities(attribution), stacks.of_calls()
        sizes = (len(of_activities), len(of_calls), ops)
        stack = np.concatenate([of_activities, of_calls, np.full(ops, MISSING)]).astype(np.int64)
        op = np.concatenate([events.activity_op, events.call_op, np.arange(ops)]).astype(np.int64)
        tree = LineTree(index, self.lines)
        pair, first = group_codes(stack, tree.of_op[op])
        self._chains = tree.chains(stack[first], op[first])
        self._pairs = len(first)
        # A call without stack and op belongs to the op that is open on its thread.
        owned = np.where((stack == MISSING) & (op == MISSING), MISSING, pair).astype(np.int32)
        activity, call, self.pair_of_op = np.split(owned, np.cumsum(sizes)[:-1])
        self.owners = Owners(activity, call, self._pairs)
        is_host, is_call = path.step == HOST, (path.step == API_CALL) | (path.step == RETURN)

        def at(column: npt.NDArray[np.int32], steps: BoolArray) -> npt.NDArray[np.int32]:
            found: npt.NDArray[np.int32] = np.append(column, np.int32(MISSING))
            return found[np.where(steps, path.row, MISSING)]

        self._of_step = np.where(
            is_host,
            at(self.pair_of_op, is_host),
            np.where(is_call, at(call, is_call), at(activity, ~is_host & ~is_call)),
        )

    def pairs_of(self, lines: IntArray) -> IntArray:
        """Return the pairs whose stack or op is in any of some lines."""
        return np.unique(self._chains.pair[np.isin(self._chains.line, lines)])

    def inclusive(self, steps: BoolArray) -> IntArray:
        """Return the time of some steps on each line; the last value is that without a line."""
        of_pair = self._of_pairs(steps)
        chains = self._chains
        sums = sum_by_group(chains.line, of_pair[chains.pair], self.lines.count)
        sums[-1] = of_pair[-1] + of_pair[:-1][chains.innermost == MISSING].sum()
        return sums

    def own(self, steps: BoolArray) -> IntArray:
        """Return the time of some steps whose innermost line is each one."""
        return sum_by_group(self._chains.innermost, self._of_pairs(steps)[:-1], self.lines.count)

    def _of_pairs(self, steps: BoolArray) -> IntArray:
        return sum_by_group(self._of_step[steps], self._path.duration_ns[steps], self._pairs)

    def savings(self, lines: IntArray) -> IntArray:
        """Return how much shorter the path is if all work and code of a line takes no time."""
        savings = np.zeros(len(lines), np.int64)
        for begin in range(0, len(lines), VARIANTS):
            chosen = lines[begin : begin + VARIANTS]
            free = np.zeros(self._pairs + 1, np.uint8)
            for bit, line in enumerate(chosen.tolist()):
                free[self.pairs_of(np.array([line]))] |= np.uint8(1 << bit)
            of_ops = free[self.pair_of_op]
            lengths = self._path.input.lengths(np.append(of_ops, free), self.owners)
            savings[begin : begin + VARIANTS] = self._path.length_ns - lengths[: len(chosen)]
        return savings


@process_by_process
def critical_path_line_table(
    index: ProfileIndex, attribution: Attribution = "launch"
) -> ResultTable:
    """Return the columns of ``Profile.critical_path(by="line")``."""
    found = PathLines(index, attribution)
    path = index.cached(CriticalPath, attribution)
    everywhere = np.ones(len(path.step), np.bool_)
    on_device = (path.step != HOST) & (path.step != API_CALL)
    path_ns, device_ns = found.inclusive(everywhere), found.inclusive(on_device)
    own_ns = found.own(everywhere)
    order = np.argsort(-path_ns[:-1], kind="stable")
    order = order[path_ns[order] > 0]
    has_none = bool(path_ns[-1] > 0)
    savings = np.full(len(order), MISSING, np.int64)
    savings[:SAVINGS] = found.savings(order[:SAVINGS])

    def column(values: IntArray, without: int) -> IntArray:
        return np.append(values, np.full(int(has_none), without, np.int64))

    inclusive_ns = column(path_ns[order], int(path_ns[-1]))
    of_device = column(device_ns[order], int(device_ns[-1]))
    return ResultTable(
        {
            **found.lines.columns(index, order, none=has_none),
            "saving_ns": optional(column(savings, MISSING)),
            "path_ns": inclusive_ns,
            "share": inclusive_ns / max(path.length_ns, 1),
            "self_path_ns": column(own_ns[order], int(path_ns[-1])),
            "device_path_ns": device_column(index, of_device),
            "host_path_ns": inclusive_ns - of_device,
        }
    )
