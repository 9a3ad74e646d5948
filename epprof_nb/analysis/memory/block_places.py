"""The Python stack in which each block of memory was allocated, and the lines of blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from epprof_nb.analysis.base.lines_of_work import callers_at, lines_at
from epprof_nb.analysis.base.result_table import names_at
from epprof_nb.analysis.base.source_text import source_line
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.ids import values_at
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.schema import MISSING_DELTA

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.names import CategoryColumn


def block_stacks(index: ProfileIndex) -> IntArray:
    """Return the stack of each block; `MISSING` for none, and for blocks from before the profile.

    A block that the driver allocated has the stack of that call. PyTorch's allocator has no stacks:
    an operator allocates its output and then launches the kernel that fills it, so a block has the
    stack of the next API call on the thread of its op. An op that ends before that call has none.
    Without an op, its thread is known if no op was open and one thread alone called outside of ops.
    """
    tables = index.profile.tables
    blocks, calls, ops = tables["memory_blocks"], tables["api_calls"], tables["ops"]
    found = np.full(len(blocks), MISSING, np.int64)
    begin = blocks["allocated_ns"]
    todo = np.flatnonzero(begin != MISSING_DELTA)
    if not len(calls) or not len(todo):
        return found
    stack = index.cached(StackLines).of_calls()
    call = _own_calls(index, todo, "allocation")
    found[todo[call != MISSING]] = stack[call[call != MISSING]]
    todo = todo[call == MISSING]
    op = index.tree.rows(blocks["op_id"][todo])
    last = np.iinfo(np.int64).max
    end = np.append(ops["end_ns"], last)[op]
    outside = np.unique(calls["thread_id"][index.call_op == MISSING])
    only = int(outside[0]) if len(outside) == 1 else MISSING
    thread = np.append(ops["thread_id"], only)[op]
    thread[(op == MISSING) & _within_ops(index, begin[todo])] = MISSING
    for one in np.unique(thread[thread != MISSING]).tolist():
        rows = np.flatnonzero(calls["thread_id"] == one)
        if not len(rows):
            continue
        rows = rows[np.argsort(calls["end_ns"][rows], kind="stable")]
        mine = np.flatnonzero(thread == one)
        # A call that is running may be the one that gets the segment of the block.
        at = np.searchsorted(calls["end_ns"][rows], begin[todo[mine]])
        following = np.append(rows, MISSING)[at]
        is_later = np.append(calls["start_ns"], last)[following] > end[mine]
        found[todo[mine]] = np.where(is_later, MISSING, np.append(stack, MISSING)[following])
    return found


def release_stacks(index: ProfileIndex) -> IntArray:
    """Return the stack of the call that released each block; `MISSING` for blocks of a pool."""
    every = np.arange(len(index.profile.tables["memory_blocks"]))
    stack = index.cached(StackLines).of_calls().astype(np.int64)
    return values_at(stack, _own_calls(index, every, "release"))


def waited_for_work(index: ProfileIndex) -> BoolArray:
    """Return the mask of the blocks that one thread allocated and another one released.

    The host device keeps an array until launched work no longer uses it.
    """
    calls = index.profile.tables["api_calls"]
    rows = np.arange(len(index.profile.tables["memory_blocks"]))
    thread = np.append(calls["thread_id"], MISSING)
    made, freed = (thread[_own_calls(index, rows, what)] for what in ("allocation", "release"))
    other: BoolArray = (made != freed) & (made != MISSING) & (freed != MISSING)
    return other


def _own_calls(
    index: ProfileIndex, rows: IntArray, operation: Literal["allocation", "release"]
) -> IntArray:
    """Return the API call that allocated or released blocks; `MISSING` for blocks of a pool."""
    memory, blocks = index.profile.tables["memory"], index.profile.tables["memory_blocks"]
    made = np.flatnonzero(memory.names("operation").equals(operation))
    if not len(made):
        return np.full(len(rows), MISSING, np.int64)
    time = blocks["allocated_ns" if operation == "allocation" else "freed_ns"][rows]
    codes, _ = group_codes(
        np.concatenate([memory["address"][made], blocks["address"][rows]]),
        np.concatenate([memory["time_ns"][made], time]),
    )
    call = np.full(len(codes), MISSING, np.int64)
    call[codes[: len(made)]] = index.calls.rows(memory["correlation_id"][made])
    found: IntArray = call[codes[len(made) :]]
    return found


def _within_ops(index: ProfileIndex, time: IntArray) -> BoolArray:
    """Return at which times any op was open on any thread."""
    ops = index.profile.tables["ops"]
    outermost = index.tree.parent == MISSING
    begun = np.searchsorted(np.sort(ops["start_ns"][outermost]), time, side="right")
    ended = np.searchsorted(np.sort(ops["end_ns"][outermost]), time, side="right")
    within: BoolArray = begun > ended
    return within


class CodeLines(NamedTuple):
    """A line of code per row, as of `lines_at`, and the line of the profiled cell that called it.

    ``frame`` is the row of each line in the stacks; `MISSING` for statements and for no line.
    ``caller_cell`` and ``caller_line`` are as of `callers_at`.
    """

    cell: CategoryColumn
    line: IntArray
    frame: IntArray
    caller_cell: CategoryColumn
    caller_line: IntArray

    def keys(self) -> tuple[IntArray, ...]:
        """Return columns of numbers that are equal where the lines and their callers are."""
        codes = self.cell.codes.astype(np.int64), self.caller_cell.codes.astype(np.int64)
        return codes[0], self.line, codes[1], self.caller_line

    def take(self, rows: IntArray) -> CodeLines:
        """Return some of the lines."""
        return CodeLines(
            self.cell.take(rows), self.line[rows], self.frame[rows],
            self.caller_cell.take(rows), self.caller_line[rows],
        )  # fmt: skip

    def functions(self, index: ProfileIndex) -> list[str | None]:
        """Return the function of each line; None without a stack."""
        return names_at(index.cached(StackLines).function, self.frame).to_list()

    def texts(self, index: ProfileIndex, op: IntArray) -> list[str | None]:
        """Return the source of each line; without it the function, or the statement of its op."""
        names = index.profile.tables["ops"].names("name")
        found = names_at(names, values_at(index.statement, op)).to_list()
        functions = self.functions(index)
        cells, lines = self.cell.to_list(), self.line.tolist()
        for row in np.flatnonzero(self.frame >= 0).tolist():
            found[row] = source_line(index.profile, cells[row], lines[row]) or functions[row]
        return found


def code_lines(index: ProfileIndex, stack: IntArray, op: IntArray) -> CodeLines:
    """Return the lines of stacks; where a stack has none of the user's code, of the op."""
    cell, line = lines_at(index, stack, op)
    own: IntArray = index.cached(StackLines).own[stack]
    return CodeLines(cell, line, own, *callers_at(index, stack, op))
