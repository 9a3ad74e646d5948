"""Difference of two sides by Python stack: one calling-context tree with the work of both.

Frames are matched from the outermost one down, by function and text of their line: numbers of lines
and names of cells do not count, because the code may have moved. The rules are those of ops, see
`epprof_nb.analysis.compare.match_siblings`; a line that was edited is matched if it is similar.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from epprof_nb.analysis.base.op_paths import SESSION
from epprof_nb.analysis.base.result_table import (
    OptionalColumn,
    ResultTable,
    categorical,
    optional,
)
from epprof_nb.analysis.base.unknown_device_times import has_device_times, has_waits
from epprof_nb.analysis.compare.match_ops import Side, match
from epprof_nb.analysis.compare.times_per_repeat import repeat_numbers, repeats_of
from epprof_nb.analysis.stacks.by_stack import FrameTree, stack_work, tree_of_work
from epprof_nb.analysis.utilisation.blocking_calls import is_wait
from epprof_nb.arrays.types import MISSING
from epprof_nb.data.repeats import repeat_bounds
from epprof_nb.data.schema import DEVICE_KINDS
from epprof_nb.util.format import base_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.analysis.compare.match_ops import Pair
    from epprof_nb.arrays.types import BoolArray, IntArray

_TIMES = {"device_ns": "{}_ns", "wait_ns": "wait_{}_ns"}
_COUNTS = {name: f"{name}_{{}}" for name in ("launches", "waits", "kernels")}
_COUNTS |= {"count": "activities_{}"}
_OF_WAITS = ("waits", "wait_ns")
_SAME_TEXT = "line"
"""Type of nodes that are renamed only if their texts are similar."""


class _Node(NamedTuple):
    """A node of the tree of one side."""

    level: str
    name: str | None
    file: str | None
    line: int
    source: str = ""


class _StackSide(Side):
    """The frames and activities of one side, numbered across its recordings."""

    def __init__(self, indexes: Sequence[ProfileIndex], *, library: bool, folded: bool) -> None:
        super().__init__()
        self.nodes = [_Node("session", "session", None, MISSING)]
        self._sums: list[Counter[str]] = [Counter()]
        for index in indexes:
            self._add_recording(index, FrameTree(index, library=library, folded=folded))
        self._repeats = sum(map(repeats_of, indexes))
        self._knows_device = all(index.cached(has_device_times) for index in indexes)
        self._knows_waits = all(map(has_waits, indexes))

    def per_repeat(self, name: str, nodes: IntArray) -> np.ndarray:
        """Return the mean per repeat of a sum of some nodes, as float64 array.

        It is 0 for node `MISSING`, and NaN where the traces lack it.
        """
        values = np.array([*(sums[name] for sums in self._sums), 0.0])[nodes] / self._repeats
        is_known = self._knows_waits if name in _OF_WAITS else self._knows_device | (values > 0)
        return np.where(is_known, values, np.nan)

    def _add_recording(self, index: ProfileIndex, frames: FrameTree) -> None:
        counted, waits = _compared(index)
        tree, _ = tree_of_work(index, stack_work(index, counted), waits, frames)
        texts = (tree.names(name).to_list() for name in ("level", "name", "cell", "source"))
        found = [
            _Node(level or "", name, file, line, source or "")
            for level, name, file, source, line in zip(*texts, tree["line"].tolist(), strict=True)
        ]
        sums = {name: tree[name].tolist() for name in (*_TIMES, *_COUNTS)}
        parents = tree["parent"].tolist()
        path = np.zeros(len(tree), np.int64)
        equal: Counter[tuple[int, str, str]] = Counter()

        def in_source(row: int) -> tuple[int, str, int]:
            return int(tree["depth"][row]), found[row].file or "", found[row].line

        # Siblings in the order of the source: frames of equal text are matched by it.
        for row in sorted(range(len(tree)), key=in_source):
            if parents[row] >= 0:
                parent, label = int(path[parents[row]]), _label(found[row])
                key = (*label, equal[parent, *label])
                equal[parent, *label] += 1
                path[row] = self._path(parent, key, *label)
                if path[row] == len(self.nodes):
                    self.nodes.append(found[row])
                    self._sums.append(Counter())
            self._sums[path[row]].update({name: sums[name][row] for name in sums})


def _label(node: _Node) -> tuple[str, str]:
    """Return the text by which a node is matched, and its type."""
    if node.level not in ("frame", "library"):
        return node.name or "", node.level
    # Without a text, only the function and the line are known.
    text = node.source or f"{base_name(node.file or '')} {node.line}"
    return f"{node.name}: {text}", _SAME_TEXT


def _compared(index: ProfileIndex) -> tuple[BoolArray, IntArray]:
    """Return a mask of the device work, and the rows of the waits, in the repeats to compare."""
    tables = index.profile.tables
    repeat = repeat_numbers(index, tables["activities"]["repeat"])
    waits = np.flatnonzero(index.cached(is_wait))
    starts, ends = repeat_bounds(index.profile.info)
    if len(starts):
        begin = tables["api_calls"]["start_ns"][waits]
        number = np.searchsorted(starts, begin, "right") - 1
        number[begin >= ends[number]] = MISSING
        waits = waits[repeat_numbers(index, number) >= 0]
    return index.is_device_work & (repeat >= 0), waits


def stack_comparison(
    old: Sequence[ProfileIndex],
    new: Sequence[ProfileIndex],
    *,
    library: bool = False,
    folded: bool = False,
) -> ResultTable:
    """Return the columns of `Comparison.by_stack`.

    Parameters
    ----------
    old, new
        The recordings of each side.
    library
        Whether to show frames of libraries.
    folded
        Whether a frame that called itself, on the same line, is one with its caller.
    """
    before, after = (_StackSide(side, library=library, folded=folded) for side in (old, new))
    pairs, parents = _pairs(before, after)
    depth = [0] * len(pairs)
    for row, parent in enumerate(parents[1:], 1):
        depth[row] = depth[parent] + 1
    of_old, of_new = (
        np.array([MISSING if n is None else n for n in side], np.int64)
        for side in ([pair.old for pair in pairs], [pair.new for pair in pairs])
    )
    nodes = [
        before.nodes[one] if other < 0 else after.nodes[other]
        for one, other in zip(of_old.tolist(), of_new.tolist(), strict=True)
    ]
    old_line = [before.nodes[one].line if one >= 0 else MISSING for one in of_old.tolist()]

    def both(name: str, column: str) -> dict[str, np.ndarray]:
        sides = ((before, of_old, "before"), (after, of_new, "after"))
        return {column.format(word): side.per_repeat(name, rows) for side, rows, word in sides}

    times = {
        column: np.rint(values)
        for name, pattern in _TIMES.items()
        for column, values in both(name, pattern).items()
    }
    counts: dict[str, np.ndarray] = {}
    for name, pattern in _COUNTS.items():
        counts |= both(name, pattern)
    delta = times["after_ns"] - times["before_ns"]
    before_ns = times["before_ns"]
    change = np.divide(delta, before_ns, out=np.full(len(pairs), np.nan), where=before_ns > 0)
    return ResultTable(
        {
            "parent": optional([MISSING, *parents[1:]]),
            "depth": np.array(depth, np.int64),
            "level": categorical([node.level for node in nodes]),
            "name": categorical([node.name for node in nodes]),
            "cell": categorical([node.file for node in nodes]),
            "line": optional([node.line for node in nodes]),
            "old_line": optional(old_line),
            "source": categorical([node.source or None for node in nodes]),
            "status": categorical([pair.status for pair in pairs]),
            "before_ns": _integers(before_ns),
            "after_ns": _integers(times["after_ns"]),
            "delta_ns": _integers(delta),
            "change": change,
            **{name: _integers(times[name]) for name in ("wait_before_ns", "wait_after_ns")},
            **counts,
        },
        index="node",
    )


def _integers(values: np.ndarray) -> OptionalColumn:
    is_missing = np.isnan(values)
    return OptionalColumn(np.where(is_missing, 0, values).astype(np.int64), is_missing)


def _pairs(before: _StackSide, after: _StackSide) -> tuple[list[Pair], list[int]]:
    """Return the pairs and the row above each; parents come first.

    Activities are paired only if their names are equal.
    """
    found: list[Pair] = []
    parents: list[int] = []
    row_of: list[int] = []
    for pair in match(before, after):
        row_of.append(len(found))
        parts = [pair]
        if pair.is_renamed and before.types[pair.old or SESSION] in DEVICE_KINDS:
            parts = [
                replace(pair, new=None, is_renamed=False),
                replace(pair, old=None, is_renamed=False),
            ]
        found += parts
        parents += [row_of[pair.parent]] * len(parts)
    return found, parents
