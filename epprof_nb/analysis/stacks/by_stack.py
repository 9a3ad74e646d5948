"""by_stack: device time, launches and waits of each Python stack, as a calling-context tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epprof_nb.analysis.base.first_of_launch import first_of_launch
from epprof_nb.analysis.base.op_path_rows import subtree_sum
from epprof_nb.analysis.base.op_paths import SESSION, OpPaths, Steps
from epprof_nb.analysis.base.op_tree import preorder
from epprof_nb.analysis.base.result_table import ResultTable, categorical, optional
from epprof_nb.analysis.base.source_text import line_text, split_lines
from epprof_nb.analysis.base.stack_lines import StackLines
from epprof_nb.analysis.base.unknown_device_times import without_unknown
from epprof_nb.analysis.utilisation.blocking_calls import is_wait
from epprof_nb.arrays.ancestors import nearest_ancestor
from epprof_nb.arrays.groups import group_codes, sum_by_group
from epprof_nb.arrays.ids import values_at
from epprof_nb.arrays.types import MISSING

if TYPE_CHECKING:
    import numpy.typing as npt

    from epprof_nb.analysis.base.attribution import Attribution
    from epprof_nb.analysis.base.index import ProfileIndex
    from epprof_nb.arrays.types import BoolArray, IntArray
    from epprof_nb.data.names import CategoryColumn

NO_STACK = "(no stack)"
"""Name of the row of work without a Python stack."""
_MAX_DEPTH = 2_000
_OPTIONAL = ("launches", "waits", "wait_ns")


class FrameTree:
    """The distinct paths of frames that are shown, from the outermost one.

    Parameters
    ----------
    index
        Index of the profile.
    library
        Whether to show frames of libraries. Otherwise their callers take their place.
    folded
        Whether a frame that called itself, on the same line, is one with its caller.

    Attributes
    ----------
    paths
        The paths; rows are rows of `stacks`.
    of_stack
        int64 array, shape ``(n + 1,)``: node of each stack. The last element is the node of
        work without a stack, which stacks without a frame to show have, too.
    recursion
        int64 array, one value per node: how often the frame follows itself at most, if `folded`.
    """

    def __init__(self, index: ProfileIndex, *, library: bool, folded: bool = False) -> None:
        lines = index.cached(StackLines)
        shown = lines.is_own | library
        runs = _runs(lines, shown) if folded else np.ones(len(lines), np.int64)
        every, shown = shown, shown & (runs == 1)
        rows = np.flatnonzero(shown)
        number = np.full(len(lines) + 1, MISSING, np.int64)
        number[rows] = np.arange(len(rows))
        nearest = np.append(nearest_ancestor(lines.parent, shown), MISSING)
        parent = number[nearest[lines.parent[rows]]]
        keys = (lines.file.codes[rows], lines.function.codes[rows], lines.line[rows])
        steps = Steps(tuple(key.astype(np.int64) for key in keys), parent, _depths(parent))
        self.paths = OpPaths(steps, _MAX_DEPTH)
        self.paths.row = values_at(rows, self.paths.row)
        of_row = np.append(self.paths.of_row, self.paths.no_op)
        self.of_stack = of_row[number[nearest]]
        self.recursion = np.ones(len(self.paths.parent), np.int64)
        np.maximum.at(self.recursion, self.of_stack[:-1][every], runs[every])


def stack_tree(
    index: ProfileIndex, *, attribution: Attribution = "launch", library: bool = False
) -> ResultTable:
    """Return the columns of `Profile.by_stack`."""
    return _known(index, index.cached(tree_and_nodes, attribution, library)[0])


def tree_and_nodes(
    index: ProfileIndex,
    attribution: Attribution,
    library: bool,  # noqa: FBT001 - results are cached by positional arguments
    folded: bool = False,  # noqa: FBT001, FBT002
) -> tuple[ResultTable, IntArray]:
    """Return the columns of `Profile.by_stack`, and the node of each stack.

    For `ProfileIndex.cached`. The nodes are an int64 array of shape ``(n + 1,)``: of the innermost
    frame that is shown, `MISSING` for stacks without work; the last one is for work without a
    stack. If `folded`, a frame that called itself, on the same line, is one with its caller, and
    ``recursion`` is how often it follows itself at most.
    """
    if library and index.cached(StackLines).is_own.all():  # then there is no frame of a library
        return index.cached(tree_and_nodes, attribution, False, folded)  # noqa: FBT003
    tree = FrameTree(index, library=library, folded=folded)
    work, waits = index.cached(_all_work, attribution), np.flatnonzero(index.cached(is_wait))
    return tree_of_work(index, work, waits, tree)


class StackWork(NamedTuple):
    """Sums of the device work of one stack, kind and name, in the order of the first ones.

    Attributes
    ----------
    stack
        Integer array: the stack; `MISSING` for none.
    kinds, names
        Kind and name.
    activities, device_ns, launches, bytes
        int64 arrays: the number of activities, and their sums.
    """

    stack: npt.NDArray[np.signedinteger[Any]]
    kinds: CategoryColumn
    names: CategoryColumn
    activities: IntArray
    device_ns: IntArray
    launches: IntArray
    bytes: IntArray


def stack_work(
    index: ProfileIndex, counted: BoolArray, attribution: Attribution = "launch"
) -> StackWork:
    """Sum up the activities in the mask `counted`, which are device work, by stack and name."""
    activities = index.profile.tables["activities"]
    stack = index.cached(StackLines).of_activities(attribution)
    kinds, names = activities.names("kind"), activities.names("name")
    # Waits, of which there are few, get groups as well: that copies no column.
    groups, first = group_codes(stack, kinds.codes, names.codes)
    groups[~counted] = MISSING
    count = sum_by_group(groups, np.ones(len(groups), np.int64), len(first))[:-1]
    kept = np.flatnonzero(count)
    rows = first[kept]

    def by_group(values: IntArray) -> IntArray:
        return sum_by_group(groups, values, len(first))[kept]

    return StackWork(
        stack=stack[rows],
        kinds=kinds.take(rows),
        names=names.take(rows),
        activities=count[kept],
        device_ns=by_group(np.maximum(activities["duration_ns"], 0)),
        launches=by_group(index.cached(first_of_launch).astype(np.int64)),
        bytes=by_group(np.maximum(activities["bytes"], 0)),
    )


def _all_work(index: ProfileIndex, attribution: Attribution) -> StackWork:
    return stack_work(index, index.is_device_work, attribution)


def tree_of_work(
    index: ProfileIndex, work: StackWork, waits: IntArray, tree: FrameTree
) -> tuple[ResultTable, IntArray]:
    """Return the tree of some device work and waits; see `tree_and_nodes`.

    Parameters
    ----------
    index
        Index of the profile.
    work
        The device work.
    waits
        Rows of API calls that waited.
    tree
        The frames to show.
    """
    tables, lines = index.profile.tables, index.cached(StackLines)
    calls, paths = tables["api_calls"], tree.paths
    owner = tree.of_stack[work.stack]
    leaf, example = group_codes(owner, work.kinds.codes, work.names.codes)
    inner, leaves = len(paths.parent), len(example)
    above, kinds, names = owner[example], work.kinds.take(example), work.names.take(example)
    parent = np.append(paths.parent, above)
    depth = np.append(paths.depth, paths.depth[above] + 1)

    def by_leaf(values: IntArray) -> IntArray:
        return sum_by_group(leaf, values, leaves)[:-1]

    def of_leaves(sums: IntArray) -> IntArray:
        return subtree_sum(np.append(np.zeros(inner, np.int64), sums), parent, depth)

    waiting = tree.of_stack[lines.of_calls()[waits]]
    wait_ns = np.maximum(calls["end_ns"][waits] - calls["start_ns"][waits], 0)

    def of_waits(values: IntArray) -> IntArray:
        return subtree_sum(sum_by_group(waiting, values, len(parent))[:-1], parent, depth)

    count, device_ns = by_leaf(work.activities), by_leaf(work.device_ns)
    launched = sum_by_group(above, device_ns, inner)[:-1]
    sums = {
        "count": of_leaves(count),
        "device_ns": of_leaves(device_ns),
        # The row above already includes the time of a leaf.
        "self_device_ns": np.append(launched, np.zeros(leaves, np.int64)),
        "launches": of_leaves(by_leaf(work.launches)),
        "waits": of_waits(np.ones(len(waits), np.int64)),
        "wait_ns": of_waits(wait_ns),
        "kernels": of_leaves(np.where(kinds.equals("kernel"), count, 0)),
        "bytes": of_leaves(by_leaf(work.bytes)),
    }
    kept = np.flatnonzero((sums["count"] > 0) | (sums["waits"] > 0))
    kept = np.union1d(kept, [SESSION])
    kept = kept[_depth_first(parent, kept, sums["device_ns"], sums["wait_ns"])]
    number = np.full(len(parent) + 1, MISSING, np.int64)
    number[kept] = np.arange(len(kept))
    frame = paths.row
    owners = tables["stacks"].names("owner")

    def texts(of_frame: list[str | None], of_leaf: list[str | None]) -> list[str | None]:
        found = np.array([*of_frame, *of_leaf], object)[kept].tolist()
        return list(found)

    def of_frames(texts_of_rows: list[str | None]) -> list[str | None]:
        return [texts_of_rows[row] if row >= 0 else None for row in frame.tolist()]

    levels = of_frames(["library" if o == "library" else "frame" for o in owners.to_list()])
    functions = of_frames(lines.function.to_list())
    levels[SESSION], functions[SESSION] = "session", "session"
    levels[paths.no_op], functions[paths.no_op] = "none", NO_STACK
    none: list[str | None] = [None] * leaves
    recursion = np.append(tree.recursion, np.ones(leaves, np.int64))
    line = np.append(values_at(lines.line, frame), np.full(leaves, MISSING))[kept]
    files = texts(of_frames(lines.file.to_list()), none)
    known = index.profile.sources
    text_of = {file: split_lines(known.get(file or "", "")) for file in dict.fromkeys(files)}
    places = zip(files, line.tolist(), strict=True)
    sources = [line_text(text_of[file], number) or None for file, number in places]
    table = ResultTable(
        {
            "parent": optional(number[parent[kept]]),
            "depth": depth[kept],
            "level": categorical(texts(levels, kinds.to_list())),
            "name": categorical(texts(functions, names.to_list())),
            "cell": categorical(files),
            "line": optional(line),
            "source": categorical(sources),
            **{
                name: optional(values[kept]) if name in _OPTIONAL else values[kept]
                for name, values in sums.items()
            },
            **({"recursion": recursion[kept]} if (recursion > 1).any() else {}),
        },
        index="node",
    )
    return table, number[tree.of_stack]


def _depth_first(parent: IntArray, kept: IntArray, *sizes: IntArray) -> IntArray:
    """Return the order of the kept nodes in which each subtree follows its node, largest first."""
    by_size = np.lexsort([-size[kept] for size in reversed(sizes)])
    number = np.full(len(parent) + 1, MISSING, np.int64)
    number[kept[by_size]] = np.arange(len(kept))
    begin, _, _ = preorder(number[parent[kept[by_size]]])
    return by_size[np.argsort(begin)]


def own_stack_tree(index: ProfileIndex) -> ResultTable:
    """Return the tree for views, in which a frame that called itself is one."""
    return _known(index, index.cached(tree_and_nodes, "launch", False, True)[0])  # noqa: FBT003


def full_stack_tree(index: ProfileIndex) -> ResultTable:
    """Return this tree with the frames of libraries."""
    return _known(index, index.cached(tree_and_nodes, "launch", True, True)[0])  # noqa: FBT003


def _known(index: ProfileIndex, tree: ResultTable) -> ResultTable:
    return without_unknown(index, tree, "count")


def _runs(lines: StackLines, shown: BoolArray) -> IntArray:
    """Return how often the frame of each row follows itself, itself included."""
    above = np.append(nearest_ancestor(lines.parent, shown), MISSING)[lines.parent]
    keys = (lines.file.codes, lines.function.codes, lines.line)
    is_same = shown & (above >= 0) & np.logical_and.reduce([key == key[above] for key in keys])
    runs = np.ones(len(lines), np.int64)
    for row in np.flatnonzero(is_same).tolist():
        runs[row] = runs[above[row]] + 1
    return runs


def _depths(parent: IntArray) -> IntArray:
    """Return the number of rows above each row; parents precede their rows."""
    depths: list[int] = []
    for above in parent.tolist():
        depths.append(depths[above] + 1 if above >= 0 else 0)
    return np.array(depths, np.int64)
