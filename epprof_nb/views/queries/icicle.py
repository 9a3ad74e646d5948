"""The call tree for the icicle chart: the largest nodes, the others merged per parent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from epprof_nb.arrays.groups import group_codes
from epprof_nb.data.kernel_names import short_name
from epprof_nb.data.schema import MISSING
from epprof_nb.util.format import shorten

if TYPE_CHECKING:
    from epprof_nb.analysis.base.result_table import ResultTable
    from epprof_nb.views.view_model import ViewModel

MAX_NODES = 1500
"""Maximum number of paths; each may have one more child for the omitted ones."""
_MAX_NAME_LENGTH = 600
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
        paths. A tree of stacks has the launches and waits instead of host times, and ``cell``
        (index into ``names``) and ``line`` of each frame, -1 for other nodes. Without device work,
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
    further = {}
    if "launches" in tree:
        cells = tree.names("cell").take(kept).to_list()
        codes = [MISSING if c is None else names.setdefault(c, len(names)) for c in cells]
        none = [MISSING] * len(above)
        further = {"cell": [*codes, *none], "line": [*tree["line"][kept].tolist(), *none]}
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
