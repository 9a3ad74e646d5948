"""The call tree for the icicle chart: the largest nodes, the others merged per parent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.stacks.by_stack import tree_and_nodes
from epprof_nb.arrays.ancestors import nearest_ancestor
from epprof_nb.arrays.groups import group_codes
from epprof_nb.data.kernel_names import short_name
from epprof_nb.data.schema import MISSING
from epprof_nb.util.format import shorten
from epprof_nb.views.queries.stack_selections import used_stacks
from epprof_nb.views.queries.string_table import MAX_NAME_LENGTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.views.view_model import ViewModel

MAX_NODES = 1500
"""Maximum number of paths; each may have one more child for the omitted ones."""
_MAX_LINE_LENGTH = 160
_SUMS = (
    "count", "device_ns", "self_device_ns", "host_ns", "kernels", "bytes",
    "launches", "waits", "wait_ns",
)  # fmt: skip


def icicle(
    view_model: ViewModel, by: str = "tree", *, max_nodes: int = MAX_NODES
) -> dict[str, Any]:
    """Return the paths of `epprof_nb.Profile.by_path` as JSON columns.

    Parameters
    ----------
    view_model
        The profile.
    by
        A key of `epprof_nb.analysis.breakdowns.registry.TREES`.
    max_nodes
        Maximum number of paths. Those with the most device and host time are kept.

    Returns
    -------
    tree
        ``names`` (string table); ``short_names`` (of kernels, and of modules below others, by index
        into it); ``parent`` (index of the parent node, -1 for roots; parents precede their
        children); ``level`` and ``name`` (indices into ``names``); the sums; and ``others``, the
        number of paths that a node represents, 0 for a path itself. ``paths`` is the number of all
        paths. A tree of stacks has the launches and waits instead of host times; ``cell``, ``line``
        and ``text`` of each frame (the first and the last are indices into ``names``), -1 for none;
        and ``stack_node``, the node of each stack of ``stack_id``. Without device work,
        ``hue`` is the hue of the operator of each node, -1 for none; see
        `epprof_nb.views.timeline.op_colours.operator_hues`.
    """
    tree = view_model.breakdown(by)
    weights = ("device_ns", "launches", "waits") if "launches" in tree else ("device_ns", "host_ns")
    merged = MergedTree(tree, [name for name in _SUMS if name in tree], weights, max_nodes)
    further: dict[str, Any] = {}
    if "launches" in tree:
        further = merged.places(tree.names("source").take(merged.kept).to_list())
        further |= _stacks(view_model, by, merged)
    elif view_model.colours_operators:
        none = [MISSING] * len(merged.above)
        further = {"hue": [*_hues(view_model, tree.take(merged.kept)), *none]}
    return merged.columns() | further


class MergedTree:
    """The largest nodes of a tree, each with one node for its omitted children.

    Parameters
    ----------
    tree
        The tree; parents precede their children.
    sums
        Columns to sum up.
    weights
        Columns that determine the size of a node.
    max_nodes
        Maximum number of nodes, without those for others.

    Attributes
    ----------
    kept
        int64 array: rows of the kept nodes.
    number
        int64 array, one value per row and a last one: its number among the kept nodes; `MISSING`
        for omitted rows, and as last element.
    above
        int64 array, ascending: numbers of the nodes with omitted children. The nodes for these
        follow the kept ones.
    """

    def __init__(
        self, tree: ResultTable, sums: Sequence[str], weights: Sequence[str], max_nodes: int
    ) -> None:
        self._tree, self._sums = tree, sums
        parent = tree["parent"]
        self.kept = _largest(tree, weights, max_nodes)
        self.number = np.full(len(tree) + 1, MISSING, np.int64)
        self.number[self.kept] = np.arange(len(self.kept))
        # Only the topmost omitted paths, because their sums include their descendants.
        is_omitted = (self.number[:-1] == MISSING) & (self.number[parent] != MISSING)
        self._omitted = np.flatnonzero(is_omitted)
        self.above, self._group = np.unique(self.number[parent[self._omitted]], return_inverse=True)
        self._names: dict[str, int] = {}

    def columns(self) -> dict[str, Any]:
        """Return the columns that all trees have, and the names that were encoded before."""
        tree, kept, above = self._tree, self.kept, self.above
        sums = {}
        for name in self._sums:
            rest = np.zeros(len(above), tree[name].dtype)
            np.add.at(rest, self._group, tree[name][self._omitted])
            sums[name] = np.append(tree[name][kept], rest).tolist()
        texts = {
            column: self._encode(
                [*map(str, tree.names(column).take(kept).to_list()), *[merged] * len(above)]
            )
            for column, merged in (("level", "other"), ("name", "(other)"))
        }
        others = np.bincount(self._group, minlength=len(above)).tolist()
        return {
            "parent": [*self.number[tree["parent"][kept]].tolist(), *above.tolist()],
            **texts,
            **sums,
            "others": [*[0] * len(kept), *others],
            "names": list(self._names),
            "short_names": _short_names(tree, kept, np.array(texts["name"])),
            "paths": len(tree),
        }

    def places(self, texts: Sequence[str | None]) -> dict[str, list[int]]:
        """Return cell or file, line and text of each frame; `MISSING` for other nodes.

        If frames called themselves, ``recursion`` has the largest number of times that each follows
        itself.

        `texts` has the text of the line of each kept node. Call this before `columns`.
        """
        files = self._tree.names("cell").take(self.kept).to_list()
        none = [MISSING] * len(self.above)
        tree = self._tree
        recursion = tree["recursion"][self.kept].tolist() if "recursion" in tree else []
        return {
            "cell": [*self._encode(files), *none],
            "line": [*self._tree["line"][self.kept].tolist(), *none],
            "text": [*self._encode(texts, _MAX_LINE_LENGTH), *none],
            **({"recursion": [*recursion, *none]} if recursion else {}),
        }

    def _encode(self, texts: Sequence[str | None], max_length: int = MAX_NAME_LENGTH) -> list[int]:
        return [
            MISSING
            if text is None
            else self._names.setdefault(shorten(text, max_length), len(self._names))
            for text in texts
        ]


def _stacks(view_model: ViewModel, by: str, merged: MergedTree) -> dict[str, list[Any]]:
    """Return the stacks with work, None for work without a stack, and the node of each."""
    index, number = view_model.index, merged.number
    library = by == "full_stack_tree"
    tree, path_of_stack = index.cached(tree_and_nodes, "launch", library, True)  # noqa: FBT003
    launched, waited = index.cached(used_stacks)
    stacks = np.flatnonzero(np.append(launched | waited, path_of_stack[-1] != MISSING))
    path = path_of_stack[stacks]
    shown = nearest_ancestor(tree["parent"], number[:-1] != MISSING)
    other = len(merged.kept) + np.searchsorted(merged.above, number[shown[path]])
    ids = [None if stack == len(launched) else stack for stack in stacks.tolist()]
    nodes = np.where(number[path] == MISSING, other, number[path])
    return {"stack_id": ids, "stack_node": nodes.tolist()}


def _hues(view_model: ViewModel, tree: ResultTable) -> list[int]:
    """Return the hue of the operator of each path, -1 for none."""
    ops, hues = view_model.profile.tables["ops"], view_model.operator_hues
    rows = np.flatnonzero(hues >= 0)
    columns = ("name", "op_type")
    _, first = group_codes(*(ops.names(column).codes[rows] for column in columns))
    rows = rows[first]
    texts = (ops.names(column).take(rows).to_list() for column in columns)
    hue_of = dict(zip(zip(*texts, strict=True), hues[rows].tolist(), strict=True))
    paths = zip(*(tree.names(column).to_list() for column in columns), strict=True)
    return [hue_of.get(path, MISSING) for path in paths]


def _short_names(
    tree: ResultTable, kept: npt.NDArray[np.int64], texts: npt.NDArray[np.int64]
) -> dict[int, str]:
    """Return the short names of kernels, and of modules below their parent module."""
    short_names = {}
    names, above = tree.names("name"), tree["parent"]
    for level in ("kernel", "module"):
        at = np.flatnonzero(tree.names("level").equals(level)[kept])
        of_rows = map(str, names.take(kept[at]).to_list())
        of_parents = names.take(above[kept[at]]).to_list()
        for text, name, parent in zip(texts[at].tolist(), of_rows, of_parents, strict=True):
            short = short_name(name) if level == "kernel" else name.removeprefix(f"{parent}.")
            if short != name:
                short_names[text] = short
    return short_names


def _largest(tree: ResultTable, weights: Sequence[str], max_nodes: int) -> npt.NDArray[np.int64]:
    """Return the rows to keep, ascending. The ancestors of a kept row are kept as well."""
    parent, depth = tree["parent"], tree["depth"]
    weight = np.zeros(len(tree))
    for name in weights:
        weight += tree[name] / max(tree[name].max(initial=0), 1)
    for level in range(int(depth.max(initial=0)), 0, -1):
        here = np.flatnonzero(depth == level)
        # Work on other threads may exceed the parent's; a parent weighs at least as much.
        np.maximum.at(weight, parent[here], weight[here])
    order = np.lexsort((depth, -weight))
    return np.sort(order[:max_nodes])
