"""Lines: the lines of code of a profile, and those around each Python stack and op."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.op_paths import SESSION, OpPaths, Steps
from epprof_nb.analysis.base.result_table import categorical, objects, optional
from epprof_nb.analysis.base.source_text import line_text, split_lines
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.arrays.ancestors import nearest_ancestor
from epprof_nb.arrays.groups import group_codes
from epprof_nb.arrays.ids import values_at
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.base.result_table import Column
    from epprof_nb.arrays.types import IntArray

NO_LINE = "(no line)"
"""Source of the row of activities without a line."""
_MAX_DEPTH = 2_000
"""Statements nested more deeply count for the one at this depth: a bound for damaged files."""


class Lines:
    """The lines of a profile: of its marked statements, then of its stacks.

    Parameters
    ----------
    index
        Index of the profile.
    library
        Whether to include the lines of libraries.

    Attributes
    ----------
    of_op
        int64 array, shape ``(ops,)``: the line of each statement; `MISSING` for other ops.
    of_stack
        int64 array, shape ``(stacks,)``: the line of each frame; `MISSING` for those not included.
    file, function
        Tuples of names, one per line; the function is None for statements without a stack.
    number
        int64 array, one value per line: its number in the file.
    statement
        int64 array, one value per line: the first op of the statement; `MISSING` for other lines.
    """

    def __init__(self, index: ProfileIndex, *, library: bool = False) -> None:
        ops, stacks = index.profile.tables["ops"], index.cached(StackLines)
        cells, files, functions = ops.names("cell"), stacks.file, stacks.function
        names = dict[str, int]()
        codes = [
            np.array(
                [
                    *(names.setdefault(n, len(names)) if n else MISSING for n in column.categories),
                    MISSING,
                ]
            )
            for column in (cells, files)
        ]
        is_line = (cells.codes >= 0) & (ops["line"] >= 0) & ~ops.names("op_type").equals("cell")
        statements = np.flatnonzero(is_line)
        shown = np.flatnonzero(stacks.is_own | library)
        groups, first = group_codes(
            np.append(codes[0][cells.codes[statements]], codes[1][files.codes[shown]]),
            np.append(ops["line"][statements], stacks.line[shown]),
        )
        self.count = len(first)
        self.of_op = np.full(len(ops), MISSING, np.int64)
        self.of_op[statements] = groups[: len(statements)]
        self.of_stack = np.full(len(stacks), MISSING, np.int64)
        self.of_stack[shown] = groups[len(statements) :]
        self.statement = np.append(statements, np.full(len(shown), MISSING))[first]
        known = [*names]
        self._file_codes = np.append(
            codes[0][cells.codes[statements]], codes[1][files.codes[shown]]
        )[first]
        self.file = tuple(known[code] if code >= 0 else "" for code in self._file_codes.tolist())
        self.number = np.append(ops["line"][statements], stacks.line[shown])[first]
        frame = np.full(self.count + 1, MISSING, np.int64)
        frame[self.of_stack[shown][::-1]] = shown[::-1]  # of several frames, the first
        texts = functions.take(frame[:-1][frame[:-1] >= 0]).to_list()
        self.function = np.full(self.count, None, object)
        self.function[frame[:-1] >= 0] = texts

    def in_source_order(self) -> IntArray:
        """Return the lines by their files, in the order of these, and by their numbers."""
        by_file = group_codes(self._file_codes)[0] if self.count else self._file_codes
        return np.lexsort((self.number, by_file))

    def sources(self, index: ProfileIndex) -> list[str]:
        """Return the text of each line; the name of the statement or the function if unknown."""
        texts = {name: split_lines(text) for name, text in index.profile.sources.items()}
        names = index.profile.tables["ops"].names("name")
        of_statement = np.append(names.codes, MISSING)[self.statement]
        return [
            line_text(texts.get(file, []), number)
            or (names.categories[code] if code >= 0 else function)
            or ""
            for file, number, code, function in zip(
                self.file,
                self.number.tolist(),
                of_statement.tolist(),
                self.function.tolist(),
                strict=True,
            )
        ]

    def columns(self, index: ProfileIndex, order: IntArray, *, none: bool) -> dict[str, Column]:
        """Return the columns of the place of lines; with `none`, of a last row without a line."""
        texts, last = self.sources(index), int(none)
        return {
            "cell": categorical([*(self.file[i] or None for i in order.tolist()), *[None] * last]),
            "line": optional([*self.number[order], *[MISSING] * last]),
            "source": objects([*(texts[i] for i in order.tolist()), *[NO_LINE] * last]),
            "function": categorical([*self.function[order].tolist(), *[None] * last]),
        }


class Chains(NamedTuple):
    """The lines of pairs of a stack and an op.

    Attributes
    ----------
    pair, line
        int64 arrays: each line of each pair, once.
    innermost
        int64 array, one value per pair: the line of the stack, else of the op; `MISSING` for none.
    """

    pair: IntArray
    line: IntArray
    innermost: IntArray


class LineTree:
    """The lines around each op and stack: stacks, then the distinct nests of statements.

    Parameters
    ----------
    index
        Index of the profile.
    lines
        The lines to include.

    Attributes
    ----------
    of_op
        int64 array, shape ``(ops + 1,)``: node of each op; `MISSING` as last element.
    """

    def __init__(self, index: ProfileIndex, lines: Lines) -> None:
        stacks, tree = index.cached(StackLines), index.tree
        # A script has no statements: its ops have no lines around them.
        steps = slice(None if (lines.statement >= 0).any() else 0)
        paths = OpPaths(
            Steps((lines.of_op[steps],), tree.parent[steps], tree.depth[steps]), _MAX_DEPTH
        )
        self.of_op = np.full(len(tree) + 1, SESSION)
        self.of_op[:-1][steps] = paths.of_op
        self.of_op[-1] = MISSING
        n = len(stacks)
        self.of_op[:-1] += n
        of_path = values_at(lines.of_op, paths.row)
        above = np.where(paths.parent >= 0, paths.parent + n, MISSING)
        self.parent = np.concatenate([stacks.parent, above, [MISSING]])
        self.line = np.concatenate([lines.of_stack, of_path, [MISSING]])
        owner = nearest_ancestor(self.parent[:-1], self.line[:-1] >= 0)
        self.innermost = np.append(values_at(self.line[:-1], owner), MISSING)

    def chains(self, stack: IntArray, op: IntArray) -> Chains:
        """Return the lines of pairs of a stack and an op."""
        innermost = self.innermost[stack]
        node = self.of_op[op]
        innermost = np.where(innermost >= 0, innermost, self.innermost[node])
        pairs, lines = [], []
        for start in (stack, node):
            at, pair = start.copy(), np.arange(len(start))
            while len(at):
                known = self.line[at] >= 0
                pairs.append(pair[known])
                lines.append(self.line[at[known]])
                at = self.parent[at]
                pair, at = pair[at >= 0], at[at >= 0]
        none = np.empty(0, np.int64)
        pair, line = np.concatenate([none, *pairs]), np.concatenate([none, *lines])
        first = group_codes(pair, line)[1]
        return Chains(pair[first], line[first], innermost)
