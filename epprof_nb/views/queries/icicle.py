"""The call tree for the icicle chart: the largest nodes, the others merged per parent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.analysis.base.source_text import line_text, split_lines
from epprof_nb.analysis.breakdowns.by_stack import tree_and_nodes
from epprof_nb.arrays.ancestors import nearest_ancestor
from epprof_nb.arrays.groups import group_codes
from epprof_nb.data.kernel_names import short_name
from epprof_nb.data.schema import MISSING
from epprof_nb.util.format import shorten
from epprof_nb.views.queries.stack_selections import used_stacks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.arrays.types import IntArray
    from epprof_nb.views.view_model import ViewModel

MAX_NODES = 1500
"""Maximum number of paths; each may have one more child for the omitted ones."""
_MAX_NAME_LENGTH = 600
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
        `epprof_nb.util.palette.operator_hues`.
    """
    tree = view_model.breakdown(by)
    parent = tree["parent"]
    kept = _largest(tree, max_nodes)
    index = np.full(len(tree) + 1, MISSING, np.int64)
    index[kept] = np.arange(len(kept))
    # Only the topmost omitted paths: their sums include their descendants.
    omitted = np.flatnonzero((index[:-1] == MISSING) & (index[parent] != MISSING))
    above, group = np.unique(index[parent[omitted]], return_inverse=True)
    sums = {}
    for name in _SUMS:
        if name not in tree:
            continue
        values = tree[name]
        rest = np.zeros(len(above), np.int64)
        np.add.at(rest, group, values[omitted])
        sums[name] = np.append(values[kept], rest).tolist()
    names: dict[str, int] = {}

    def encode(column: str, merged: str) -> list[int]:
        texts = [*tree.names(column).take(kept).to_list(), *[merged] * len(above)]
        return [
            names.setdefault(shorten(str(text), _MAX_NAME_LENGTH), len(names)) for text in texts
        ]

    levels, texts = encode("level", "other"), encode("name", "(other)")
    further: dict[str, Any] = {}
    if "launches" in tree:
        further = _places(view_model, tree.take(kept), names, len(above))
        further |= _stacks(view_model, by, index, kept, above)
    elif view_model.colours_operators:
        further = {"hue": [*_hues(view_model, tree.take(kept)), *[MISSING] * len(above)]}
    return {
        "parent": [*index[parent[kept]].tolist(), *above.tolist()],
        "level": levels,
        "name": texts,
        **sums,
        "others": [*[0] * len(kept), *np.bincount(group, minlength=len(above)).tolist()],
        "names": list(names),
        "short_names": _short_names(tree, kept, np.array(texts)),
        "paths": len(tree),
        **further,
    }


def _places(
    view_model: ViewModel, tree: ResultTable, names: dict[str, int], merged: int
) -> dict[str, list[int]]:
    """Return cell or file, line and text of each frame; `MISSING` for other nodes.

    Texts are added to `names`. The last `merged` nodes are not in `tree`.
    """
    files, lines = tree.names("cell"), tree["line"].tolist()
    sources = {
        file: split_lines(view_model.profile.sources.get(file, "")) for file in files.categories
    }
    texts = [
        shorten(line_text(sources.get(file or "", []), line), _MAX_LINE_LENGTH)
        for file, line in zip(files.to_list(), lines, strict=True)
    ]

    def encode(values: Sequence[str | None]) -> list[int]:
        codes = [names.setdefault(v, len(names)) if v else MISSING for v in values]
        return [*codes, *[MISSING] * merged]

    return {
        "cell": encode(files.to_list()),
        "line": [*lines, *[MISSING] * merged],
        "text": encode(texts),
    }


def _stacks(
    view_model: ViewModel, by: str, number: IntArray, kept: IntArray, above: IntArray
) -> dict[str, list[Any]]:
    """Return the stacks with work, None for that without a stack, and the node of each.

    Parameters
    ----------
    view_model, by
        See `icicle`.
    number
        int64 array: number of each path; `MISSING` for omitted paths, and as last element.
    kept
        int64 array: the paths with a number.
    above
        int64 array, ascending: numbers of the paths below which others are omitted. Nodes for these
        follow the kept paths.
    """
    index = view_model.index
    tree, path_of_stack = index.cached(tree_and_nodes, "launch", by == "full_stack_tree")
    launched, waited = index.cached(used_stacks)
    stacks = np.flatnonzero(np.append(launched | waited, path_of_stack[-1] != MISSING))
    path = path_of_stack[stacks]
    shown = nearest_ancestor(tree["parent"], number[:-1] != MISSING)
    merged = len(kept) + np.searchsorted(above, number[shown[path]])
    ids = [None if stack == len(launched) else stack for stack in stacks.tolist()]
    nodes = np.where(number[path] == MISSING, merged, number[path])
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


def _largest(tree: ResultTable, max_nodes: int) -> npt.NDArray[np.int64]:
    """Return the rows to keep, ascending. The ancestors of a kept row are kept as well."""
    parent, depth = tree["parent"], tree["depth"]
    names = ("device_ns", "launches", "waits") if "launches" in tree else ("device_ns", "host_ns")
    weight = np.zeros(len(tree))
    for name in names:
        weight += tree[name] / max(tree[name].max(initial=0), 1)
    for level in range(int(depth.max(initial=0)), 0, -1):
        here = np.flatnonzero(depth == level)
        # Work on other threads may exceed its parent's; a parent weighs at least as much.
        np.maximum.at(weight, parent[here], weight[here])
    order = np.lexsort((depth, -weight))
    return np.sort(order[:max_nodes])
